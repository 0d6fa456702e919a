"""SPEAR: GRPO that imitates its own good paths some steps later, with a bonus for acting."""

from __future__ import annotations

from ..core.annotators import OldLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import Clip, PathMeanConstant, PolicyLoss
from ..rewards.shaping import TurnBonus
from ..rollouts import Chains
from ..rollouts.self_imitation import SelfImitation
from .registry import SMALL_CHAINS, recipe


@recipe(
    "imitates its own good paths some steps later, with a fading bonus for acting",
    small={
        **SMALL_CHAINS,
        "tracker.paths": 64,
        "tracker.warmup": 20,
        "shapers.turn_bonus.until": 40,
    },
)
def spear() -> Recipe:
    """Self-imitation with progressive exploration (SPEAR, arXiv 2509.22601).

    GRPO; every path with an advantage above 0 is stored. When 1.5 times 2048 lie there, those
    above the median of the last 10,240 groups' mean returns are trained on in an update of their
    own, with the log-probabilities of then as base, 2 % of the tokens left out by covariance, and a
    weight that rises from 0 to 1 in 100 steps. A bonus of 0.1 per turn, at most 1, fades out over
    200 steps. Clip 0.2 and 0.28, sum over tokens by a fixed length.

    Differs from the paper:
        - paths with a new advantage of exactly 0 are left out (its code keeps them);
        - tokens are left out once for each such update, not once for each micro batch;
        - the step's own update has the same loss;
        - every turn earns the bonus, whether or not it called a tool; group size, batch and
          learning rate are GRPO's.

    Degenerate cases: until the store is full, and where nothing is better than the median, this is
    GRPO with the bonus; losses with a reference or a critic are refused.
    """
    return Recipe(
        name="spear",
        paper="SPEAR, arXiv 2509.22601",
        rollout=Chains(n=5),
        credit=GroupCredit(),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.28),
            aggregate=PathMeanConstant(length=2048),
        ),
        annotators=(OldLogprobs(),),
        shapers=(TurnBonus(bonus=0.1, most=1.0, until=200),),
        tracker=SelfImitation(),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
