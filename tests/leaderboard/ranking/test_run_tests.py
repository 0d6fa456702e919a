"""Methods on the board of algorithms: compared over training runs, and with themselves."""

from __future__ import annotations

import numpy as np
import pytest

from turngym.envs.utils.seed_tests import Edges, compare_seeds
from turngym.envs.utils.statistics import holm
from turngym.leaderboard.ranking.run_tests import (
    Method,
    compare_halves,
    compare_neighbours,
    compare_reproduction,
)

EDGES = Edges(floor=0.0)
HIGH = (0.61, 0.64, 0.60, 0.66, 0.62, 0.63)
LOW = (0.41, 0.45, 0.39, 0.44, 0.40, 0.46)


def method(name: str, values: tuple[float, ...], first_seed: int = 0) -> Method:
    seeds = range(first_seed, first_seed + len(values))
    return Method(name, dict(zip(seeds, values, strict=True)), trained=True)


def reference(name: str, value: float) -> Method:
    return Method(name, {0: value}, trained=False)


def test_neighbours_are_compared_over_runs_with_holm_over_the_board() -> None:
    rows = [method("a", HIGH), method("b", LOW), method("c", tuple(v - 0.01 for v in LOW), 50)]
    above, middle, last = compare_neighbours(rows, EDGES)
    assert last is None
    assert above is not None
    assert middle is not None
    first, second = (
        compare_seeds(HIGH, LOW, paired=True),
        compare_seeds(LOW, [v - 0.01 for v in LOW], paired=False),
    )
    assert (above.other, above.paired, above.runs) == ("b", True, 6)
    assert (middle.other, middle.paired) == ("c", False)
    assert [above.p_value, middle.p_value] == [first.p_value, second.p_value]
    assert [above.adjusted_p, middle.adjusted_p] == holm([first.p_value, second.p_value])
    assert above.difference == pytest.approx(np.mean(HIGH) - np.mean(LOW))
    assert (above.low95, above.high95) == (first.low95, first.high95)
    assert (above.verdict, middle.verdict) == ("above", "not decided")
    assert "needs" in middle.why


def test_seeds_are_paired_whatever_their_order() -> None:
    ours = Method("a", {2: 0.5, 0: 0.7, 1: 0.6}, trained=True)
    theirs = Method("b", {0: 0.6, 1: 0.5, 2: 0.4}, trained=True)
    test = compare_neighbours([ours, theirs], EDGES)[0]
    assert test is not None
    assert test.low95 == pytest.approx(test.high95), "every seed differs by the same"
    assert test.verdict == "not decided"
    assert "at least 5" in test.why


def test_a_reference_row_is_one_number() -> None:
    rows = [reference("expert", 1.0), method("a", HIGH), reference("random", 0.1)]
    above, below, last = compare_neighbours([*rows, reference("null", 0.0)], EDGES)[:3]
    assert above is not None
    assert below is not None
    assert last is None, "two reference rows have no training runs between them"
    assert above.difference == pytest.approx(1.0 - np.mean(HIGH))
    assert below.difference == pytest.approx(np.mean(HIGH) - 0.1)
    assert not above.paired
    assert below.p_value == pytest.approx(compare_seeds(HIGH, [0.1] * 6).p_value)
    assert above.verdict == below.verdict == "above"


def test_methods_that_only_guess_are_not_compared() -> None:
    guess = tuple(0.1 + v / 100 for v in HIGH)
    test = compare_neighbours([method("a", guess), method("b", guess[::-1])], Edges(floor=0.11))[0]
    assert test is not None
    assert test.verdict == "not decided"
    assert "floor" in test.why


def test_a_method_is_compared_with_itself_by_every_second_run() -> None:
    test = compare_halves(method("a", (0.5, 0.1, 0.6, 0.2)), EDGES)
    assert test is not None
    assert (test.other, test.paired, test.runs) == ("a", False, 2)
    assert test.difference == pytest.approx(0.55 - 0.15)
    assert test.adjusted_p == test.p_value
    assert compare_halves(method("a", HIGH[:3]), EDGES) is None
    assert compare_halves(reference("expert", 1.0), EDGES) is None


def test_a_reproduction_is_compared_with_what_it_reproduces() -> None:
    test = compare_reproduction(method("again", LOW, 20), method("a", HIGH), EDGES)
    assert test is not None
    assert (test.other, test.paired, test.verdict) == ("a", False, "below")
    assert compare_reproduction(method("again", LOW), reference("expert", 1.0), EDGES) is None


def test_one_method_under_many_names_is_seldom_told_apart() -> None:
    """Boards of four equal methods: a false verdict anywhere on 5 % of them at most."""
    rng, boards, false, small = np.random.default_rng(0), 300, 0, 0
    for _ in range(boards):
        values = np.clip(rng.normal(0.5, 0.2, size=(4, 6)), 0.0, 1.0)
        values = values[np.argsort(-values.mean(axis=1))]  # as a board is ordered
        rows = [method(str(i), tuple(row), 10 * i) for i, row in enumerate(values.tolist())]
        tests = [test for test in compare_neighbours(rows, EDGES) if test is not None]
        false += any(test.verdict != "not decided" for test in tests)
        halves = [compare_halves(row, EDGES) for row in rows]
        small += sum(test is not None and test.p_value <= 0.05 for test in halves)
    assert false <= 0.05 * boards
    assert 0 < small <= 0.06 * 4 * boards
