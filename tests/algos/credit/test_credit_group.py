"""Group credit against the worked numbers of the papers' code, and its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.forests import forests, single_turns, tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.filters import DynamicSampling
from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.credit import (
    GroupCredit,
    MaxRlCredit,
    ReturnsToGo,
    StateCredit,
    TrackedCredit,
    TurnReturns,
)
from turngym.envs.core.errors import BadValueError

RETURNS = st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=12)


def credit(returns: list[float], **settings: Any) -> list[float]:
    forest = single_turns(returns)
    given = GroupCredit(**settings)(forest, {})
    return [float(a[0]) for a in given.advantages]


def test_e1_grpo_uses_the_unbiased_standard_deviation() -> None:
    assert credit([1, 0, 0, 0]) == pytest.approx([1.499997] + 3 * [-0.499999], abs=1e-6)
    assert credit([1, 1, 0, 0, 0]) == pytest.approx(
        [1.095443, 1.095443, -0.730295, -0.730295, -0.730295], abs=2e-6
    )
    trl = credit([1, 0, 0, 0], eps=1e-4)
    assert trl == pytest.approx([1.4997, -0.4999, -0.4999, -0.4999], abs=1e-4)


@pytest.mark.parametrize(("value", "n"), [(0.7, 12), (0.1, 12), (0.8, 24), (0.1, 6)])
def test_e2_a_constant_group_gets_exactly_zero(value: float, n: int) -> None:
    for settings in ({}, {"scale": "none"}, {"baseline": "leave-one-out"}):
        assert credit([value] * n, **settings) == [0.0] * n


@pytest.mark.parametrize(
    "splits",
    [
        [(0.1, 0.2), (0.3,), (0.3,)],
        [(3.3, 6.7), (10.0,), (1.1, 8.9)],
        [(8.3, 16.7, 75.0), (25.0, 75.0), (100.0,)],
        [(5 / 3, 5 / 3, 5 / 3), (2.5, 2.5), (5.0,)],
    ],
)
def test_returns_that_differ_by_the_rounding_of_their_rewards_are_equal(
    splits: list[tuple[float, ...]],
) -> None:
    """Rewards are float32; in the third group one path got .41 and the others -.21."""

    def path(rewards: tuple[float, ...]) -> Tree:
        last = len(rewards) - 1
        return tree(
            *(
                turn(r, parent=i - 1, status="solved" if i == last else "running")
                for i, r in enumerate(rewards)
            )
        )

    forest = Forest.of([Group("g", "t", [path(rewards) for rewards in splits])])
    assert np.ptp(forest.returns()) > 0
    assert not DynamicSampling().keeps(forest.returns())
    for rule in (
        GroupCredit(),
        GroupCredit(scale="none"),
        MaxRlCredit(),
        ReturnsToGo(baseline="group-mean"),
        StateCredit(identity="history", state_weight=0.0),
    ):
        given = rule(forest, {})
        assert not any(row.any() for row in given.advantages), rule
    assert not TrackedCredit().compare(forest.returns()).any()
    by_index = TurnReturns(over="index")(forest, {}).advantages
    assert [row[0] for row in by_index] == [0.0] * len(splits)


def test_e3_a_group_of_one_gets_zero_unless_raw_is_asked_for() -> None:
    assert credit([0.8]) == [0.0]
    assert credit([0.8], singleton="raw") == pytest.approx([0.799999], abs=1e-6)
    assert credit([0.8], singleton="raw", scale="none") == pytest.approx([0.8])


def test_e20_leave_one_out_and_centring() -> None:
    loo = credit([1, 0, 0, 0], baseline="leave-one-out", scale="none")
    assert loo == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])
    assert credit([1, 0, 0, 0], scale="none") == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_without_a_baseline_the_return_itself_is_the_credit() -> None:
    assert credit([1, 1, 0], baseline="none", scale="none") == [1.0, 1.0, 0.0]


@given(RETURNS)
def test_leave_one_out_is_the_difference_from_the_mean_of_the_others(returns: list[float]) -> None:
    got = credit(returns, baseline="leave-one-out", scale="none")
    total, n = sum(returns), len(returns)
    expected = [r - (total - r) / (n - 1) if n > 1 else 0.0 for r in returns]
    assert got == pytest.approx(expected, abs=1e-4)


@given(RETURNS, st.floats(0.5, 4), st.floats(-5, 5))
def test_standardised_credit_ignores_scale_and_shift(
    returns: list[float], scale: float, shift: float
) -> None:
    rule = GroupCredit(eps=1e-12)
    values = np.array(returns, np.float64)
    if 0 < np.ptp(values) < 1e-3:
        return
    moved = values * scale + shift
    if np.ptp(values) == 0:
        moved[:] = moved[0]
    np.testing.assert_allclose(rule.compare(moved), rule.compare(values), atol=1e-6)


@given(forests())
def test_each_group_stands_alone(forest: Forest) -> None:
    whole = GroupCredit()(forest, {}).advantages
    alone = [a for g in forest.groups for a in GroupCredit()(Forest.of([g]), {}).advantages]
    assert len(whole) == len(alone) == len(forest.paths)
    for a, b, path in zip(whole, alone, forest, strict=True):
        assert a.dtype == np.float32
        assert a.shape == (forest.n_act(path),)
        np.testing.assert_array_equal(a, b)


def test_a_broken_episode_enters_no_statistic() -> None:
    good = [tree(turn(r, status="solved")) for r in (1, 0, 0, 0)]
    broken = tree(turn(), turn(100.0, parent=0, status="env_error"))
    forest = Forest.of([Group("u", "t", [*good[:2], broken, *good[2:]], faults=1)])
    assert forest.env_errors == 2
    given = GroupCredit()(forest, {})
    assert [float(a[0]) for a in given.advantages] == credit([1, 0, 0, 0])


def test_every_action_token_of_every_turn_gets_the_path_s_credit() -> None:
    long = tree(turn(n=3), turn(1.0, n=2, parent=0, status="solved"))
    short = tree(turn(0.0, status="failed"))
    forest = Forest.of([Group("u", "t", [long, short])])
    given = GroupCredit(scale="none")(forest, {})
    assert [a.tolist() for a in given.advantages] == [[0.5] * 5, [-0.5]]
    assert given.metrics == {"informative_groups_frac": 1.0}


def test_a_one_turn_episode_equals_a_single_turn_task() -> None:
    one = single_turns([1, 0, 0.5])
    many = Forest.of(
        [
            Group(
                "u",
                "t",
                [tree(turn(0.0), turn(r, parent=0, status="solved")) for r in (1, 0, 0.5)],
            )
        ]
    )
    a, b = (GroupCredit()(f, {}).advantages for f in (one, many))
    assert [x[0] for x in a] == [x[0] for x in b]


def test_rloo_takes_the_penalty_of_the_whole_path_off_its_return() -> None:
    """R = [1, 0], k1 sums [0.3, -0.1], coefficient 0.05: shaped [0.985, 0.005], difference 0.98."""
    forest = single_turns([1, 0], n=2)
    old = [np.array(row, np.float32) for row in ([-1.0, -2.0], [-0.5, -0.5])]
    ref = [np.array(row, np.float32) for row in ([-1.1, -2.2], [-0.7, -0.2])]
    rule = GroupCredit(baseline="leave-one-out", scale="none", kl_coef=0.05)
    assert rule.needs == {"old_logprobs", "ref_logprobs"}
    got = rule(forest, {"old_logprobs": old, "ref_logprobs": ref}).advantages
    assert [a.tolist() for a in got] == [pytest.approx([0.98] * 2), pytest.approx([-0.98] * 2)]
    assert GroupCredit().needs == frozenset()


@pytest.mark.parametrize("bad", [{"baseline": "none"}, {"eps": 0.0}, {"kl_coef": -1.0}])
def test_settings_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        GroupCredit(**bad)
