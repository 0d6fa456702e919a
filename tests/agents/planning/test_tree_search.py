"""The planners' arithmetic."""

from __future__ import annotations

import math

import pytest

from turngym.agents.planning.mcts import EXPLORE, discounted_returns, selection_value
from turngym.envs.core.errors import UnknownNameError


@pytest.mark.parametrize(
    ("best", "parent", "visits", "want"),
    [
        (0, 1, 0, 0),
        (0, 2, 0, 5.298345),
        (3.2, 2, 1, 5.849173),
        (3.2, 11, 1, 8.127341),
        (2, 11, 4, 3.970936),
    ],
)
def test_the_released_rule(best: float, parent: int, visits: int, want: float) -> None:
    """Example 13 of ARMAP."""
    assert selection_value(best, parent, visits) == pytest.approx(want, abs=1e-6)


def test_the_other_rules() -> None:
    assert pytest.approx(6.36396103068) == EXPLORE
    assert selection_value(2, 11, 4, rule="ucb1") == pytest.approx(6.927341, abs=1e-6)
    assert selection_value(0, 5, 0, rule="ucb1") == math.inf
    whole = selection_value(1, 9, 2)
    assert selection_value(1, 9, 2, rule="puct", prior=0.5) == pytest.approx((whole + 1) / 2)
    with pytest.raises(UnknownNameError, match="ucb1"):
        selection_value(1, 9, 2, rule="ucb2")  # type: ignore[arg-type]


def test_returns_on_the_way_up() -> None:
    assert discounted_returns(4.0, [0, 0, 0]) == pytest.approx([3.6, 3.24, 2.916])
    assert discounted_returns(1.0, [2.0], discount=0.5) == [2.5]
