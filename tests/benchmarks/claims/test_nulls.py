"""The law of the rule: what it says about arms without a difference."""

from __future__ import annotations

import numpy as np
import pytest

from turngym.benchmarks.claims import nulls, verdicts
from turngym.benchmarks.claims.nulls import NULLS, Rates, pool_by_shape, simulate_nulls
from turngym.benchmarks.claims.outcome import Finding
from turngym.benchmarks.cli.main import main


@pytest.fixture(scope="module")
def found():
    return list(simulate_nulls(trials=250))


def test_each_shape_keeps_the_bounds(found) -> None:
    shapes = pool_by_shape(found)
    assert len(shapes) == 7
    assert {rates.name: rates.broken(2.0) for rates in shapes} == {
        rates.name: [] for rates in shapes
    }
    total = sum(rates.claims for rates in shapes)
    assert total == 250 * 2 * len(NULLS)
    for what, low, high in (
        ("reproduced", 0.005, 0.025),
        ("significant", 0.02, 0.05),
        ("covered", 0.95, 0.98),
    ):
        assert low <= sum(getattr(r, what) * r.claims for r in shapes) / total <= high


def test_no_single_null_stands_out(found) -> None:
    for _, rates in found:
        assert rates.broken(3.5) == [], rates


def test_the_same_rates_every_time(found) -> None:
    first = list(simulate_nulls(NULLS[:1], trials=250))
    assert first == found[:2]


def test_a_rule_without_seeds_as_a_source_of_error_is_caught(monkeypatch) -> None:
    """Intervals of a tenth of the width, as from flipping tasks instead of seeds."""
    honest = verdicts.compare_seeds

    def narrow(*arms, **more):
        test = honest(*arms, **more)
        half = (test.high95 - test.low95) / 20
        ends = {"low95": test.difference - half, "high95": test.difference + half}
        return test.model_copy(update={**ends, "p_value": test.p_value**6, "permutation_p": 0.001})

    monkeypatch.setattr(verdicts, "compare_seeds", narrow)
    (_, rates), *_ = simulate_nulls(NULLS[:1], seeds=(5,), trials=300)
    assert [said.split()[0] for said in rates.broken(3.0)] == ["reproduced", "p", "not"]


def test_a_real_difference_is_found() -> None:
    """A rule that never says anything would keep every bound."""
    rng = np.random.default_rng(0)
    found: list[Finding] = []
    for values in rng.normal(0.5, 0.1, (200, 2, 10)) + np.array([[[0.2], [0.0]]]):
        arms = {n: nulls.make_arm(n, row, 0) for n, row in zip("ab", values, strict=True)}
        comparison = nulls.Comparison(better="a", worse="b", measure="value", min_effect=0.05)
        found += verdicts.decide([comparison], arms)
    assert sum(f.verdict == "reproduced" for f in found) >= 190
    for finding in found[:5]:
        assert finding.test is not None
        assert 0.05 < finding.test.detectable < 0.3


def test_bounds_are_named_when_they_break() -> None:
    bad = Rates("flips of tasks", 3, 100, 0.13, 0.77, 0.75)
    assert bad.broken() == ["reproduced 13.0%", "p <= 0.05 77.0%", "not covered 25.0%"]
    assert Rates("fine", 5, 100, 0.025, 0.06, 0.94).broken() == []
    near = Rates("near", 5, 100, 0.03, 0.05, 0.95)
    assert near.broken() == ["reproduced 3.0%"]
    assert near.broken(2.0) == []


def test_the_command_prints_the_rates_and_fails_out_of_bounds(capsys, monkeypatch) -> None:
    monkeypatch.setattr(nulls, "NULLS", NULLS[:1])
    monkeypatch.setattr(nulls, "TRIALS", 50)
    assert main(["claims", "--null"]) == 0
    told = capsys.readouterr().out
    assert "normal" in told
    assert "None out of bounds" in " ".join(told.split())
    monkeypatch.setattr(nulls, "MAX_SIGNIFICANT", 0.0)
    monkeypatch.setattr(nulls, "ERRORS", 0.0)
    with pytest.raises(SystemExit) as ended:
        main(["claims", "--null"])
    assert ended.value.code == 1
    assert "p <= 0.05" in capsys.readouterr().out
