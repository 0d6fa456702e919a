"""Tree-GRPO: trees instead of chains, and steps compared within them."""

from __future__ import annotations

from ..core.annotators import RefLogprobs
from ..core.recipe import Optim, Recipe
from ..core.schedule import warmup_steps
from ..credit import TreeCredit
from ..losses import Clip, Kl, PolicyLoss, TokenMean
from ..rollouts import Expand
from .registry import SMALL_STEP, recipe


@recipe(
    "trees by random expansion, compared by prompt and by tree",
    small={**SMALL_STEP, "groups_per_step": 16, "loss.entropy_coef": 0.0},
)
def treegrpo() -> Recipe:
    """Tree Search for LLM Agent Reinforcement Learning (arXiv 2509.21240).

    Two trees per prompt, each expanded once from two random points (M, N, L = 2, 2, 1; section
    3.2): six paths for the price of about four chains. The advantage is the z-score over the prompt
    plus the z-score within the tree (3.3). Dual clip 3, k3 against the reference 0.001, entropy
    bonus 0.001, learning rate 1e-6 with warm-up over 0.285 of 180 steps, 8 steps per batch.

    Differs from the paper:
        - a scope of one path gets 0 (the code: its raw return), ``credit.singleton=raw`` for that;
        - the reward is the environment's; the code's ladder is SearchQA's ``format_score`` terms;
        - the token mean is over the mini batch (the paper writes a mean per path).

    Degenerate cases: with ``rollout.rounds=0`` this is GRPO.
    """
    return Recipe(
        name="treegrpo",
        paper="Tree-GRPO, arXiv 2509.21240",
        rollout=Expand(trees=2, nodes=2, rounds=1),
        credit=TreeCredit(terms="both"),
        loss=PolicyLoss(
            ratio="token",
            clip=Clip(low=0.2, high=0.2, dual=3.0),
            aggregate=TokenMean(),
            kl=Kl(coef=0.001, kind="k3"),
            entropy_coef=0.001,
        ),
        annotators=(RefLogprobs(),),
        optim=Optim(lr=1e-6, warmup_steps=warmup_steps(0.285, 180), minibatches=8),
        groups_per_step=512,
    )
