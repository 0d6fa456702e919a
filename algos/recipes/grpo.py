"""GRPO: the group's mean return as the baseline, no critic."""

from __future__ import annotations

from ..core.annotators import RefLogprobs
from ..core.recipe import Optim, Recipe
from ..core.schedule import warmup_steps
from ..credit import GroupCredit
from ..losses import Clip, Kl, PolicyLoss, TokenMean
from ..rollouts import Chains
from .registry import SMALL_CHAINS, recipe


@recipe(
    "group mean as baseline, no critic",
    small={**SMALL_CHAINS, "loss.entropy_coef": 0.0},
)
def grpo() -> Recipe:
    """DeepSeekMath (arXiv 2402.03300), with the settings of Search-R1 (arXiv 2503.09516).

    Search-R1's released scripts: 5 chains per prompt, 512 prompts and 10 optimiser steps per
    batch, learning rate 1e-6 with warm-up over 0.285 of 1,005 steps, clip 0.2, mean over tokens,
    k3 against the reference as a loss (0.001, each token at most 10), entropy bonus 0.001.

    Differs from the paper:
        - the mean runs over all tokens (Search-R1's code), not over each path first (equation 3
          of DeepSeekMath): set ``loss.aggregate=seq-mean-token-mean`` for that;
        - the token mean is over the whole mini batch, where the code averages micro batches;
        - sampling uses the whole distribution (the scripts leave top_p at 0.95);
        - sampled ids are trained as they are, end of text included; the code cuts the text and
          tokenises it again.

    Degenerate cases: a group of one path gets advantage 0 (the code: its raw return), so
    ``rollout.n=1`` is refused; a group of equal returns gets exactly 0.
    """
    return Recipe(
        name="grpo",
        paper="DeepSeekMath, arXiv 2402.03300; settings of Search-R1, arXiv 2503.09516",
        rollout=Chains(n=5),
        credit=GroupCredit(baseline="mean", scale="std"),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.2),
            aggregate=TokenMean(),
            kl=Kl(coef=0.001, kind="k3"),
            entropy_coef=0.001,
        ),
        annotators=(RefLogprobs(),),
        optim=Optim(lr=1e-6, warmup_steps=warmup_steps(0.285, 1005), minibatches=10),
        groups_per_step=512,
    )
