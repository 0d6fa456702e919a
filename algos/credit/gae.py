"""Generalised advantage estimation over action tokens (arXiv 1506.02438, equation 16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.checks import check_choices, check_shares, check_weights
from ..core.forest import Edge, Forest, Path, are_equal
from ..core.protocols import Annotations, Credit, Credits, Floats
from .penalty import KlKind, kl_price

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Gae(Credit):
    """Token by token credit with a critic; observation tokens do not exist here.

    ``delta_t = r_t + gamma V_{t+1} - V_t`` and ``A_t = delta_t + gamma lam A_{t+1}`` over the
    action tokens of a path, where ``V_t`` is the critic's value of the state before token ``t``.
    The value after the last token is 0 when the task gave its verdict (solved, failed) or a session
    ended and, with ``bootstrap``, the critic's when the episode was cut off. Value targets are
    ``A_t + V_t`` before whitening.

    Attributes:
        gamma: Discount per action token, in [0, 1].
        lam: Trade of variance (1) for the critic's bias (0), in [0, 1].
        whiten: Set the advantages of the whole batch to mean 0 and unbiased variance 1, counted
            over action tokens (``rsqrt(var + 1e-8)``, as verl and Search-R1 do).
        kl_coef: Coefficient of the penalty that is taken off each token's reward; 0 needs no
            reference.
        kl_kind: Its estimator, see :func:`kl_price`; Search-R1 has k1.
        bootstrap: Continue a truncated episode with the critic's value. False where the limit is
            part of the task, as in Search-R1, whose value after the end is always 0.
    """

    gamma: float = 1.0
    lam: float = 1.0
    whiten: bool = True
    kl_coef: float = 0.0
    kl_kind: KlKind = "k1"
    bootstrap: bool = True

    def __post_init__(self) -> None:
        check_choices(self)
        check_shares(self, "gamma", "lam")
        check_weights(self, "kl_coef")

    @property
    def needs(self) -> frozenset[str]:
        """Critic values; both log-probabilities when there is a penalty."""
        kl = {"old_logprobs", "ref_logprobs"} if self.kl_coef else set()
        return frozenset({"values", *kl})

    @property
    def provides(self) -> frozenset[str]:
        """Value targets for the critic."""
        return frozenset({"value_targets"})

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return advantages and value targets, ``[n_act]`` per path."""
        advantages: list[Doubles] = []
        targets: list[Floats] = []
        cut_off = self._cut_off(forest)
        for i, path in enumerate(forest.paths):
            turns = forest.turns(path)
            rewards = np.concatenate([t.rewards for t in turns]).astype(np.float64)
            if self.kl_coef:
                rewards -= self.kl_coef * kl_price(self.kl_kind, annotations, i)
            values = self._values(annotations["values"][i], len(rewards), goes_on=cut_off[i])
            advantage = self.estimate(rewards, values)
            advantages.append(advantage)
            targets.append((advantage + values[:-1]).astype(np.float32))
        return critic_credits(advantages, targets, annotations, whiten=self.whiten)

    def estimate(self, rewards: Doubles, values: Doubles) -> Doubles:
        """Return advantages ``[n]`` from rewards ``[n]`` and values ``[n + 1]``."""
        deltas = rewards + self.gamma * values[1:] - values[:-1]
        advantages = np.empty_like(deltas)
        later = 0.0
        for t in range(len(deltas) - 1, -1, -1):
            later = deltas[t] + self.gamma * self.lam * later
            advantages[t] = later
        return advantages

    def _cut_off(self, forest: Forest) -> list[bool]:
        """Whether the value after the end of each path is the critic's."""
        if not self.bootstrap:
            return [False] * len(forest.paths)
        return [self._is_cut_off(forest, path) for path in forest.paths]

    def _is_cut_off(self, forest: Forest, path: Path) -> bool:
        """Whether the path's episode ended at a limit, or was left by the rollout there.

        A session that ended is left in the same way, so where there are sessions only limits count.
        """
        tree = forest.groups[path.group].trees[path.tree]
        status = tree.turns[path.turns[-1]].status
        sessions = any(turn.edge is Edge.SPAWN for turn in tree.turns)
        return status == "truncated" or (status == "running" and not sessions)

    def _values(self, noted: Floats, n_act: int, *, goes_on: bool) -> Doubles:
        check_values(self, noted, n_act)
        values = noted.astype(np.float64)
        if not goes_on:
            values[-1] = 0.0
        return values


def critic_credits(
    advantages: list[Doubles], targets: list[Floats], annotations: Annotations, *, whiten: bool
) -> Credits:
    """Return advantages and value targets, ``[n_act]`` per path, with the critic's fit."""
    metrics = fit_of(targets, [v[:-1] for v in annotations["values"]])
    rows = whitened(advantages) if whiten else advantages
    advantages32 = [row.astype(np.float32) for row in rows]
    return Credits(advantages=advantages32, value_targets=targets, metrics=metrics)


def check_values(rule: object, values: Floats, n_act: int) -> None:
    """Refuse critic values that do not fit a path of ``n_act`` action tokens.

    Raises:
        BadValueError: The shape is another one.
    """
    if values.shape != (n_act + 1,):
        raise BadValueError(
            f"{type(rule).__name__}: values have shape {values.shape}; expected ({n_act + 1},), "
            "one before each action token and one after the last."
        )


def whitened(rows: Sequence[Doubles], eps: float = 1e-8) -> list[Doubles]:
    """Scale rows jointly to mean 0 and unbiased variance 1; fewer than two tokens give 0."""
    flat = np.concatenate(rows) if rows else np.zeros(0)
    if len(flat) < 2 or are_equal(flat):
        return [np.zeros_like(r) for r in rows]
    mean, scale = flat.mean(), np.sqrt(flat.var(ddof=1) + eps)
    return [(r - mean) / scale for r in rows]


def fit_of(targets: Sequence[Floats], values: Sequence[Floats]) -> dict[str, float]:
    """Return the share of the targets' variance that the critic explains (1 is all of it)."""
    if not targets:
        return {}
    target, value = np.concatenate(targets), np.concatenate(values)
    spread = float(target.var(dtype=np.float64))
    if spread == 0.0:
        return {}
    left = float((target - value).var(dtype=np.float64))
    return {"value_explained_frac": 1.0 - left / spread}
