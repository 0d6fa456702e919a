"""Claims whose arms have to act take what they start from and learn with from the ladder."""

from __future__ import annotations

import pytest

from turngym.benchmarks.claims.catalogue import CLAIMS
from turngym.benchmarks.claims.experiments import Training
from turngym.benchmarks.claims.training import AREAS
from turngym.benchmarks.ladder.families import CONTROL, FAMILIES, Size
from turngym.benchmarks.ladder.suites import column_of


@pytest.mark.parametrize(
    ("claim", "family", "size"),
    [
        ("arpo-half-calls", "Fog", 0.3),
        ("arpo-above-grpo", "Fog", 0.3),
        ("arpo-control", "Fog", CONTROL),
        ("arpo-soft", "Fog", 0.3),
        ("pasa-sessions", "Spawn", 4),
        ("pasa-control", "Spawn", CONTROL),
        ("tree-control", "Lottery", CONTROL),
    ],
)
def test_start_rate_and_budget_are_those_of_the_ladder(
    claim: str, family: str, size: Size | str
) -> None:
    known = FAMILIES[family]
    column = column_of(known, size)
    experiment = CLAIMS[claim].experiment
    assert isinstance(experiment, Training)
    for arm in experiment.arms:
        settings = {**arm.column.recipe_settings, **arm.settings}
        assert arm.column.start == column.start
        assert column.settings.items() >= arm.column.settings.items()
        assert arm.column.settings[known.setting] == column.settings[known.setting]
        assert arm.column.limits.tokens == column.limits.tokens
        assert settings["tokens_per_step"] == column.tokens_per_step
        assert settings["optim.lr"] == known.rates.get(arm.recipe, known.lr)
        assert settings["optim.warmup_steps"] == column.recipe_settings["optim.warmup_steps"]
        compared = {c.measure for c in CLAIMS[claim].comparisons}
        assert compared <= {"success", "area", f"area_{known.measure}"}


def test_every_area_of_training_can_be_compared() -> None:
    assert set(AREAS) <= set(Training.measures)
