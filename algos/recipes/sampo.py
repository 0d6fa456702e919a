"""SAMPO: credit by state, ratios of turns and a row mask, for many stable updates."""

from __future__ import annotations

from ..core.annotators import RefLogprobs
from ..core.filters import DynamicSampling
from ..core.recipe import Optim, Recipe
from ..credit import StateCredit, StateReturns
from ..losses import Clip, Kl, MaskedLoss, PathMeanTokenMean, PolicyLoss
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe(
    "GiGPO's credit, ratios of turns, a row mask, groups that tell something",
    small={**SMALL_CHAINS, "filter.max_rounds": 3},
)
def sampo() -> Recipe:
    """SAMPO of ARL-Arena (arXiv 2602.21534).

    GiGPO's credit (z-scores, weight 1, discount 0.95; an unreadable action costs nothing here,
    ``credit.invalid_penalty=0.01`` is that recipe's price), the ratio of a turn clipped at 3e-3
    below and 4e-3 above, mean over each path's tokens and then over paths, k3 against the reference
    as a loss (0.01), groups of equal returns are replaced (at most 3 rounds of playing), and turns
    are dropped that were punished and have fallen by more than 3e-3 nats a token (the scripts).

    Differs from the paper:
        - the filter acts from the first step on, the code's from update 15;
        - its trainer has one row per turn, so what it calls the ratio and the mask of a sequence
          are a turn's; here a path has several turns in one row;
        - states are equal by the environment's own identity, as in
          :func:`~turngym.algos.recipes.gigpo`; group size and batch are that recipe's too.

    Degenerate cases: a step in which every group was filtered out changes nothing; with one
    optimiser step per batch no ratio leaves 1 and nothing is masked. Where all states are unique
    it is turn-level GSPO.
    """
    return Recipe(
        name="sampo",
        paper="SAMPO of ARL-Arena, arXiv 2602.21534",
        rollout=Chains(n=8),
        credit=StateCredit(term=StateReturns(gamma=0.95)),
        loss=MaskedLoss(
            of=PolicyLoss(
                ratio="turn",
                clip=Clip(low=3e-3, high=4e-3),
                aggregate=PathMeanTokenMean(),
                kl=Kl(coef=0.01, kind="k3"),
            ),
            delta=3e-3,
            unit="turn",
        ),
        annotators=(RefLogprobs(),),
        filter=DynamicSampling(max_rounds=3),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=16,
    )
