"""SAPO: a soft gate on the importance ratio instead of a clip."""

from __future__ import annotations

from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import MaskedLoss, PathMeanTokenMean, PolicyLoss, Sapo
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("a soft gate on the ratio instead of a clip", small=SMALL_CHAINS)
def sapo() -> Recipe:
    """Soft Adaptive Policy Optimization (arXiv 2511.20347).

    GRPO's advantages; a token's gradient is weighted ``4 s (1 - s) rho`` with
    ``s = sigmoid(tau (rho - 1))``: 1 at ratio 1, fading smoothly on both sides, sooner where the
    advantage is negative (tau 1.05 against 1). Mean over each path's tokens, then over paths; no
    KL.

    ``loss.delta`` adds the row mask of ARL-Arena (arXiv 2602.21534): without it, SAPO collapsed
    there near step 130 (25.2 on ALFWorld; 76.9 with it).

    Differs from the paper:
        - group size, batch and learning rate are Search-R1's; four optimiser steps per batch;
        - tau is chosen by the sign of each token's advantage (verl), which is one per path here.

    Degenerate cases: a group of one path is refused, a group of equal returns gets exactly 0. With
    one optimiser step per batch this is GRPO averaged path by path.
    """
    return Recipe(
        name="sapo",
        paper="SAPO, arXiv 2511.20347",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=MaskedLoss(
            of=PolicyLoss(
                ratio="token",
                clip=Sapo(positive=1.0, negative=1.05),
                aggregate=PathMeanTokenMean(),
            ),
            delta=None,
            unit="turn",
        ),
        optim=Optim(lr=1e-6, minibatches=4),
        groups_per_step=512,
    )
