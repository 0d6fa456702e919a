"""Group credit: a path's return, set against the other paths of its prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_choices, check_weights
from ..core.forest import End, Forest, are_equal
from ..core.protocols import Annotations, Credit, Credits, Floats
from .penalty import KlKind, kl_price

Returns = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GroupCredit(Credit):
    """``(R - baseline) / scale`` within each group, on every action token of the path.

    GRPO (DeepSeekMath, arXiv 2402.03300, section 4.1.2) with the defaults; Dr. GRPO (arXiv
    2503.20783, section 3.1) with ``scale="none"``; RLOO (arXiv 2402.14740, section 2) with
    ``baseline="leave-one-out", scale="none"``.

    Degenerate cases: a group whose returns are all equal gets exactly 0 (computed in float64 and
    guarded, since a float32 mean leaks: 12 times 0.7 would give advantages of 0.1), also where they
    differ by the rounding of rewards that fell at different turns. A group of one
    follows ``singleton``; without the one path nothing is left out to compare it with, so
    leave-one-out knows only 0 there. Paths that ended in ``env_error`` are not in the forest's
    paths, so they enter no statistic.

    Attributes:
        baseline: What is subtracted: the group's mean, the mean of the other paths, or nothing.
        scale: What divides: the group's unbiased standard deviation plus ``eps``, or nothing.
        eps: Keeps the division finite. Search-R1 and verl use 1e-6.
        singleton: Advantage of a group of one path: 0, or ``"raw"``, the return itself (what the
            Search-R1 and Tree-GRPO releases do).
        kl_coef: Coefficient of the penalty on a path's tokens, summed and taken off its return
            (RLOO, equation 1); 0 needs no reference.
        kl_kind: Its estimator, see :func:`kl_price`.
    """

    baseline: Literal["mean", "leave-one-out", "none"] = "mean"
    scale: Literal["std", "none"] = "std"
    eps: float = 1e-6
    singleton: Literal["zero", "raw"] = "zero"
    kl_coef: float = 0.0
    kl_kind: KlKind = "k1"

    whole_returns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choices(self)
        check_above_zero(self, "eps")
        check_weights(self, "kl_coef")
        if self.baseline == "leave-one-out" and self.singleton == "raw":
            raise BadValueError(
                "GroupCredit: singleton='raw' with baseline='leave-one-out': a group of one path "
                "has no others to take the mean of. Use singleton='zero'."
            )
        if self.baseline == "none" and self.scale == "std":
            raise BadValueError(
                "GroupCredit: scale='std' needs a baseline: without one, a group of equal returns "
                f"would be divided by eps = {self.eps}. Use scale='none' or baseline='mean'."
            )

    @property
    def needs(self) -> frozenset[str]:
        """Both log-probabilities when there is a penalty."""
        return frozenset({"old_logprobs", "ref_logprobs"} if self.kl_coef else ())

    @property
    def min_paths(self) -> int:
        """Minimum paths per group for a non-zero advantage."""
        return 1 if self.baseline == "none" or self.singleton == "raw" else 2

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one constant advantage per path, broadcast over its ``[n_act]`` action tokens."""
        prices = None
        if self.kl_coef:
            nats = [kl_price(self.kl_kind, annotations, i).sum() for i in range(len(forest.paths))]
            prices = self.kl_coef * np.array(nats)
        groups = by_prompt(forest)
        scores = self.within(forest, groups, prices)
        informative = sum(bool(scores[m].any()) for m in groups)
        return Credits(
            advantages=on_every_token(forest, scores),
            metrics={"informative_groups_frac": informative / max(len(groups), 1)},
        )

    def within(
        self, forest: Forest, scopes: Sequence[Sequence[int]], prices: Returns | None = None
    ) -> Returns:
        """Return scores ``[paths]``, comparing the episodes of each scope with each other.

        What is compared are episodes, so that one of many sessions does not count many times; a
        path gets the mean of the episodes that it leads to.

        Args:
            forest: The paths.
            scopes: Places of paths in ``forest.paths``.
            prices: Taken off the return of every episode that the path belongs to ``[paths]``.
        """
        return score_episodes(forest, scopes, self.compare, prices)

    def compare(self, returns: Returns) -> Returns:
        """Return advantages ``[n]`` of the ``[n]`` returns of one scope, in float64."""
        n = len(returns)
        if self.baseline == "none":
            return returns.copy()
        if n == 1:
            if self.singleton == "zero":
                return np.zeros(1)
            return returns / (1.0 + self.eps if self.scale == "std" else 1.0)
        if are_equal(returns):
            return np.zeros(n)
        centred = returns - math.fsum(returns) / n
        scale = centred.std(ddof=1) + self.eps if self.scale == "std" else 1.0
        if self.baseline == "leave-one-out":
            centred = centred * n / (n - 1)
        return centred / scale


def score_episodes(
    forest: Forest,
    scopes: Sequence[Sequence[int]],
    compare: Callable[[Returns], Returns],
    prices: Returns | None = None,
) -> Returns:
    """Return scores ``[paths]`` by a rule that compares the returns ``[n]`` of a scope's episodes.

    A path gets the mean of the episodes that it leads to.

    Args:
        forest: The paths.
        scopes: Places of paths in ``forest.paths``.
        compare: The rule.
        prices: Taken off the return of every episode that the path belongs to ``[paths]``.
    """
    worth, ends = forest.endings()
    if prices is not None:
        for i, of_path in enumerate(ends):
            for end in of_path:
                worth[end] -= prices[i]
    scores = np.zeros(len(forest.paths))
    for members in scopes:
        known = _distinct(ends, members)
        if known:
            found = compare(np.array([worth[end] for end in known], dtype=np.float64))
            score = dict(zip(known, found.tolist(), strict=True))
            for i in members:
                scores[i] = math.fsum(score[e] for e in ends[i]) / max(len(ends[i]), 1)
    return scores


def episode_returns(forest: Forest, members: Sequence[int]) -> list[float]:
    """Return the return of every episode that some paths lead to, each once."""
    worth, ends = forest.endings()
    return [float(worth[end]) for end in _distinct(ends, members)]


def by_prompt(forest: Forest) -> list[list[int]]:
    """Return indices into ``forest.paths`` per group, without groups that have no path."""
    return _by(path.group for path in forest)


def by_tree(forest: Forest) -> list[list[int]]:
    """Return indices into ``forest.paths`` per tree."""
    return _by((path.group, path.tree) for path in forest)


def on_every_token(forest: Forest, scores: Returns) -> list[Floats]:
    """Broadcast one score per path to its ``[n_act]`` action tokens."""
    return [
        np.full(forest.n_act(p), s, dtype=np.float32)
        for p, s in zip(forest.paths, scores, strict=True)
    ]


def _distinct(ends: Sequence[Sequence[End]], members: Sequence[int]) -> list[End]:
    return list(dict.fromkeys(end for i in members for end in ends[i]))


def _by(keys: Iterable[Hashable]) -> list[list[int]]:
    scopes: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        scopes.setdefault(key, []).append(i)
    return list(scopes.values())
