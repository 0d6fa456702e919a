"""RLOO: each path against the mean of the others."""

from __future__ import annotations

from ..core.annotators import OldLogprobs, RefLogprobs
from ..core.recipe import Optim, Recipe
from ..credit import GroupCredit
from ..losses import Clip, PathMeanTokenMean, PolicyLoss
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe("mean of the other paths as baseline", small=SMALL_CHAINS)
def rloo() -> Recipe:
    """Back to Basics (arXiv 2402.14740), section 2.2: REINFORCE leave-one-out.

    ``R_i`` minus the mean return of the prompt's other paths. A whole path is one action: k1 of its
    tokens is summed and taken off its return (coefficient 0.05, TRL's default), its ratio is the
    exponential of the summed log-ratio, clipped at 0.2 as TRL does it, and the loss is the mean
    over paths. Four chains per prompt.

    Differs from the paper:
        - ratio and clip, which the original REINFORCE has not: with the single optimiser step per
          batch that is set here the ratio is 1, and they do nothing;
        - batch and learning rate are Search-R1's.

    Degenerate cases: a group of one is refused; the ratio of a long path leaves the clip range
    after one step, so more than one optimiser step per batch trains on few paths.
    """
    return Recipe(
        name="rloo",
        paper="RLOO, arXiv 2402.14740",
        rollout=Chains(n=4),
        credit=GroupCredit(baseline="leave-one-out", scale="none", kl_coef=0.05),
        loss=PolicyLoss(
            ratio="sequence-sum",
            clip=Clip(low=0.2, high=0.2),
            aggregate=PathMeanTokenMean(),
        ),
        annotators=(OldLogprobs(), RefLogprobs()),
        optim=Optim(lr=1e-6, minibatches=1),
        groups_per_step=512,
    )
