"""Dr. GRPO: GRPO without its two divisions."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import Clip, PathMeanConstant, PolicyLoss
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe(
    "GRPO without dividing by deviation and length",
    small={**SMALL_CHAINS, "loss.aggregate.length": 64},
)
def drgrpo() -> Recipe:
    """Understanding R1-Zero-like Training (arXiv 2503.20783), section 3.

    The return minus the group's mean, not divided by its deviation (which favours tasks that are
    nearly always or never solved), and losses summed over tokens and divided by a constant, not by
    the path's length (which favours long failures). No KL.

    Differs from the paper:
        - the constant is the longest path in tokens, set by ``loss.aggregate.length``; the paper
          divides by the generation budget of its models;
        - group size, batch and learning rate are Search-R1's, the paper's task is single-turn.

    Degenerate cases: as :func:`~turngym.algos.recipes.grpo`.
    """
    return Recipe(
        name="drgrpo",
        paper="Dr. GRPO, arXiv 2503.20783",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="none"),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.2),
            aggregate=PathMeanConstant(length=2048),
        ),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
