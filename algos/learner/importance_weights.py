"""What protects an update from an engine whose policy is not quite the learner's.

An engine computes in another precision than the learner, and one that plays ahead samples from
older weights. Each token's policy gradient is multiplied by ``min(cap, exp(learner - engine))``,
where both log-probabilities are of the sampled token, the learner's from the start of the update
(the decoupled objective of arXiv 2110.00641 with the truncation of IMPALA, arXiv 1802.01561).

The surrogates of :mod:`turngym.algos.losses` are linear in a positive factor of the advantage,
clipped or not, so the weights are put on the advantages; entropy, KL and value terms are left
alone.

A weight that is cut still trains on its token. Paths of which engine and learner say very different
things were sampled by another policy (a cache that was lost, weights that were mixed up) and are
left out whole, before any is weighed (masked importance sampling by sequence, as in TRL and verl);
and a run says so when the mean difference of a step is more than rounding explains. A path that the
loss is silent about is trained on in no case, so it stays among the paths that a mean is over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.annotators import OldLogprobs, sampled_logprobs
from ..core.forest import Forest
from ..core.protocols import Annotations, Credits, Floats
from ..core.recipe import Recipe

T = TypeVar("T")

USUAL_CAP = 2.0
"""The cap where the engine's numbers differ from the learner's and none is asked for."""
REJECTED_ABOVE = 0.5
"""Nats that a path's mean difference may have at most where nothing else is asked for: ten times
the mean, and more than any single token, of a model of 135 million in half precision."""
ALARM = 0.02
"""Nats of a step's mean difference from which a run says so."""


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What is done about the difference in a run.

    Attributes:
        cap: Of the truncated importance weights; None for no weights.
        reject_above: Paths whose mean absolute difference is above so many nats are left out; None
            for none.
    """

    cap: float | None = None
    reject_above: float | None = None

    @property
    def on(self) -> bool:
        """Whether anything is done."""
        return self.cap is not None or self.reject_above is not None


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How engine and learner differ in a run.

    Attributes:
        formats: Whether either computes in half precision.
        kinds: Whether the engine is another program than the learner's layers, such as vLLM.
        large: Whether the policy is large (:func:`turngym.agents.models.size.is_large`): rounding
            in half precision moves log-probabilities of 135 million weights by 0.05 nats in the
            mean, of a million by 0.0014.
        on_cpu: Whether the learner is on a CPU.
    """

    formats: bool
    kinds: bool
    large: bool
    on_cpu: bool

    @property
    def matters(self) -> bool:
        """Whether rounding can move log-probabilities by more than a thousandth of a nat or so.

        On a CPU small models in half precision are taken as exact; elsewhere nothing is, since the
        kernels differ as well.
        """
        if self.kinds or not self.on_cpu:
            return self.kinds or self.formats
        return self.formats and self.large


def check_importance(recipe: Recipe, cap: float | None, reject_above: float | None = None) -> None:
    """Refuse recipes whose gradient these weights would not correct.

    Raises:
        BadValueError: The message says why.
    """
    for name, asked in (("importance_cap", cap), ("reject_above", reject_above)):
        if asked and (why := why_no_importance(recipe)):
            raise BadValueError(f"recipe {recipe.name!r}: {name} is {asked}, but {why}")


def why_no_importance(recipe: Recipe) -> str | None:
    """Return why these weights would not correct a recipe's gradient; None when they do."""
    if not recipe.rollout.samples:
        return (
            f"{recipe.rollout} samples nothing: there is no engine's log-probability to weigh "
            "against. Leave it out."
        )
    if not recipe.loss.reads_credit:
        return (
            f"{type(recipe.loss).__name__} reads no advantages, on which these weights are put. "
            "Leave it out."
        )
    if recipe.loss.whole_trees:
        return (
            f"{type(recipe.loss).__name__} compares paths and is not linear in the advantage. "
            "Leave it out."
        )
    if OldLogprobs(source="sampled") in recipe.used_annotators:
        return (
            "OldLogprobs(source='sampled') makes the engine's log-probabilities the base of the "
            "ratio already, so the difference would count twice. Use OldLogprobs(), or leave "
            "importance_cap out."
        )
    return None


def protection(
    recipe: Recipe, difference: Difference, cap: float | None, reject_above: float | None
) -> Protection:
    """Return what protects a run.

    Args:
        recipe: Its gradient must be one that the weights correct.
        difference: Of the run's engine and learner.
        cap: By the settings: a cap, 0 for no weights, None for what the difference needs.
        reject_above: By the settings, in nats: 0 for no rejection, None as for the cap.
    """
    needed = difference.matters and not why_no_importance(recipe)

    def chosen(asked: float | None, usual: float) -> float | None:
        if asked is not None:
            return asked or None
        return usual if needed else None

    return Protection(cap=chosen(cap, USUAL_CAP), reject_above=chosen(reject_above, REJECTED_ABOVE))


class PathRejectedError(Exception):
    """A path is too far off to train on, and the update had begun; nothing was changed."""


class WeighedUpdate:
    """The weights of an update that scores for itself, see :meth:`.Learner.update_scoring`.

    Where a batch is one optimiser step, the learner's log-probabilities before the update are what
    the update computes anyway, and a pass is saved.

    Args:
        guard: What is done.
        sampled: The engine's log-probabilities ``[n_act]`` per path.
    """

    def __init__(self, guard: Protection, sampled: Sequence[Floats]) -> None:
        self._guard, self._sampled = guard, sampled
        self._ratios: list[Floats] = []
        self.own: dict[int, Floats] = {}

    def weigh(
        self, paths: Sequence[int], own: Sequence[Floats], advantages: Sequence[Floats]
    ) -> list[Floats]:
        """Return the advantages ``[n_act]`` of some paths times their weights.

        Args:
            paths: Which.
            own: The learner's log-probabilities of each.
            advantages: Of each.

        Raises:
            PathRejectedError: One is too far off.
        """
        weighed = []
        for path, now, advantage in zip(paths, own, advantages, strict=True):
            sampled = self._sampled[path]
            if is_too_far(np.abs(now - sampled), self._guard.reject_above):
                raise PathRejectedError
            self.own[path] = now
            self._ratios.append(importance_ratio(now, sampled))
            weighed.append(times_weight(advantage, self._ratios[-1], self._guard.cap))
        return weighed

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the weights of all paths that were computed."""
        found = {} if self._guard.cap is None else weight_metrics(self._ratios, self._guard.cap)
        if self._guard.reject_above is not None and self.own:
            found["update/rejected_frac"] = 0.0
        return found


def is_too_far(difference: Floats, above: float | None) -> bool:
    """Return whether a path's absolute differences ``[n_act]`` are too large in the mean."""
    if above is None or not len(difference):
        return False
    return not float(difference.mean()) <= above


def importance_ratio(own: Floats, engine: Floats) -> Floats:
    """Return learner's by engine's probabilities of tokens, from log-probabilities ``[n_act]``."""
    return np.exp(np.minimum(own - engine, np.float32(20.0)))


def times_weight(advantages: Floats, ratio: Floats, cap: float | None) -> Floats:
    """Return advantages times their truncated importance weights, all ``[n_act]``."""
    if cap is None:
        return advantages
    given = np.asarray(advantages, dtype=np.float32)
    # no advantage stays none, also where the learner's log-probability is no number
    return np.where(given == 0, given, given * np.minimum(ratio, np.float32(cap)))


def weight_metrics(ratios: Sequence[Floats], cap: float) -> dict[str, float]:
    """Return the mean weight and the share that is cut, from the ratios ``[n_act]`` per path.

    Ratios that are no numbers, of paths that the loss is silent about, are no part of it.
    """
    every = _finite(ratios)
    if not len(every):
        return {}
    return {
        "update/importance_mean": float(np.minimum(every, np.float32(cap)).mean()),
        "update/importance_capped_frac": float((every > cap).mean()),
    }


def differences(forest: Forest, learner: Sequence[Floats]) -> list[Floats]:
    """Return the absolute differences in nats of every action token ``[n_act]`` per path."""
    pairs = zip(learner, sampled_logprobs(forest), strict=True)
    return [np.abs(own - engine) for own, engine in pairs]


def _finite(arrays: Sequence[Floats]) -> Floats:
    """Return the finite ones of all numbers ``[n]``."""
    every = np.concatenate(arrays) if len(arrays) else np.zeros(0, np.float32)
    return every[np.isfinite(every)]


def rejected(
    forest: Forest,
    learner: Sequence[Floats],
    above: float,
    silent: Sequence[bool] | None = None,
) -> tuple[npt.NDArray[np.bool_], dict[str, float]]:
    """Return which paths ``[paths]`` are too far off to train on, and metrics.

    Args:
        forest: What was sampled.
        learner: The learner's log-probabilities ``[n_act]`` per path before the update.
        above: Largest mean absolute difference of a path, in nats; what is no number is above.
        silent: Which paths the loss is silent about (:meth:`.Learner.silent`); they stay, as they
            do where they are not even compared (:meth:`.Learner.update_scoring`). None for none.
    """
    off = differences(forest, learner)
    out = np.array([is_too_far(d, above) for d in off], bool)
    if silent is not None:
        out &= ~np.array(silent, bool)
    metrics: dict[str, float] = {}
    if len(off):
        metrics["update/rejected_frac"] = float(out.mean())
    if out.any():  # the update sees the others alone
        metrics |= difference_metrics(off)
    return out, metrics


def difference_metrics(off: Sequence[Floats]) -> dict[str, float]:
    """Return how far engine and learner are apart, from the differences ``[n]`` per path in nats.

    Over finite ones: what is none is trained on in no case, or the loss is not finite.
    """
    every = _finite(off)
    if not len(every):
        return {}
    return {
        "update/logprob_diff_mean_nats": float(every.mean()),
        "update/logprob_diff_max_nats": float(every.max()),
    }


def without_paths(
    forest: Forest, annotations: Annotations, credits: Credits, out: npt.NDArray[np.bool_]
) -> tuple[Forest, dict[str, list[Floats]], Credits]:
    """Return what an update reads, without some paths.

    Args:
        forest: The trainable paths.
        annotations: Arrays per path.
        credits: One array per path.
        out: Which paths are left out ``[paths]``.
    """

    def kept(per_path: Sequence[T]) -> list[T]:
        return [one for one, gone in zip(per_path, out, strict=True) if not gone]

    rest = dataclasses.replace(
        credits,
        advantages=kept(credits.advantages),
        value_targets=kept(credits.value_targets) if len(credits.value_targets) else (),
        extra={name: kept(arrays) for name, arrays in credits.extra.items()},
    )
    left = {name: kept(arrays) for name, arrays in annotations.items()}
    return Forest(forest.groups, tuple(kept(forest.paths))), left, rest


class Alarm:
    """Says when engine and learner are further apart than rounding explains.

    Once for each doubling of the difference, so that it is said and not repeated.
    """

    def __init__(self) -> None:
        self._above = ALARM

    def __call__(self, step: int, mean_nats: float, lag: float, guard: Protection) -> str:
        """Return what to say of a step, empty for nothing.

        Args:
            step: Number of the step.
            mean_nats: Mean absolute difference of its tokens.
            lag: Mean updates between the weights that sampled and those that were trained.
            guard: What is done about it.
        """
        if mean_nats <= self._above:
            return ""
        self._above = max(2 * self._above, mean_nats)
        done = [f"weights are cut at {guard.cap:g}"] if guard.cap else []
        if guard.reject_above:
            done.append(f"paths above {guard.reject_above:g} nats are left out")
        against = " and ".join(done) or "nothing is done about it (importance_cap, reject_above)"
        late = f" and {lag:.1f} updates of lag" if lag else ""
        return (
            f"step {step}: engine and learner differ by {mean_nats:.3f} nats in the mean, more "
            f"than {ALARM}: rounding{late}, or a fault; {against}. An engine in float32 "
            "(engine_dtype) shows which."
        )


def weighed(
    credits: Credits,
    forest: Forest,
    learner: Sequence[Floats],
    cap: float,
    out: npt.NDArray[np.bool_] | None = None,
) -> tuple[Credits, dict[str, float]]:
    """Multiply every advantage by its token's weight; return the credits and metrics.

    Args:
        credits: As the credit rule gave them.
        forest: What was sampled.
        learner: The learner's log-probabilities ``[n_act]`` per path before the update.
        cap: Largest weight.
        out: Which paths :func:`rejected` leaves out ``[paths]``, which have no weights; None for
            none.
    """
    advantages, ratios = list(credits.advantages), []
    for i, (own, engine) in enumerate(zip(learner, sampled_logprobs(forest), strict=True)):
        if out is not None and out[i]:
            continue
        ratios.append(importance_ratio(own, engine))
        advantages[i] = times_weight(advantages[i], ratios[-1], cap)
    return dataclasses.replace(credits, advantages=advantages), weight_metrics(ratios, cap)
