"""CISPO: importance weights are bounded, tokens are not clipped."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import Cispo, MaskedLoss, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("bounded importance weights instead of a clip", small=SMALL_CHAINS)
def cispo() -> Recipe:
    """CISPO of MiniMax-M1 (arXiv 2506.13585, equations 4 and 5).

    GRPO's advantages; each token's gradient is weighted by its importance ratio, bounded above and
    held constant, so that no token loses its gradient, however far it moved. No lower bound; mean
    over all tokens of the batch; no KL.

    ``loss.delta`` adds the row mask of ARL-Arena (arXiv 2602.21534): without it, CISPO collapsed
    there near step 130 (54.4 on ALFWorld; 78.9 with it).

    Differs from the paper:
        - the upper bound of 4 above 1 is SkyRL's default, the paper's is not stated;
        - group size, batch, mini batches and learning rate are Search-R1's, as in
          :func:`~turngym.algos.recipes.grpo`;
        - the loss is written such that at ratio 1 it has the value of PPO's, the gradient is the
          paper's.

    Degenerate cases: a group of one path is refused, a group of equal returns gets exactly 0. With
    one optimiser step per batch this is GRPO without KL and entropy bonus.
    """
    return Recipe(
        name="cispo",
        paper="MiniMax-M1, arXiv 2506.13585",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=MaskedLoss(
            of=PolicyLoss(ratio="token", clip=Cispo(low=1.0, high=4.0), aggregate=TokenMean()),
            delta=None,
            unit="turn",
        ),
        optim=Optim(lr=1e-6, minibatches=10),
        groups_per_step=512,
    )
