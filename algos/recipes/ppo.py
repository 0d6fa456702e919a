"""PPO: a critic as the baseline, credit token by token."""

from __future__ import annotations

from ..core.annotators import CriticValues, OldLogprobs, RefLogprobs
from ..core.recipe import Optim, Recipe
from ..core.schedule import warmup_steps
from ..credit import Gae
from ..losses import ActorCriticLoss, Clip, PolicyLoss, TokenMean, ValueLoss
from ..rollouts import Chains
from .registry import SMALL_CRITIC, SMALL_SINGLE, recipe

SMALL_PPO = {
    **SMALL_SINGLE,
    **SMALL_CRITIC,
    "loss.policy.entropy_coef": 0.0,
}


@recipe("critic and GAE, KL in the reward", small=SMALL_PPO)
def ppo() -> Recipe:
    """PPO (arXiv 1707.06347) with GAE (arXiv 1506.02438), as Search-R1 runs it (arXiv 2503.09516).

    Search-R1's released scripts: one chain per prompt, 512 prompts and 2 optimiser steps per
    batch, gamma = lambda = 1, advantages whitened over the batch, the penalty 0.001 * k1 taken off
    each token's reward, policy and value clip 0.2 and 0.5, learning rates 1e-6 (warm-up 0.285 of
    1,005 steps) and 1e-5, entropy bonus 0.001. The value after the end is 0 for truncated episodes
    too: the turn limit is part of the task, and staying silent must not pay. Set
    ``credit.bootstrap=true`` where it is not.

    Differs from the paper:
        - GAE, whitening and the value loss run over action tokens only; the code also counts the
          tokens of observations;
        - the critic warms up as long as the policy (the scripts: 15 steps);
        - token means are over the whole mini batch, where the code averages micro batches.

    Degenerate cases: one token in the batch, or equal advantages everywhere, whiten to 0.
    """
    return Recipe(
        name="ppo",
        paper="PPO, arXiv 1707.06347; settings of Search-R1, arXiv 2503.09516",
        rollout=Chains(n=1),
        credit=Gae(gamma=1.0, lam=1.0, whiten=True, kl_coef=0.001, bootstrap=False),
        loss=ActorCriticLoss(
            policy=PolicyLoss(
                clip=Clip(low=0.2, high=0.2), aggregate=TokenMean(), entropy_coef=0.001
            ),
            value=ValueLoss(clip=0.5),
        ),
        annotators=(OldLogprobs(), RefLogprobs(), CriticValues()),
        optim=Optim(lr=1e-6, critic_lr=1e-5, warmup_steps=warmup_steps(0.285, 1005), minibatches=2),
        groups_per_step=512,
    )
