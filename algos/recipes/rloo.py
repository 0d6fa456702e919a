"""RLOO: each path against the mean of the others."""

from __future__ import annotations

from ..annotate import RefLogprobs
from ..credit import GroupCredit
from ..losses import Clip, Kl, PathMeanTokenMean, PolicyLoss
from ..recipe import Optim, Recipe
from ..rollouts import Chains


def rloo() -> Recipe:
    """Back to Basics (arXiv 2402.14740), section 2.2: REINFORCE leave-one-out.

    ``R_i`` minus the mean return of the prompt's other paths. A whole path is one action: its ratio
    is the exponential of the summed log-ratio, clipped at 0.2 as TRL does it, and the loss is the
    mean over paths. KL coefficient 0.05 (TRL's default), four chains per prompt.

    Differs from the paper:
        - the penalty is k2 in the loss, on average the same gradient as k1 in the reward, where
          the paper has it;
        - clipping, which the original REINFORCE has not (a single optimiser step makes it moot).

    Degenerate cases: a group of one is refused; the ratio of a long path leaves the clip range
    after one step, so more than one optimiser step per batch trains on few paths.
    """
    return Recipe(
        name="rloo",
        paper="RLOO, arXiv 2402.14740",
        rollout=Chains(n=4),
        credit=GroupCredit(baseline="leave-one-out", scale="none"),
        loss=PolicyLoss(
            ratio="sequence-sum",
            clip=Clip(low=0.2, high=0.2),
            aggregate=PathMeanTokenMean(),
            kl=Kl(coef=0.05, kind="k2"),
        ),
        annotators=(RefLogprobs(),),
        optim=Optim(lr=1e-6, minibatches=1),
        groups_per_step=512,
    )
