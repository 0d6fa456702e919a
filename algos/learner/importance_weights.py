"""Truncated importance weights: the engine's policy is not quite the learner's.

An engine computes in another precision than the learner, and one that plays ahead samples from
older weights. Each token's policy gradient is multiplied by ``min(cap, exp(learner - engine))``,
where both log-probabilities are of the sampled token, the learner's from the start of the update
(the decoupled objective of arXiv 2110.00641 with the truncation of IMPALA, arXiv 1802.01561).

The surrogates of :mod:`turngym.algos.losses` are linear in a positive factor of the advantage,
clipped or not, so the weights are put on the advantages; entropy, KL and value terms are left
alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.annotators import OldLogprobs, sampled_logprobs
from ..core.forest import Forest
from ..core.protocols import Credits, Floats
from ..core.recipe import Recipe

USUAL_CAP = 2.0
"""The cap where the engine's numbers differ from the learner's and none is asked for."""
DIFFERS_FROM = 2**25
"""Weights from which rounding in half precision moves log-probabilities: 0.05 nats in the mean of
a language model of 135 million, 0.0014 of models of a million."""


def check_importance(recipe: Recipe, cap: float | None) -> None:
    """Refuse recipes whose gradient these weights would not correct.

    Raises:
        BadValueError: The message says why.
    """
    if cap and (why := why_no_importance(recipe)):
        raise BadValueError(f"recipe {recipe.name!r}: importance_cap is {cap}, but {why}")


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


def importance_cap(
    asked: float | None, recipe: Recipe, weights: int, same_numbers: bool
) -> float | None:
    """Return the cap of a run, None for no weights.

    Args:
        asked: By the settings: a cap, 0 for no weights, None for what the model needs.
        recipe: Its gradient must be one that the weights correct.
        weights: Number of the policy's weights.
        same_numbers: Whether engine and learner both compute in float32 and by the same layers.
    """
    if asked is not None:
        return asked or None
    exact = same_numbers or weights < DIFFERS_FROM
    return None if exact or why_no_importance(recipe) else USUAL_CAP


def weighed(
    credits: Credits, forest: Forest, learner: Sequence[Floats], cap: float
) -> tuple[Credits, dict[str, float]]:
    """Multiply every advantage by its token's weight; return the credits and metrics.

    Args:
        credits: As the credit rule gave them.
        forest: What was sampled.
        learner: The learner's log-probabilities ``[n_act]`` per path before the update.
        cap: Largest weight.
    """
    ratios = [
        np.exp(np.minimum(own - engine, np.float32(20.0)))
        for own, engine in zip(learner, sampled_logprobs(forest), strict=True)
    ]
    weights = [np.minimum(ratio, np.float32(cap)) for ratio in ratios]
    advantages = [
        (np.asarray(a, dtype=np.float32) * w)
        for a, w in zip(credits.advantages, weights, strict=True)
    ]
    metrics: dict[str, float] = {}
    if weights:
        metrics = {
            "update/importance_mean": float(np.concatenate(weights).mean()),
            "update/importance_capped_frac": float((np.concatenate(ratios) > cap).mean()),
        }
    return dataclasses.replace(credits, advantages=advantages), metrics
