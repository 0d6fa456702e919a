"""Statistics: numbers worked out by hand, and laws."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import trim_mean

from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.statistics import (
    bootstrap_mean,
    holm,
    improvement,
    interquartile_mean,
    paired,
    pass_all,
    pass_at,
    sign_flip_p,
    student_mean,
    two_stage,
)

NUMBER = st.floats(-100, 100)
SAMPLE = st.lists(NUMBER, min_size=1, max_size=12)


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
    seeds = {"a": [[0.0, 1.0, 1.0, 0.0, 1.0]], "b": [[1.0, 1.0, 0.0, 0.0, 0.0]]}
    first = two_stage(seeds)
    assert first == two_stage(seeds)
    assert first.mean == 0.5
    assert first.low95 < 0.5 < first.high95


def test_a_group_counts_the_same_however_large() -> None:
    assert two_stage({"a": [[1.0] * 100], "b": [[0.0]]}).mean == 0.5


def test_equal_values_have_an_interval_of_no_width() -> None:
    got = two_stage({"a": [[2.0, 2.0]], "b": [[4.0, 4.0, 4.0]]})
    assert (got.mean, got.low95, got.high95) == (3.0, 3.0, 3.0)


def test_the_interval_of_one_group_is_that_of_its_mean() -> None:
    values = np.random.default_rng(0).normal(size=200)
    got = two_stage({"a": [values]})
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


def test_passes_by_hand() -> None:
    assert pass_at(1, 4, 2) == 0.5  # 3 of the 6 pairs hold the solved try
    assert pass_all(3, 4, 2) == 0.5  # 3 of the 6 pairs are solved
    assert pass_at(0, 3, 3) == pass_all(2, 3, 3) == 0.0
    assert pass_at(1, 3, 3) == pass_all(3, 3, 3) == 1.0


@given(st.integers(1, 12), st.data())
def test_passes_are_means_over_all_choices(tries: int, data: st.DataObject) -> None:
    solved, k = data.draw(st.integers(0, tries)), data.draw(st.integers(1, tries))
    some, every = pass_at(solved, tries, k), pass_all(solved, tries, k)
    assert 0 <= every <= solved / tries + 1e-12 <= some + 1e-9 <= 1 + 1e-9
    # none of k solved is the same as all of k unsolved
    assert 1 - some == pytest.approx(pass_all(tries - solved, tries, k))
    assert pass_at(solved, tries, 1) == pytest.approx(solved / tries)
    assert every == comb(solved, k) / comb(tries, k)


@pytest.mark.parametrize("bad", [(4, 3, 1), (-1, 3, 1), (1, 3, 0), (1, 3, 4), (0, 0, 1)])
def test_passes_refuse_what_does_not_fit(bad: tuple[int, int, int]) -> None:
    for rule in (pass_at, pass_all):
        with pytest.raises(BadValueError, match="pass@k"):
            rule(*bad)


@settings(max_examples=40)
@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_pass_at_and_pass_all_count_every_choice_of_trials(case: tuple[int, int, int]) -> None:
    n, c, k = case
    outcomes = [True] * c + [False] * (n - c)
    choices = list(itertools.combinations(outcomes, k))
    assert pass_at(c, n, k) == pytest.approx(np.mean([any(chosen) for chosen in choices]))
    assert pass_all(c, n, k) == pytest.approx(np.mean([all(chosen) for chosen in choices]))


def test_pass_at_one_is_the_share() -> None:
    assert pass_at(3, 4, 1) == pass_all(3, 4, 1) == 0.75
    assert pass_at(3, 4, 2) == 1.0
    assert pass_all(3, 4, 2) == 0.5


def test_every_world_weighs_the_same() -> None:
    found = bootstrap_mean([[0.0, 1.0], [1.0] * 100])
    assert found.mean == 0.75
    assert (found.low95, found.high95) == (0.5, 1.0)


def test_a_bootstrap_interval_is_near_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 200)
    found = bootstrap_mean([values.tolist()])
    half = 1.96 * values.std() / 200**0.5
    assert found.mean == pytest.approx(values.mean())
    assert found.low95 == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert found.high95 == pytest.approx(values.mean() + half, abs=0.2 * half)
    assert found == bootstrap_mean([values.tolist()])


def test_equal_samples_have_no_width() -> None:
    assert bootstrap_mean([[1.0, 1.0], [0.5]]).model_dump() == {
        "mean": 0.75,
        "low95": 0.75,
        "high95": 0.75,
    }
    for samples in ([], [[1.0], []]):
        with pytest.raises(BadValueError):
            bootstrap_mean(samples)


def test_students_interval_of_three_runs() -> None:
    found = student_mean([1.0, 2.0, 3.0])
    half = 4.302652729911275 / 3**0.5  # t(0.975, 2 degrees), deviation 1
    assert found.mean == 2.0
    assert found.high95 - found.mean == pytest.approx(half)
    assert found.mean - found.low95 == pytest.approx(half)
    with pytest.raises(BadValueError, match="at least two"):
        student_mean([1.0])


def test_sign_flips_are_counted_exactly_for_few_tasks() -> None:
    assert sign_flip_p([1.0, 1.0, 1.0, 1.0]) == pytest.approx(2 / 16)
    assert sign_flip_p([1.0, -1.0, 1.0, -1.0]) == 1.0
    assert sign_flip_p([0.0] * 4) == 1.0
    assert sign_flip_p([0.0, 1.0, 0.0, 0.0]) == 1.0
    assert sign_flip_p([-1.0] * 4) == sign_flip_p([1.0] * 4)
    assert sign_flip_p([1.0, 1.0, 1.0, 0.0, 0.0]) == pytest.approx(2 / 8)


def test_sign_flips_of_many_tasks_agree_with_the_t_test() -> None:
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(2).normal(0.2, 1.0, 100)
    found = sign_flip_p(differences.tolist())
    assert found == pytest.approx(float(ttest_1samp(differences, 0.0).pvalue), abs=0.02)
