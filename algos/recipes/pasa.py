"""PaSa: sessions that are credited with the value of the sessions they request."""

from __future__ import annotations

from ..core.annotators import CriticValues, OldLogprobs, RefLogprobs, SpawnedValues
from ..core.recipe import Optim, Recipe
from ..credit import SessionCredit
from ..losses import ActorCriticLoss, Clip, PolicyLoss, TokenMean, ValueLoss
from ..rollouts import Sessions
from .registry import SMALL_CRITIC, SMALL_SINGLE, recipe


@recipe(
    "session-level PPO, credit through the sessions asked for",
    small={
        **SMALL_SINGLE,
        **SMALL_CRITIC,
        "optim.epochs": 1,
        "optim.minibatches": 4,
        "optim.critic_only_steps": 10,
        "credit.kl_coef": 0.001,
        "credit.gamma1": 0.9,
        "loss.value.coef": 1.0,
        "loss.value.clip": 0.5,
        "temperature": 1.0,
    },
)
def pasa() -> Recipe:
    """PaSa (arXiv 2501.10120), section 4.3 and table 12.

    Session-level PPO: the first session of each query, then a random draw of the papers found, two
    layers deep, out of whole crawls. An action is worth its reward plus 0.1 times the critic's
    values of the sessions it asked for (equation 3), KL 0.1 per token; clip 0.2 for policy and
    value, value weight 10, two passes per batch, learning rate 1e-6, temperature 0.7, the first 50
    steps train the critic alone (two passes each). Scores are clipped to [-0.1, 5] and at most 5
    sessions per action count (released code).

    Differs from the paper:
        - returns are Monte Carlo (lambda 1, equation 3); the released code has 0.95;
        - advantages are whitened over the batch (the code);
        - the rewards alpha and the costs are the environment's settings;
        - papers are drawn per query, 1.5 on average, not 6 from the pool of 4 queries;
        - sessions come from whole crawls (``queue="full"``), so that novelty is decided by the
          queue of a whole crawl. The paper plays only the drawn ones (``queue="sampled"``): their
          queue is almost empty, novelty looks cheap, and the policy opens too many sections.

    Degenerate cases: the critic's fixed point exists only while gamma1 times the sessions asked for
    stays below 1 (the score clip bounds it); an environment without sessions is cut into windows of
    turns.
    """
    return Recipe(
        name="pasa",
        paper="PaSa, arXiv 2501.10120",
        rollout=Sessions(queue="full"),
        credit=SessionCredit(gamma0=1.0, gamma1=0.1, kl_coef=0.1, score_clip=(-0.1, 5.0)),
        loss=ActorCriticLoss(
            policy=PolicyLoss(clip=Clip(low=0.2, high=0.2), aggregate=TokenMean()),
            value=ValueLoss(coef=10.0, clip=0.2),
        ),
        annotators=(OldLogprobs(), RefLogprobs(), CriticValues(), SpawnedValues(max_sessions=5)),
        optim=Optim(lr=1e-6, critic_lr=1e-6, epochs=2, critic_only_steps=100),
        groups_per_step=64,
        temperature=0.7,
    )
