"""GiGPO: GRPO's advantage plus a comparison of what was done in the same state."""

from __future__ import annotations

from ..core.annotators import RefLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import StateCredit, StateReturns
from ..losses import Clip, Kl, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe(
    "group mean, and discounted returns among the visits of a state",
    small={**SMALL_CHAINS, "groups_per_step": 16},
)
def gigpo() -> Recipe:
    """Group-in-Group Policy Optimization (arXiv 2505.10978), settings of its ALFWorld script.

    To the path's z-score in the group comes, with weight 1, the z-score of the discounted rewards
    to go (0.95) among all turns of the group that were taken in the same state (section 4.2). 8
    paths for each of 16 tasks, learning rate 1e-6, clip 0.2, k3 against the reference as a loss
    (0.01); an unreadable action costs 0.01 of the success's reward where it was written.

    Differs from the paper:
        - states are equal by the environment's own identity, not by their text, which is
          ``credit.identity=text``; nothing is grouped by similarity;
        - the group's mean is over paths, as the paper means it; the code's is over turns
          (``credit.over=turns``), so that long paths weigh more;
        - a row is a whole path; the code trains a row per turn, with a short memory as context.

    Degenerate cases: a state that comes once adds exactly 0, so unique states make it GRPO; so do
    ``credit.state_weight=0`` and ``credit.identity=history`` but for what paths share, the first
    turn and equal beginnings, where the return is compared twice; a group of returns of 0 gets
    exactly 0 (but for what unreadable actions cost), and where all succeed the discount still
    prefers the shorter way.
    """
    return Recipe(
        name="gigpo",
        paper="GiGPO, arXiv 2505.10978",
        rollout=Chains(n=8),
        credit=StateCredit(term=StateReturns(gamma=0.95), invalid_penalty=0.01),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.2),
            aggregate=TokenMean(),
            kl=Kl(coef=0.01, kind="k3"),
        ),
        annotators=(RefLogprobs(),),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=16,
    )
