"""Intervals, pass@k and pass^k, paired tests: against hand-made and scipy's own numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.errors import BadValueError
from turngym.leaderboard.statistics import (
    bootstrap_mean,
    pass_all,
    pass_at,
    sign_flip_p,
    student_mean,
)


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


@pytest.mark.parametrize(("c", "n", "k"), [(5, 4, 1), (-1, 4, 1), (1, 4, 0), (1, 4, 5)])
def test_pass_of_nonsense(c: int, n: int, k: int) -> None:
    for function in (pass_at, pass_all):
        with pytest.raises(BadValueError, match="pass@k"):
            function(c, n, k)


def test_every_world_weighs_the_same() -> None:
    found = bootstrap_mean([[0.0, 1.0], [1.0] * 100])
    assert found.mean == 0.75
    assert (found.low, found.high) == (0.5, 1.0)


def test_a_bootstrap_interval_is_near_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 200)
    found = bootstrap_mean([values.tolist()])
    half = 1.96 * values.std() / 200**0.5
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.2 * half)
    assert found == bootstrap_mean([values.tolist()])


def test_equal_values_have_no_width() -> None:
    assert bootstrap_mean([[1.0, 1.0], [0.5]]).model_dump() == {
        "mean": 0.75,
        "low": 0.75,
        "high": 0.75,
    }
    for samples in ([], [[1.0], []]):
        with pytest.raises(BadValueError):
            bootstrap_mean(samples)


def test_students_interval_of_three_runs() -> None:
    found = student_mean([1.0, 2.0, 3.0])
    half = 4.302652729911275 / 3**0.5  # t(0.975, 2 degrees), deviation 1
    assert found.mean == 2.0
    assert found.high - found.mean == pytest.approx(half)
    assert found.mean - found.low == pytest.approx(half)
    with pytest.raises(BadValueError, match="two or more"):
        student_mean([1.0])


def test_sign_flips_are_counted_exactly_for_few_tasks() -> None:
    weights = [0.25] * 4
    assert sign_flip_p([1.0, 1.0, 1.0, 1.0], weights) == pytest.approx(2 / 16)
    assert sign_flip_p([1.0, -1.0, 1.0, -1.0], weights) == 1.0
    assert sign_flip_p([0.0] * 4, weights) == 1.0
    assert sign_flip_p([0.0, 1.0, 0.0, 0.0], weights) == 1.0
    assert sign_flip_p([-1.0] * 4, weights) == sign_flip_p([1.0] * 4, weights)
    assert sign_flip_p([1.0, 1.0, 1.0, 0.0, 0.0], [0.2] * 5) == pytest.approx(2 / 8)


def test_sign_flips_of_many_tasks_agree_with_the_t_test() -> None:
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(2).normal(0.2, 1.0, 100)
    found = sign_flip_p(differences.tolist(), [0.01] * 100)
    assert found == pytest.approx(float(ttest_1samp(differences, 0.0).pvalue), abs=0.02)
