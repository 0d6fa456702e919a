"""SPO's tracker, and dynamic sampling."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from helpers.forests import Fixed, single_turns, tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.filters import DynamicSampling
from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.rollouts.value_tracker import BetaMemory, BetaTracker
from turngym.envs.core.errors import BadValueError

RULE = BetaTracker(pool=50, first=8)


@pytest.mark.parametrize(
    ("solved", "a", "value"),
    [(3, 3.111111, 0.388889), (0, 0.444444, 0.055556), (8, 7.555556, 0.944444)],
)
def test_first_values(solved: int, a: float, value: float) -> None:
    """E23: eight episodes, weight 8."""
    got = RULE.prior(solved, 8)
    assert got[0] == pytest.approx(a, abs=1e-6)
    assert got[0] / sum(got) == pytest.approx(value, abs=1e-6)
    assert sum(got) == pytest.approx(8)
    assert RULE.prior(0, 0) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("drift", "rho"), [(0, 0.96), (0.006, 0.933033), (0.03, 0.875), (9, 0.875)]
)
def test_memory(drift: float, rho: float) -> None:
    """E23."""
    assert RULE.memory(drift) == pytest.approx(rho, abs=1e-6)


def test_weights() -> None:
    """E23."""
    got = RULE.weights(np.array([0, 0.1, 0.5, 0.9]))
    assert got == pytest.approx([0.05, 0.35, 0.55, 0.35])


def started(**more: Any) -> BetaMemory:
    return BetaTracker(**({"pool": 50, "first": 0} | more)).start(3, "train", None, (0.0, 1.0))


def played(task: int, reward: float) -> Forest:
    line = [turn(0.0, n=2), turn(reward, n=1, parent=0, status="solved")]
    return Forest.of([Group(f"1/0/{task}", f"train/{task}", [tree(*line)])])


def scorer(*values: float) -> Any:
    return Fixed(logprobs=[np.array(values, np.float32)])


@given(st.floats(0.1, 8), st.floats(0.1, 8), st.floats(0, 1), st.floats(0, 0.2))
def test_an_update_is_a_moving_average(a: float, b: float, gain: float, drift: float) -> None:
    """E23: a <- rho a + R; the value moves by (R - v) / (rho (a + b) + 1)."""
    memory = started()
    memory.learn(played(7, 0.5), scorer(-1, -1, -1))
    memory.beliefs[7] = a, b
    memory.learn(played(7, gain), scorer(-1 - drift, -1 - drift, -1 - drift))
    rho = memory.rule.memory(drift)
    v = a / (a + b)
    gain = float(np.float32(gain))
    assert memory.value(7) == pytest.approx(v + (gain - v) / (rho * (a + b) + 1), abs=1e-5)
    assert memory.beliefs[7][0] == pytest.approx(rho * a + gain, rel=1e-4)


def test_the_worked_update() -> None:
    memory = started(rho_min=0.9, rho_max=0.9)
    memory.beliefs[7] = 3.111111, 4.0
    memory.learn(played(7, 1.0), scorer(-1, -1, -1))
    assert memory.beliefs[7] == pytest.approx((3.8, 3.6))
    memory.beliefs[7] = 28 / 9, 44 / 9
    memory.learn(played(7, 1.0), scorer(-1, -1, -1))
    assert memory.beliefs[7] == pytest.approx((3.8, 4.4))
    assert memory.value(7) == pytest.approx(0.463415, abs=1e-6)


def test_credit_is_told_what_was_expected_before() -> None:
    memory = started()
    memory.beliefs[7] = 3.0, 1.0
    assert memory.annotations(played(7, 1.0))["tracked_values"][0].tolist() == [0.75] * 3


def test_tasks_are_drawn_without_replacement_and_uncertain_ones_more_often() -> None:
    memory = started()
    for task in range(25):
        memory.beliefs[task] = 0.001, 8.0
    counts = np.zeros(50)
    for step in range(1, 60):
        starts = memory.starts(step, 10)
        tasks = [int(s.task) for s in starts]
        assert len(set(tasks)) == 10
        assert len({s.uid for s in starts}) == 10
        counts[tasks] += 1
    assert counts[25:].sum() > 4 * counts[:25].sum()
    assert memory.starts(3, 10) == memory.starts(3, 10)


def test_state_goes_through_json() -> None:
    memory = started()
    memory.learn(played(7, 1.0), scorer(-1, -0.5, -0.25))
    again = started()
    again.load(json.loads(json.dumps(memory.state())))
    for twin in (memory, again):
        twin.learn(played(7, 0.0), scorer(-1.1, -0.4, -0.3))
    assert again.beliefs == memory.beliefs
    assert again.state() == memory.state()


def test_first_episodes_are_counted_by_task() -> None:
    memory = started(pool=3, first=2)
    starts = memory.first_episodes
    assert [s.task for s in starts] == [0, 0, 1, 1, 2, 2]
    assert len({s.seed for s in starts}) == 6
    ends = [(0, 1.0), (0, 1.0), (1, 0.0), (1, 1.0), (2, 0.0), (2, 0.0)]
    groups = [
        Group(s.uid, "t", [tree(turn(r, status="solved"))])
        for s, (_, r) in zip(starts, ends, strict=True)
    ]
    memory.score_first(Forest.of(groups))
    assert [memory.value(t) for t in range(3)] == pytest.approx([2.5 / 3, 0.5, 0.5 / 3])


def test_an_episode_of_several_sessions_counts_once() -> None:
    """Its return is 0.25 + 0.5 whichever session is looked at."""
    spawn = Edge.SPAWN
    line = [
        turn(0.25, spawned=(np.array([5]),)),
        turn(0.0, parent=0, edge=spawn, previous=0, status="running"),
        turn(0.5, parent=0, edge=spawn, previous=1, status="solved"),
    ]
    forest = Forest.of([Group("1/0/7", "t", [tree(*line)])])
    assert len(forest.paths) == 3
    memory = started(rho_min=0.9, rho_max=0.9)
    learned = memory.learn(forest, Fixed(logprobs=[np.array([-1.0], np.float32)] * 3))
    assert memory.beliefs[7] == pytest.approx((0.9 * 0.5 + 0.75, 0.9 * 0.5 + 0.25))
    assert learned["value_mean"] == 0.5
    first = started(pool=1, first=1)
    first.score_first(Forest.of([Group("first/0/0", "t", [tree(*line)])]))
    assert first.beliefs[0] == pytest.approx(first.rule.prior(1, 1))


def test_a_broken_episode_teaches_nothing() -> None:
    broken = tree(turn(0.5), turn(0.0, parent=0, edge=Edge.SPAWN, previous=0, status="env_error"))
    memory = started()
    scorer_of_one = Fixed(logprobs=[np.array([-1.0], np.float32)])
    assert memory.learn(Forest.of([Group("1/0/7", "t", [broken])]), scorer_of_one) == {}
    assert memory.beliefs == {}


def test_first_episodes_may_come_in_parts() -> None:
    whole, parts = started(pool=1, first=3), started(pool=1, first=3)
    groups = [
        Group(s.uid, "t", [tree(turn(r, status="solved"))])
        for s, r in zip(whole.first_episodes, (1.0, 0.0, 0.5), strict=True)
    ]
    whole.score_first(Forest.of(groups))
    parts.score_first(Forest.of(groups[:2]))
    parts.score_first(Forest.of(groups[2:]))
    assert whole.beliefs == parts.beliefs == {0: whole.rule.prior(2, 3)}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadValueError, match="range"):
        started().learn(played(7, 1.5), scorer(-1, -1, -1))
    with pytest.raises(BadValueError, match="pool"):
        started(pool=5).starts(1, 6)
    settings = ({"pool": 0}, {"first": -1}, {"rho_min": 0.97}, {"half_life": 0}, {"floor": 0})
    for bad in (*settings, {"floor": math.inf}):
        with pytest.raises(BadValueError):
            BetaTracker(**bad)


@pytest.mark.parametrize(
    ("returns", "kept"),
    [([1, 1, 1, 1], False), ([0, 0], False), ([1, 0, 0, 0], True), ([0.5], True), ([], False)],
)
def test_groups_of_equal_returns_are_left_out(returns: list[float], kept: bool) -> None:
    """E22."""
    forest = single_turns(returns)
    assert DynamicSampling().keeps(forest.returns()) is kept


def test_rounds_are_at_least_one() -> None:
    with pytest.raises(BadValueError):
        DynamicSampling(max_rounds=0)


def test_returns_are_scaled_by_the_environment_s_range() -> None:
    memory = BetaTracker(pool=9, first=0).start(3, "train", None, (-1.0, 3.0))
    assert memory.annotations(played(7, 1.0))["tracked_values"][0].tolist() == [1.0] * 3
    memory.learn(played(7, 3.0), scorer(-1, -1, -1))
    assert memory.value(7) == pytest.approx((0.96 * 0.5 + 1) / (0.96 + 1))
    with pytest.raises(BadValueError, match="lower"):
        BetaTracker().start(3, "train", None, (1.0, 1.0))
