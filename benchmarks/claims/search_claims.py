"""Claims of Search-R1 (arXiv 2503.09516)."""

from __future__ import annotations

from .claim import Claim, Source, above
from .experiments import Training, probe, search, train_arm

_PAPER = "Search-R1, arXiv 2503.09516"
_RECALL = probe("Recall-v0", 9_000, 128, every=4)
_SEARCH = search()
_RACE = Training(
    arms=(
        train_arm("ppo", "ppo", _RECALL, optim__critic_lr=5e-3, credit__kl_coef=0.0),
        train_arm("grpo", "grpo", _RECALL, loss__kl__coef=0.0, rollout__n=8),
    )
)
_WEAK = (
    "Recall-v0 with a blank model of 0.1 million parameters; equal tokens and one update a step."
)

SEARCH_CLAIMS = (
    Claim(
        name="masking",
        statement="Leaving retrieved text out of the loss trains a better agent than training on "
        "it.",
        source=Source(
            paper=_PAPER,
            where="section on loss masking of retrieved tokens",
            figure="higher exact match and a stabler run with the mask",
        ),
        experiment=Training(
            arms=(
                train_arm("masked", "grpo", _SEARCH),
                train_arm("unmasked", "grpo", _SEARCH, train_observations=True),
            )
        ),
        comparisons=(above("masked", "unmasked", 0.03, "area"),),
        minutes=8,
        weaker="Two-hop questions with short passages; a long retrieved text would weigh more.",
    ),
    Claim(
        name="grpo-faster",
        statement="GRPO learns faster than PPO, whose critic has to warm up first.",
        source=Source(
            paper=_PAPER,
            where="comparison of PPO and GRPO",
            figure="GRPO's reward rises earlier in training",
        ),
        experiment=_RACE,
        comparisons=(above("grpo", "ppo", measure="area"),),
        minutes=5,
        weaker=_WEAK,
    ),
    Claim(
        name="ppo-steadier",
        statement="PPO's training is steadier than GRPO's: it falls less below what it had "
        "reached.",
        source=Source(
            paper=_PAPER,
            where="comparison of PPO and GRPO",
            figure="GRPO's reward collapses after many steps, PPO's does not",
        ),
        experiment=_RACE,
        comparisons=(above("ppo", "grpo", measure="fall", higher=False),),
        minutes=5,
        weaker=_WEAK + " The collapse came after hundreds of steps of a 3B model.",
    ),
)
