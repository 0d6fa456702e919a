"""AEPO: ARPO with entropy balanced in the rollout, in the credit and in the clip."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit, TokenEntropyCredit
from ..losses import KeptClip, PolicyLoss, TokenMean
from ..rollouts import BalancedBranch
from .registry import SMALL_STEP, recipe


@recipe(
    "ARPO with fewer branches in a row, credit by token entropy, a clip that keeps gradients",
    small={**SMALL_STEP, "groups_per_step": 16, "rollout.initial": 4, "rollout.budget": 8},
)
def aepo() -> Recipe:
    """Agentic Entropy-Balanced Policy Optimization (arXiv 2510.14545).

    ARPO's branching, where the probability falls by 0.05 with every branching of a chain in a row.
    GRPO's advantages over all paths, times 1 + 0.2 times the z-score of the token's entropy over
    the batch. Clip 0.2 and 0.28, whose upper bound keeps a gradient of that size. 8 of 16 chains at
    the start, beam 2 (stored script).

    Differs from the paper:
        - the number of chains at the start is fixed; the paper's choice of it by the entropies of
          question and tool result is off in the stored script too;
        - a branch inherits its chain's count of branchings in a row;
        - entropies are of the whole distribution, and the bound keeps its gradient for every token
          (ARL-Arena: where the entropy is above the mean);
        - batch, mini batches and learning rate are ARPO's; ARPO's bonus for several tools is not
          part of it.

    Degenerate cases: ``rollout.budget=rollout.initial`` never branches; equal entropies leave
    GRPO's advantages.
    """
    return Recipe(
        name="aepo",
        paper="AEPO, arXiv 2510.14545",
        rollout=BalancedBranch(initial=8, budget=16, beam=2, fatigue=0.05),
        credit=TokenEntropyCredit(of=GroupCredit(), weight=0.2),
        loss=PolicyLoss(ratio="token", clip=KeptClip(low=0.2, high=0.28), aggregate=TokenMean()),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=128,
    )
