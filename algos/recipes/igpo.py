"""IGPO: each turn is rewarded by what it adds to the probability of the accepted answer."""

from __future__ import annotations

from ..core.annotators import RefLogprobs
from ..core.hindsight import GoldLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import InformationGain
from ..losses import Clip, Kl, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("what each turn adds to the probability of the accepted answer", small=SMALL_CHAINS)
def igpo() -> Recipe:
    """Information Gain-based Policy Optimization (arXiv 2510.14967), settings of its script.

    After each turn the policy's own probability of the accepted answer is scored (the geometric
    mean of its tokens', behind the environment's opener of an answer); its gain rewards the turn
    and the outcome the last one. Gains and outcomes are z-scored in the group and summed from each
    turn on. 16 paths for each of 32 tasks, learning rate 1e-6, clip 0.2, k3 (0.001).

    Differs from the paper:
        - of several accepted answers the likeliest counts; the code scores them as one string;
        - gamma 1 and the unbiased deviation: the paper's are not known, and the code of 2025-11
          takes off means alone; ``credit.normalise=joint`` is its other mode;
        - no curriculum of weights, no outcome of -2 for a wrong form: set the environment's own.

    Degenerate cases: an environment without accepted answers is refused; a path of one turn has the
    outcome alone; equal outcomes still leave the gains (the point: learning where all fail), equal
    gains the outcomes, and both 0. The gains of a path add up to the last probability less the
    first, so without discount a detour costs what comparing takes off each of its turns, the
    group's mean gain.
    """
    return Recipe(
        name="igpo",
        paper="IGPO, arXiv 2510.14967",
        rollout=Chains(n=16),
        credit=InformationGain(gain="probability", normalise="separate", gamma=1.0),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.2),
            aggregate=TokenMean(),
            kl=Kl(coef=0.001, kind="k3"),
        ),
        annotators=(RefLogprobs(), GoldLogprobs()),
        optim=Optim(lr=1e-6, minibatches=8),
        groups_per_step=32,
    )
