"""MaxRL's and EMPG's credit: worked numbers, exact expectations, laws."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.forests import single_turns, tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest, Group
from turngym.algos.credit import EmpgCredit, GroupCredit, MaxRlCredit, TokenEntropyCredit
from turngym.envs.core.errors import BadValueError


def test_d5_maxrl() -> None:
    rule = MaxRlCredit()
    assert rule.compare(np.array([1.0, 0, 0, 0])).tolist() == [3, -1, -1, -1]
    assert rule.compare(np.array([1.0, 1, 1, 0])) == pytest.approx([1 / 3] * 3 + [-1])
    assert rule.compare(np.zeros(4)).tolist() == [0] * 4
    assert rule.compare(np.ones(4)).tolist() == [0] * 4
    failed = MaxRlCredit(failed="minus-one")
    assert failed.compare(np.zeros(2)).tolist() == [-1, -1]
    assert (rule.min_paths, failed.min_paths) == (2, 1)


@pytest.mark.parametrize(
    ("n", "p", "gradient"), [(4, 0.25, 0.433594), (1, 0.25, 0.0), (8, 0.1, None)]
)
def test_d5_the_expected_gradient_of_a_bernoulli_logit(
    n: int, p: float, gradient: float | None
) -> None:
    """Order N - 1 with zero for failed groups, order N with minus one; GRPO's is p (1 - p)."""

    def expected(rule: Any) -> float:
        total = 0.0
        for line in product((1.0, 0.0), repeat=n):
            returns = np.array(line)
            chance = np.prod(np.where(returns == 1, p, 1 - p))
            scores = returns - p  # d log p / d logit
            total += chance * float((rule.compare(returns) * scores).mean())
        return total

    def order(k: int) -> float:
        return (1 - p) * (1 - (1 - p) ** k)

    found = expected(MaxRlCredit())
    assert found == pytest.approx(order(n - 1), abs=1e-9)
    assert expected(MaxRlCredit(failed="minus-one")) == pytest.approx(order(n), abs=1e-9)
    if gradient is not None:
        assert found == pytest.approx(gradient, abs=1e-6)
    if (n, p) == (4, 0.25):
        assert order(n) == pytest.approx(0.512695, abs=1e-6)
        assert p * (1 - p) == pytest.approx(0.1875)


@given(
    st.lists(st.floats(0, 10, width=32), min_size=2, max_size=6),
    st.randoms(use_true_random=False),
    st.floats(0.5, 4.0),
)
def test_maxrl_permutes_with_its_paths_and_has_no_unit(
    returns: list[float], rng: Any, scale: float
) -> None:
    rule, values = MaxRlCredit(), np.array(returns, np.float64)
    order = list(range(len(values)))
    rng.shuffle(order)
    np.testing.assert_allclose(rule.compare(values[order]), rule.compare(values)[order])
    np.testing.assert_allclose(rule.compare(scale * values), rule.compare(values), atol=1e-9)
    assert float(rule.compare(values).sum()) == pytest.approx(0.0, abs=1e-6)


def test_maxrl_refuses_returns_below_zero() -> None:
    with pytest.raises(BadValueError, match=r"a return is -0\.5; expected 0 or more"):
        MaxRlCredit()(single_turns([1.0, -0.5]), {})
    env: Any = gym.make("Fog-v0", size="micro").unwrapped
    with pytest.raises(BadValueError, match=r"Fog.*a mean around 0 or below"):
        MaxRlCredit().check(env)
    MaxRlCredit().check(gym.make("Bandit-v0", size="micro").unwrapped)  # pyright: ignore


def line(entropies: list[float], reward: float) -> Any:
    last = len(entropies) - 1
    return tree(
        *(
            turn(
                reward if i == last else 0.0,
                n=2,
                parent=i - 1,
                status="running" if i < last else "solved",
                # the mean over the turn's tokens is what counts
                entropies=np.array([0.5 * h, 1.5 * h], np.float32),
            )
            for i, h in enumerate(entropies)
        )
    )


ENTROPIES = [[0.2, 0.8, 0.5], [1.4, 0.3, 0.9]]
E1 = [[1.297000, 0.747671, 0.953011], [-0.626988, -1.428062, -0.942632]]


def test_e1_empg() -> None:
    rule = EmpgCredit()
    found = rule.modulate([1.0, -1.0], [np.array(row) for row in ENTROPIES])
    np.testing.assert_allclose(found, E1, atol=1e-6)
    weights = EmpgCredit(bonus=0.0).modulate([1.0, 1.0], [np.array(row) for row in ENTROPIES])
    g = [[1.418007, 0.860065, 1.104345], [0.521656, 1.304630, 0.791298]]
    np.testing.assert_allclose(weights, np.array(g) - 1.0, atol=1e-6)


def test_e1_empg_on_a_forest() -> None:
    """A z-score of two paths is .707107 instead of 1."""
    forest = Forest.of([Group("g", "t", [line(ENTROPIES[0], 1.0), line(ENTROPIES[1], 0.0)])])
    given = EmpgCredit()(forest, {})
    (z, _) = GroupCredit().compare(np.array([1.0, 0.0]))
    expected = EmpgCredit().modulate([z, -z], [np.array(row) for row in ENTROPIES])
    for row, turns in zip(given.advantages, expected, strict=True):
        np.testing.assert_allclose(row, np.repeat(turns, 2), atol=1e-6)
    assert given.metrics == {"informative_groups_frac": 1.0}


def test_empg_with_equal_entropies_has_a_constant_bonus() -> None:
    found = EmpgCredit().modulate([1.0, -1.0], [np.full(3, 0.4)] * 2)
    bonus = np.array([0.05, 0.05, 0.0]) - 0.1 / 3
    np.testing.assert_allclose(found, [1.0 + bonus, -1.0 + bonus], atol=1e-6)
    assert EmpgCredit()(Forest.of([]), {}).advantages == []
    with pytest.raises(BadValueError, match="bonus"):
        EmpgCredit(bonus=-1.0)


@given(
    st.lists(
        st.tuples(st.floats(-2, 2), st.lists(st.floats(0, 3), min_size=1, max_size=4)),
        min_size=1,
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_empg_permutes_with_its_paths_and_is_centred(
    lines: list[tuple[float, list[float]]], rng: Any
) -> None:
    order = list(range(len(lines)))
    rng.shuffle(order)

    def found(which: list[int]) -> list[Any]:
        paths, rows = zip(*(lines[i] for i in which), strict=True)
        return EmpgCredit().modulate(list(paths), [np.array(row) for row in rows])

    plain, turned = found(list(range(len(lines)))), found(order)
    for at, i in enumerate(order):
        np.testing.assert_allclose(turned[at], plain[i], atol=1e-9)
    assert math.fsum(np.concatenate(plain)) == pytest.approx(0.0, abs=1e-6)


def test_e2_aepo() -> None:
    rule = TokenEntropyCredit()
    ((*found,),) = rule.scale([np.array([0.1, 0.5, 2.0, 0.2])])
    assert found == pytest.approx([0.864127, 0.954709, 1.294392, 0.886772], abs=1e-6)
    assert [row.tolist() for row in rule.scale([np.ones(2), np.ones(1)])] == [[1, 1], [1]]
    assert rule.scale([]) == []
    entropies = np.array([0.1, 0.5, 2.0, 0.2], np.float32)
    one = tree(turn(1.0, n=4, status="solved", entropies=entropies))
    plain = TokenEntropyCredit(of=GroupCredit(baseline="none", scale="none"))
    (row,) = plain(Forest.of([Group("g", "t", [one])]), {}).advantages
    assert row == pytest.approx(found, abs=1e-6)
    assert (rule.min_paths, rule.needs) == (2, set())


def test_entropies_that_differ_by_rounding_are_equal() -> None:
    """A last digit between two of ln 4 scaled advantages by .85 and 1.22, and EMPG's likewise."""
    low = np.full(3, np.log(np.float32(4)), np.float64)
    high = np.full(2, np.nextafter(np.float32(low[0]), np.float32(9)), np.float64)
    assert high[0] > low[0]
    assert [row.tolist() for row in TokenEntropyCredit().scale([low, high])] == [[1] * 3, [1] * 2]
    rule = EmpgCredit()
    equal = rule.modulate([1.0, -1.0], [low, low[:2]])
    for mine, wanted in zip(rule.modulate([1.0, -1.0], [low, high]), equal, strict=True):
        assert mine == pytest.approx(wanted, abs=1e-6)
