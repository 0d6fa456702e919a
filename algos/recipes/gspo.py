"""GSPO: importance ratios of whole sequences."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import Clip, PathMeanTokenMean, PolicyLoss
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("ratios of whole paths", small=SMALL_CHAINS)
def gspo() -> Recipe:
    """Group Sequence Policy Optimization (arXiv 2507.18071).

    GRPO's advantages with the ratio of a path, the geometric mean of its tokens' ratios (equation
    7), clipped at 3e-4 below and 4e-4 above (section 5.1), averaged over paths; no KL. The gradient
    goes through each token's own log-probability (GSPO-token, equation 14), which equals the
    sequence's where a path has one advantage and allows several.

    Differs from the paper:
        - group size, batch and learning rate are Search-R1's; four optimiser steps per batch as in
          the paper's section 5.1;
        - a multi-turn path is one sequence: all its action tokens make one ratio.

    Degenerate cases: as :func:`~turngym.algos.recipes.grpo`. With a single optimiser step per batch
    the ratio is 1 and this is GRPO averaged path by path.
    """
    return Recipe(
        name="gspo",
        paper="GSPO, arXiv 2507.18071",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=PolicyLoss(
            ratio="sequence", clip=Clip(low=3e-4, high=4e-4), aggregate=PathMeanTokenMean()
        ),
        optim=Optim(lr=1e-6, minibatches=4),
        groups_per_step=512,
    )
