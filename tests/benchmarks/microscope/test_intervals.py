"""The microscope's intervals hold what they should, however few units there are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from turngym.benchmarks.microscope.intervals import FEW, differences_of, drawn_weights, values_of
from turngym.benchmarks.microscope.metrics import gradient_measures, gradient_table
from turngym.benchmarks.microscope.study import _Draws

SAMPLES = 200


def weights(units: int) -> np.ndarray:
    return np.concatenate([np.ones((1, units)), drawn_weights(units, SAMPLES)])


@pytest.mark.parametrize("units", [2, 3, 5, 9, 10, 24])
def test_intervals_of_a_mean_hold_it(units: int) -> None:
    """Of three units the bootstrap's held it in 70 %."""
    rng, drawn = np.random.default_rng(units), weights(units)
    assert len(drawn) - 1 == (units if units < FEW else SAMPLES)
    held = 0
    for _ in range(400):
        value = values_of({"mean": drawn @ rng.normal(size=units) / drawn.sum(axis=1)})["mean"]
        assert value.low95 is not None
        assert value.high95 is not None
        held += value.low95 <= 0 <= value.high95
    assert held >= (0.92 if units < FEW else 0.86) * 400


def test_three_batches_have_all_measures_of_gradients() -> None:
    """A bootstrap sample of one batch alone has no pair, so that two of them never had a value."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=50)
    batches = true + 0.3 * rng.normal(size=(3, 50))
    h1, h2 = (batches + 0.1 * rng.normal(size=(3, 50)) for _ in range(2))
    own = true + 0.5 * rng.normal(size=(3, 50))
    table = gradient_table(own, ((h1 + h2) / 2, h1, h2), np.full(3, 256.0))
    found = gradient_measures(table, weights(3))
    shown = values_of(found)
    assert {"signal_per_1k", "cosine_batch", "cosine_mean"} <= set(shown)
    assert set(shown) == {name for name, drawn in found.items() if np.isfinite(drawn[0])}
    unsure = {name for name in shown if (found[name] == 1.0).all()}  # clipped, whoever is left out
    for name in shown.keys() - unsure:
        value = shown[name]
        assert value.low95 is not None
        assert value.high95 is not None
        assert value.low95 <= value.value <= value.high95
    same = differences_of(found, found)
    for name in same.keys() - unsure:
        value = same[name]
        assert (value.value, value.low95, value.high95) == (0.0, 0.0, 0.0)


def test_a_recipe_of_few_units_has_the_interval_of_few_beside_one_of_many() -> None:
    """Its units were drawn among the other's: too sure, and without a value in many samples."""
    few, many = (SimpleNamespace(names=[f"task/{i}" for i in range(n)]) for n in (3, 24))
    seen: Any = [SimpleNamespace(sample=sample) for sample in (few, many)]
    draws = _Draws(seen, SAMPLES)
    ours, theirs = draws.weights(seen[0].sample), draws.weights(seen[1].sample)
    assert ours.tolist() == weights(3).tolist()
    assert theirs.shape == (1 + SAMPLES, 24)
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        one, other = rng.normal(size=3), rng.normal(size=24)
        measured = {"mean": ours @ one / ours.sum(axis=1)}
        found = differences_of(measured, {"mean": theirs @ other / theirs.sum(axis=1)})["mean"]
        assert found.value == pytest.approx(one.mean() - other.mean())
        assert found.low95 is not None
        assert found.high95 is not None
        held += found.low95 <= 0 <= found.high95
    assert held >= 0.92 * 400


def test_what_has_no_value_without_some_unit_is_left_out() -> None:
    assert values_of({"one": np.array([0.4, 0.5, np.nan, 0.3])}) == {}
    alone = values_of({"bias": np.array([0.2])})["bias"]
    assert (alone.value, alone.low95, alone.high95) == (0.2, None, None)


def test_units_that_agree_have_no_interval() -> None:
    """A sign that three batches have right was printed as 1.00 (1.00 to 1.00)."""
    assert values_of({"many": np.ones(1 + SAMPLES)})["many"].low95 is None
    same, apart = np.array([1.0, 1.0, 1.0, 1.0]), np.array([0.5, 0.4, 0.5, 0.6])
    rounded = same * 0.3 + np.array([0.0, 1e-17, 0.0, -1e-16])
    found = values_of({"same": same, "rounded": rounded, "apart": apart})
    assert (found["same"].value, found["same"].low95, found["same"].high95) == (1.0, None, None)
    assert found["rounded"].low95 is None
    assert found["apart"].low95 is not None
    both = differences_of({"sign": same, "rank": apart}, {"sign": same, "rank": apart})
    assert both["sign"].low95 is None
    assert (both["rank"].low95, both["rank"].high95) == (0.0, 0.0)
