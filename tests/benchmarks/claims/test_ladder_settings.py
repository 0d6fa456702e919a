"""Claims whose text says that they have the ladder's settings have them."""

from __future__ import annotations

import pytest

from turngym.benchmarks.claims.catalogue import CLAIMS
from turngym.benchmarks.claims.experiments import Training
from turngym.benchmarks.ladder.families import FAMILIES
from turngym.benchmarks.ladder.suites import column_of

OF_LADDER = {
    "tree-above-grpo": "Lottery",
    "tree-smallest-budget": "Lottery",
    "tree-advantages": "Lottery",
    "tree-control": "Lottery",
    "arpo-above-grpo": "Fog",
    "arpo-control": "Fog",
    "arpo-half-calls": "Fog",
    "tarl-above-grpo": "Judge",
    "tarl-trajectory": "Judge",
    "tarl-control": "Judge",
    "pasa-sessions": "Spawn",
    "pasa-control": "Spawn",
}


@pytest.mark.parametrize("claim", OF_LADDER)
def test_start_rate_tokens_and_steps_are_those_of_the_family_s_middle(claim: str) -> None:
    family = FAMILIES[OF_LADDER[claim]]
    theirs = column_of(family, family.middle)
    experiment = CLAIMS[claim].experiment
    assert isinstance(experiment, Training)
    for arm in experiment.arms:
        mine = arm.column
        settings = {**mine.recipe_settings, **arm.settings}
        assert mine.id == theirs.id
        assert mine.start == theirs.start
        assert mine.limits.tokens == theirs.limits.tokens
        assert settings["tokens_per_step"] == theirs.tokens_per_step
        # tarl and grpo without judgements are one rule, so they have one rate
        own = {} if claim == "tarl-control" else family.rates
        assert settings["optim.lr"] == own.get(arm.recipe, family.lr)
