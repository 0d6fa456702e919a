"""Session returns: the worked examples of PaSa."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.forests import turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.annotators import SpawnedValues
from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.credit import Gae, SessionCredit
from turngym.algos.credit.gae import whitened
from turngym.envs.core.errors import BadValueError

R = [2.9, -0.1, 1.4, 0.0]
SPAWNED = [[0.8, 0.4, 0.1], [0.2], [1.1, 0.3], []]
GAPS = np.array([0.05, -0.02, 0.10, 0.01])
VALUES = np.array([2.0, 0.9, 1.2, 0.1])


def advantages(
    rule: SessionCredit, rewards: Any, spawned: Any, gaps: Any, values: Any
) -> list[float]:
    """Action level: one token per action."""
    scores = np.array(rewards) + rule.gamma1 * np.array([sum(s) for s in spawned])
    ends = np.ones(len(scores), bool)
    return rule.estimate(scores, np.asarray(gaps, float), np.asarray(values, float), ends).tolist()


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("in_sum", [4.476, 1.451, 1.529, -0.001]),
        ("current", [4.485, 1.462, 1.530, -0.001]),
        ("v1_literal", [4.470, 1.466, 1.520, -0.001]),
    ],
)
def test_where_the_penalty_stands(mode: Any, want: list[float]) -> None:
    """Example 1."""
    rule = SessionCredit(gamma1=0.1, kl_coef=0.1, kl_mode=mode)
    got = np.array(advantages(rule, R, SPAWNED, GAPS, VALUES)) + VALUES
    assert got == pytest.approx(want, abs=1e-9)


def test_advantages_and_discounts() -> None:
    """Examples 1 and 2."""
    got = advantages(SessionCredit(gamma1=0.1, kl_coef=0.1), R, SPAWNED, GAPS, VALUES)
    assert got == pytest.approx([2.476, 0.551, 0.329, -0.101], abs=1e-9)
    rule = SessionCredit(gamma0=0.9, gamma1=0.5, kl_coef=0.2)
    got = advantages(rule, R, SPAWNED, GAPS, VALUES)
    assert got == pytest.approx([3.226942, 0.97438, 0.8782, -0.102], abs=1e-6)


@pytest.mark.parametrize(
    ("gamma1", "returns"),
    [(0.0, [-0.2, -0.1, 0]), (0.1, [0.375, -0.095, 0]), (0.3, [1.525, -0.085, 0])],
)
def test_a_bridge_pays_only_through_what_it_leads_to(gamma1: float, returns: list[float]) -> None:
    """Example 3."""
    values = np.array([0.35, 0.1, 0])
    spawned = [[2.2, 1.9, 1.6], [0, 0.05], []]
    rule = SessionCredit(gamma1=gamma1)
    got = np.array(advantages(rule, [-0.1, -0.1, 0], spawned, np.zeros(3), values)) + values
    assert got == pytest.approx(returns, abs=1e-9)


TOKEN_GAPS = np.array([0, 0.1, 0, 0.2, -0.1, 0, 0.05, 0, 0.1, 0, 0, 0, 0])
TOKEN_VALUES = np.array([1.2, 1.2, 1.2, 1.2, 1.3, 0.2, 0.2, 0.2, 0.1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("lam", "want"),
    [
        (
            1.0,
            [0.255, 0.255, 0.265, 0.265, 0.185, 1.275, -0.205, -0.2, -0.1, 0.01, 0.1, 0.1, 0],
        ),
        (
            0.95,
            [
                *(0.170146, 0.179101, 0.199054, 0.20953, 0.136348, 1.290892, -0.199061),
                *(-0.204274, -0.109763, 0.00025, 0.095, 0.1, 0),
            ],
        ),
    ],
)
def test_token_by_token(lam: float, want: list[float]) -> None:
    """Example 5, with the scores where the release writes them."""
    scores = np.zeros(13)
    scores[[5, 9, 11]] = 1.48, -0.09, 0.1
    rule = SessionCredit(kl_coef=0.1, lam=lam)
    ends = np.ones(13, bool)
    got = rule.estimate(scores, TOKEN_GAPS, TOKEN_VALUES, ends)
    assert got == pytest.approx(want, abs=2e-6)
    if lam == 1:  # the returns of the example
        left = [1.455, 1.455, 1.465, 1.465, 1.485, 1.475, -0.005, 0, 0, 0.01, 0.1, 0.1, 0]
        assert got + TOKEN_VALUES == pytest.approx(left, abs=1e-6)
    if lam < 1:
        white = [0.071, 0.095, 0.1484, 0.1764, -0.0195, 3.0719, -0.9176, -0.9315, -0.6785]
        white += [-0.3839, -0.1302, -0.1168, -0.3846]
        assert whitened([got])[0] == pytest.approx(white, abs=6e-5)


@pytest.mark.parametrize(
    ("relevant", "values", "want"),
    [(4, [1] * 5, 5), (0, [-3], -0.1), (2, [0.5, 0.5], 3.0), (3, [6, 4], 5)],
)
def test_scores_are_clipped(relevant: int, values: list[float], want: float) -> None:
    """Example 6: alpha 1.5, cost 0.1, gamma1 0.1."""
    made = [turn(1.5 * relevant - 0.1, n=2)]
    spawned = np.array([0.0, sum(values)])
    clipped = SessionCredit(score_clip=(-0.1, 5.0)).scores(made, spawned)
    assert clipped == pytest.approx([0, want])


@pytest.mark.parametrize(("gamma1", "whole"), [(0.1, 1.409), (1.0, 4.1)])
def test_exact_values_of_a_tree_of_sessions(gamma1: float, whole: float) -> None:
    """Example 8: the fixed point of the critic is reached by its own targets."""
    rule = SessionCredit(gamma1=gamma1, whiten=False)

    def target(reward: float, spawned: list[float]) -> float:
        return advantages(rule, [reward], [spawned], [0.0], [0.0])[0]

    c = target(2.9, [])
    a, b = target(-0.1, [c]), target(-0.1, [])
    if gamma1 == 0.1:
        assert (c, a, b) == pytest.approx((2.9, 0.19, -0.1))
    assert target(1.4, [a, b]) == pytest.approx(whole)


@pytest.mark.parametrize(("n", "limit"), [(3, 1.0 / 0.7), (8, 5.0)])
def test_a_stable_bootstrap_has_a_fixed_point(n: int, limit: float) -> None:
    """Example 10: r 1, gamma1 0.1, n sessions of equal value."""
    rule, value = SessionCredit(gamma1=0.1), 0.0
    for _ in range(200):
        value = advantages(rule, [1.0], [[value] * n], [0.0], [0.0])[0]
    assert value == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("n", [10, 12])
def test_too_many_sessions_have_none(n: int) -> None:
    """Example 10: from gamma1 * n = 1 on, the values grow without end."""
    rule, values = SessionCredit(gamma1=0.1), [0.0]
    for _ in range(50):
        values.append(advantages(rule, [1.0], [[values[-1]] * n], [0.0], [0.0])[0])
    assert min(np.diff(values)) >= 1.0 - 1e-9


def test_an_unstable_bootstrap_is_held_by_the_clip() -> None:
    rule, value = SessionCredit(gamma1=0.1, score_clip=(-0.1, 5.0)), 0.0
    for _ in range(100):
        value = float(rule.scores([turn(1.0)], np.array([12 * value]))[0])
    assert value == 5.0


@pytest.mark.parametrize(("alpha", "cost"), [(0.5, 0.1), (1.0, 0.1), (1.5, 0.1), (2.0, 0.2)])
def test_break_even(alpha: float, cost: float) -> None:
    """Example 9: an action pays when it finds more than cost / alpha."""
    for found, sign in ((cost / alpha * 1.01, 1), (cost / alpha * 0.99, -1)):
        got = advantages(SessionCredit(), [alpha * found - cost], [[]], [0.0], [0.0])[0]
        assert np.sign(got) == sign


class Values:
    def prompt_values(self, prompts: Any) -> Any:
        return np.array([float(p[0]) for p in prompts], np.float32)


def test_values_of_the_sessions_asked_for_sit_on_the_last_token() -> None:
    prompts = tuple(np.array([v, 9]) for v in (3, 2, 1))
    chain = Tree()
    chain.add(turn(0.0, n=2, spawned=prompts))
    chain.add(turn(0.0, n=1, parent=0, status="solved"))
    forest = Forest.of([Group("g", "t", [chain])])
    scorer: Any = Values()
    assert SpawnedValues()(forest, scorer)["spawned_values"][0].tolist() == [0, 6, 0]
    assert SpawnedValues(max_sessions=2)(forest, scorer)["spawned_values"][0].tolist() == [0, 5, 0]


@given(
    st.lists(st.tuples(st.floats(-2, 2), st.integers(1, 4)), min_size=1, max_size=5),
    st.sampled_from([1.0, 0.95, 0.5]),
    st.integers(0, 9),
)
def test_without_sessions_it_is_gae(line: list[tuple[float, int]], lam: float, seed: int) -> None:
    chain = Tree()
    for i, (reward, n) in enumerate(line):
        status = "solved" if i == len(line) - 1 else "running"
        chain.add(turn(reward, n=n, parent=i - 1, status=status))
    forest = Forest.of([Group("g", "t", [chain])])
    total = sum(n for _, n in line)
    rng = np.random.default_rng(seed)
    floats = [rng.normal(size=total + k).astype(np.float32) for k in (1, 0, 0)]
    annotations = {
        "values": [floats[0]],
        "old_logprobs": [floats[1]],
        "ref_logprobs": [floats[2]],
        "spawned_values": [np.zeros(total, np.float32)],
    }
    mine = SessionCredit(lam=lam, kl_coef=0.1)(forest, annotations)
    gae = Gae(lam=lam, kl_coef=0.1, bootstrap=False)(forest, annotations)
    assert mine.advantages[0] == pytest.approx(gae.advantages[0], abs=1e-5)
    assert mine.value_targets[0] == pytest.approx(gae.value_targets[0], abs=1e-5)


@pytest.mark.parametrize(
    "bad",
    [
        {"gamma0": 1.5},
        {"gamma1": -0.1},
        {"lam": 2.0},
        {"kl_coef": -1.0},
        {"kl_mode": "current"},
        {"score_clip": (1.0, 0.0)},
    ],
)
def test_settings_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        SessionCredit(**bad)
