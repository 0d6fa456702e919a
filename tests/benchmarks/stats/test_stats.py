"""Statistics: numbers worked out by hand, and laws."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import trim_mean

from turngym.benchmarks.stats import (
    area_under,
    holm,
    improvement,
    interquartile_mean,
    paired,
    pass_all,
    pass_any,
    stratified,
    two_stage,
    value_at,
)
from turngym.envs.errors import BadValueError

NUMBER = st.floats(-100, 100)
SAMPLE = st.lists(NUMBER, min_size=1, max_size=12)

# ---------------------------------------------------------------- means


def test_interquartile_mean_by_hand() -> None:
    assert interquartile_mean([1, 2, 3, 4]) == 2.5
    assert interquartile_mean([0, 10, 10, 1000]) == 10
    assert interquartile_mean([3]) == 3
    # of six values the second and fifth count half: (0.5 * 2 + 3 + 4 + 0.5 * 9) / 3
    assert interquartile_mean([1, 2, 3, 4, 9, 99]) == pytest.approx(12.5 / 3)


@given(st.lists(NUMBER, min_size=1, max_size=10).map(lambda v: v * 4))
def test_interquartile_mean_is_scipys_where_quarters_are_whole(values: list[float]) -> None:
    assert interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25), abs=1e-9)


@given(SAMPLE, NUMBER)
def test_interquartile_mean_lies_within_and_moves_along(values: list[float], by: float) -> None:
    got = interquartile_mean(values)
    assert min(values) - 1e-9 <= got <= max(values) + 1e-9
    assert interquartile_mean([v + by for v in values]) == pytest.approx(got + by, abs=1e-6)


def test_intervals_are_the_same_every_time_and_cover_the_mean() -> None:
    seeds = [[0.0, 1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 0.0]]
    first = stratified(seeds)
    assert first == stratified(seeds)
    assert first.mean == 0.5
    assert first.low95 < 0.5 < first.high95


def test_a_stratum_counts_the_same_however_large() -> None:
    assert stratified([[1.0] * 100, [0.0]]).mean == 0.5


def test_equal_values_have_an_interval_of_no_width() -> None:
    got = stratified([[2.0, 2.0], [4.0, 4.0, 4.0]])
    assert (got.mean, got.low95, got.high95) == (3.0, 3.0, 3.0)


def test_the_interval_of_one_stratum_is_that_of_its_mean() -> None:
    values = np.random.default_rng(0).normal(size=200)
    got = stratified([values])
    error = values.std() / np.sqrt(len(values))
    assert got.low95 == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert got.high95 == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_runs_that_differ_widen_the_interval() -> None:
    same = two_stage({"w": [[0.0, 1.0] * 20, [0.0, 1.0] * 20, [0.0, 1.0] * 20]})
    apart = two_stage({"w": [[0.0] * 40, [0.5] * 40, [1.0] * 40]})
    assert same.mean == apart.mean == 0.5
    assert apart.high95 - apart.low95 > 2 * (same.high95 - same.low95)


def test_worlds_are_never_resampled() -> None:
    got = two_stage({"easy": [[1.0, 1.0]], "hard": [[0.0, 0.0]]})
    assert (got.low95, got.high95) == (0.5, 0.5)


@pytest.mark.parametrize("bad", [{}, {"w": []}, {"w": [[]]}, {"w": [[float("nan")]]}])
def test_nothing_to_take_a_mean_of(bad: dict[str, list[list[float]]]) -> None:
    with pytest.raises(BadValueError, match="bootstrap"):
        two_stage(bad)


# ---------------------------------------------------------------- pass@k, pass^k


def test_passes_by_hand() -> None:
    assert pass_any(4, 1, 2) == 0.5  # 3 of the 6 pairs hold the solved try
    assert pass_all(4, 3, 2) == 0.5  # 3 of the 6 pairs are solved
    assert pass_any(3, 0, 3) == pass_all(3, 2, 3) == 0.0
    assert pass_any(3, 1, 3) == pass_all(3, 3, 3) == 1.0


@given(st.integers(1, 12), st.data())
def test_passes_are_means_over_all_choices(tries: int, data: st.DataObject) -> None:
    solved, k = data.draw(st.integers(0, tries)), data.draw(st.integers(1, tries))
    some, every = pass_any(tries, solved, k), pass_all(tries, solved, k)
    assert 0 <= every <= solved / tries + 1e-12 <= some + 1e-9 <= 1 + 1e-9
    # none of k solved is the same as all of k unsolved
    assert 1 - some == pytest.approx(pass_all(tries, tries - solved, k))
    assert pass_any(tries, solved, 1) == pytest.approx(solved / tries)
    assert every == comb(solved, k) / comb(tries, k)


@pytest.mark.parametrize("bad", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4), (0, 0, 1)])
def test_passes_refuse_what_does_not_fit(bad: tuple[int, int, int]) -> None:
    for rule in (pass_any, pass_all):
        with pytest.raises(BadValueError, match="pass@k"):
            rule(*bad)


# ---------------------------------------------------------------- areas


def test_areas_by_hand() -> None:
    assert area_under([0, 10], [0, 1], 10) == 0.5
    assert area_under([0, 5], [0, 1], 10) == 0.75  # half a budget's ramp, then flat
    assert area_under([0, 20], [0, 1], 10) == 0.25  # what lies beyond does not count
    assert area_under([4], [3], 10) == 3
    assert value_at([0, 10], [0, 1], 2.5) == 0.25
    assert value_at([0, 5, 5], [0, 1, 3], 5) == 3  # of equal places the last


@given(st.lists(st.tuples(st.integers(0, 50), NUMBER), min_size=1, max_size=8), st.integers(1, 60))
def test_an_area_lies_within_and_a_point_on_the_line_changes_nothing(
    points: list[tuple[int, float]], limit: int
) -> None:
    points = sorted(dict(points).items())
    xs, ys = [float(x) for x, _ in points], [y for _, y in points]
    got = area_under(xs, ys, limit)
    assert min(ys) - 1e-6 <= got <= max(ys) + 1e-6
    middle = (xs[0] + xs[-1]) / 2 + 0.25
    more = sorted([*zip(xs, ys, strict=True), (middle, value_at(xs, ys, middle))])
    again = area_under([x for x, _ in more], [y for _, y in more], limit)
    assert again == pytest.approx(got, abs=1e-6)


def test_no_curves() -> None:
    with pytest.raises(BadValueError, match="falls"):
        area_under([1, 0], [0, 0], 1)
    with pytest.raises(BadValueError, match="as many"):
        value_at([1, 2], [0], 1)
    with pytest.raises(BadValueError, match="limit"):
        area_under([0], [0], 0)


# ---------------------------------------------------------------- comparisons


def test_paired_by_hand() -> None:
    # five tasks, all better: of the 32 sign patterns only two are as extreme
    got = paired([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0])
    assert got.n == 6
    assert got.difference == pytest.approx(5 / 6)
    assert got.p_value == pytest.approx(2 / 32)
    assert 0 < got.low95 < got.difference <= got.high95 <= 1


def test_the_same_agents_do_not_differ() -> None:
    assert paired([0.5, 1.0], [0.5, 1.0]) == (2, 0.0, 0.0, 0.0, 1.0, 1.0)


def test_one_difference_proves_nothing() -> None:
    got = paired([1.0, 1.0], [0.0, 1.0])
    assert (got.difference, got.p_value) == (0.5, 1.0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=8))
def test_paired_is_antisymmetric(pairs: list[tuple[int, int]]) -> None:
    ours, theirs = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    one, other = paired(ours, theirs), paired(theirs, ours)
    assert one.difference == pytest.approx(-other.difference)
    assert one.p_value == pytest.approx(other.p_value)
    assert 0 < one.p_value <= 1


def test_improvement_by_hand() -> None:
    assert improvement([2, 3], [1, 2]) == (1 + 0.5 + 1 + 1) / 4
    assert improvement([1], [1]) == 0.5


@given(SAMPLE, SAMPLE)
@settings(deadline=None)
def test_improvements_of_both_sides_are_one(ours: list[float], theirs: list[float]) -> None:
    both = improvement(ours, theirs) + improvement(theirs, ours)
    assert both == pytest.approx(1)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    with pytest.raises(BadValueError, match="holm"):
        holm([1.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers(p: list[float]) -> None:
    got = holm(p)
    assert all(a >= b for a, b in zip(got, p, strict=True))
    order = np.argsort(p, kind="stable")
    assert list(np.array(got)[order]) == sorted(got)


@pytest.mark.parametrize("bad", [([], []), ([1.0], [1.0, 2.0])])
def test_comparisons_need_both_sides(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(BadValueError, match="paired"):
        paired(*bad)
    with pytest.raises(BadValueError, match="no values"):
        improvement([], [1.0])
