"""SPO: one path per prompt, relative to the tracked value of the prompt."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import TrackedCredit
from ..losses import Clip, PolicyLoss, TokenMean
from ..rollouts import Chains
from ..rollouts.value_tracker import BetaTracker
from .registry import SMALL_SINGLE, recipe


@recipe(
    "one path per prompt, a tracked value as baseline",
    small={**SMALL_SINGLE, "tracker.pool": 512, "tracker.first": 0},
)
def spo() -> Recipe:
    """Single-stream Policy Optimization (arXiv 2509.13232).

    The baseline is a Beta tracker's value of the prompt (section 3.1) with a memory of 0.875 to
    0.96 by how far the policy has moved; advantages are whitened over the batch (3.2); prompts are
    drawn by ``sqrt(v (1 - v)) + 0.05`` from 14,000 (3.3). First values come from 8 episodes each.
    768 prompts and 8 optimiser steps per batch, clip 0.2 and 0.28, dual clip 10, token mean, no KL.

    Differs from the paper:
        - the first values are played by the starting policy when the run begins, and paid for;
        - the mini batch of 96 is exact only where the batch divides by it.

    Degenerate cases: returns outside the environment's range, which is scaled to [0, 1], are
    refused; a pool smaller than a step too.
    """
    return Recipe(
        name="spo",
        paper="SPO, arXiv 2509.13232",
        rollout=Chains(n=1),
        credit=TrackedCredit(),
        loss=PolicyLoss(
            ratio="token", clip=Clip(low=0.2, high=0.28, dual=10.0), aggregate=TokenMean()
        ),
        tracker=BetaTracker(pool=14_000, first=8),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=768,
    )
