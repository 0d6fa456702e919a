"""Claims of GiGPO (arXiv 2505.10978): advantages of actions among the visits of a state."""

from __future__ import annotations

from typing import Any

from ..matrix.suite import Limits, SuiteEnv, TaughtStart
from .claim import Claim, Source, above, equal
from .experiments import NO_REFERENCE, ONE_UPDATE, TrainedArm, Training, train_arm

_PAPER = "GiGPO, arXiv 2505.10978"
HOUSEHOLD_LR = 2e-4
_HOUSE = SuiteEnv(
    id="Household-v0",
    settings={"size": "micro", "max_steps": 12},
    start=TaughtStart(settings={"read_least": 0.0}, world={"size": "micro"}),
    limits=Limits(tokens=40_000, calls=40_000),
    max_tokens=16,
    eval_tasks=60,
    eval_every=0,
    recipe_settings={
        **ONE_UPDATE,
        **NO_REFERENCE,
        "optim.lr": HOUSEHOLD_LR,
        "tokens_per_step": 3_000,
    },
)
"""Micro rooms, from the package's starter. Its failed episodes go in circles to the end; a limit of
12 commands, within which the searcher wins 97 % of the tasks, halves the price of a step."""
_WEAK = (
    "Micro rooms, a model of half a million parameters, 13 steps of one update: the mechanism "
    "early in training. The penalty on inadmissible commands is left out of all arms."
)


def _paths(name: str, recipe: str, **settings: Any) -> TrainedArm:
    return train_arm(name, recipe, _HOUSE, rollout__n=8, **settings)


_GRPO = _paths("grpo", "grpo")

STATE_CLAIMS = (
    Claim(
        name="gigpo-above-grpo",
        statement="Comparing actions that were taken in the same state, beside whole episodes, "
        "trains a better agent than GRPO at an equal budget.",
        source=Source(
            paper=_PAPER,
            where="table 1, ALFWorld",
            figure="GiGPO above GRPO: 86.7 against 72.8 (1.5B) and 90.8 against 77.6 (7B)",
        ),
        experiment=Training(arms=(_paths("gigpo", "gigpo", credit__invalid_penalty=0.0), _GRPO)),
        comparisons=(above("gigpo", "grpo", 0.03, "area"),),
        minutes=12,
        weaker=_WEAK,
    ),
    Claim(
        name="gigpo-control",
        statement="Where no state is met twice, GiGPO is as good as GRPO.",
        source=Source(
            paper=_PAPER,
            where="section 4.2",
            figure="unique states have no group, so what is left is GRPO's advantage",
        ),
        experiment=Training(
            arms=(
                _paths(
                    "gigpo, states by history",
                    "gigpo",
                    credit__invalid_penalty=0.0,
                    credit__identity="history",
                ),
                _GRPO,
            )
        ),
        comparisons=(equal("gigpo, states by history", "grpo", 0.05, "area"),),
        minutes=12,
        weaker=_WEAK + " The first turn of an episode is shared by the group and counts twice.",
    ),
)
