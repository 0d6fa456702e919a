"""DAPO: GRPO with four changes for long answers."""

from __future__ import annotations

from ..core.filters import DynamicSampling
from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import Clip, PolicyLoss, TokenMean
from ..rewards.shaping import Overlong
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe(
    "clip higher, dynamic sampling, overlong punishment",
    small={**SMALL_CHAINS, "optim.weight_decay": 0.01},
)
def dapo() -> Recipe:
    """DAPO (arXiv 2503.14476).

    Clip-higher (0.2 below, 0.28 above; section 3.1), dynamic sampling (groups of equal returns are
    replaced; 3.2), the mean over all tokens (3.3), the soft overlong punishment from 16,384 to
    20,480 tokens (3.4). 16 chains for each of 512 prompts, 16 optimiser steps per batch, learning
    rate 1e-6 after 10 warm-up steps, weight decay 0.1; no KL. Dual clip 10 is verl's recipe.

    Differs from the paper:
        - after ten rounds of playing a step continues with the groups it has (the code stops);
        - the return is the environment's, 0 to 1, where the paper's is -1 or 1: within a group's
          z-score that is the same, beside the punishment it weighs half;
        - the token mean is over the mini batch, not over each micro batch.

    The punishment is made for answers of 20,000 tokens: where the context is shorter, lower
    ``shapers.overlong.cache`` and ``.limit``, or it never comes.

    Degenerate cases: a step in which every group was filtered out, after all its rounds, changes
    nothing.
    """
    return Recipe(
        name="dapo",
        paper="DAPO, arXiv 2503.14476",
        rollout=Chains(n=16),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=PolicyLoss(
            ratio="token", clip=Clip(low=0.2, high=0.28, dual=10.0), aggregate=TokenMean()
        ),
        shapers=(Overlong(limit=20_480, cache=4_096),),
        filter=DynamicSampling(max_rounds=10),
        optim=Optim(lr=1e-6, warmup_steps=10, weight_decay=0.1, minibatches=16),
        groups_per_step=512,
    )
