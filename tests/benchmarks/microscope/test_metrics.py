"""Measures of turns at the edges of what they are defined for."""

from __future__ import annotations

import numpy as np

from turngym.benchmarks.microscope.metrics import exact_table, group_sums, spearman, turn_measures


def measures(group: list[int], credit: list[float], truth: list[float]) -> dict[str, float]:
    table = exact_table(np.array(group), np.array(credit), np.array(truth))
    sums = group_sums(table, max(group) + 1)
    found = turn_measures(sums, np.ones((1, max(group) + 1)))
    return {name: float(values[0]) for name, values in found.items()}


def test_groups_of_one_turn_have_no_order() -> None:
    """Each of them was called silent, and its rank correlation 0."""
    alone = measures([0, 1, 2], [1.0, -1.0, 2.0], [0.5, -0.5, 0.25])
    assert np.isnan([alone[name] for name in ("rank", "rank_ceiling", "constant_groups")]).all()
    assert alone["sign_low"] == alone["cosine_turns"] == 1.0
    beside = measures([0, 1, 1, 1], [1.0, 3.0, 2.0, 1.0], [0.5, 0.3, 0.2, 0.1])
    assert beside["rank"] == 1.0
    assert beside["constant_groups"] == 0.0
    silent = measures([0, 1, 1], [1.0, 2.0, 2.0], [0.5, 0.3, 0.2])
    assert silent["constant_groups"] == 1.0


def test_groups_without_an_order_in_the_truth_are_counted() -> None:
    """A perfect credit has half of the rank then, which looks like noise of the truth."""
    truth = [0.5, 0.3, 0.2, 0.0, 0.0, 0.0, 0.7]
    found = measures([0, 0, 0, 1, 1, 1, 2], truth, truth)
    assert found["rank"] == found["flat_groups"] == 0.5
    assert found["rank"] / found["rank_ceiling"] < 0.62  # as the documentation says


def test_what_differs_by_rounding_is_constant() -> None:
    assert measures([0, 0], [1.0, 1.0 + 1e-8], [0.5, 0.3])["constant_groups"] == 1.0
    # wherever they lie: no grid's border is between them
    near = np.array([0.82871718, 0.82871722, 1.044, -0.3])
    exact, truth = np.array([0.8, 0.8, 1.0, -0.3]), np.array([0.1, 0.2, 0.3, 0.4])
    assert spearman(near, truth) == spearman(exact, truth)
