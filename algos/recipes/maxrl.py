"""MaxRL: returns relative to the group's mean, so that hard tasks weigh more."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import MaxRlCredit
from ..losses import Clip, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("divided by the mean return: towards maximum likelihood", small=SMALL_CHAINS)
def maxrl() -> Recipe:
    """Maximum Likelihood Reinforcement Learning (MaxRL, arXiv 2602.02710).

    ``(R - mean) / mean`` within the group: between REINFORCE, which weighs a task by how often it
    is solved, and maximum likelihood, which weighs all alike; the more chains, the nearer to the
    latter. No KL.

    Differs from the paper:
        - a group without any success gets 0, as in prime-rl and SkyRL: that is unbiased for the
          order N - 1 of N chains; ``credit.failed=minus-one`` is the order N;
        - batch, mini batches, clip and learning rate are Search-R1's, whose groups have five paths
          and not eight.

    Degenerate cases: a group of one path is refused, unless a failure alone counts
    (``minus-one``); a group of equal returns above 0 gets exactly 0. An environment whose returns
    can be negative is refused, and a return below 0, which only a shaper can make elsewhere.
    """
    return Recipe(
        name="maxrl",
        paper="MaxRL, arXiv 2602.02710",
        rollout=Chains(n=8),
        credit=MaxRlCredit(failed="zero"),
        loss=PolicyLoss(ratio="token", clip=Clip(low=0.2, high=0.2), aggregate=TokenMean()),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
