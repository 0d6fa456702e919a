"""AT2PO's credit: the value of a node in its tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.branching import branching
from helpers.forests import tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.credit import NodeValueCredit
from turngym.algos.recipes import make_recipe
from turngym.envs.core.errors import BadValueError

LEAVES = [1.414211, -0.707105, -0.707105]


def node(entropy: float, reward: float = 0.0, **more: Any) -> Any:
    return turn(reward, n=2, logprobs=np.full(2, -entropy, np.float32), **more)


def grown(returns: tuple[float, float, float] = (1.0, 0.0, 0.0)) -> Tree:
    """The reference's tree: two turns at the root, one of them with two endings."""
    a, b, c = returns
    return tree(
        node(1.2),
        node(0.5, a, parent=0, status="solved"),
        node(0.9, b, parent=0, status="solved"),
        node(0.4),
        node(0.7, c, parent=3, status="solved"),
    )


def values(returns: tuple[float, float, float] = (1.0, 0.0, 0.0), **how: Any) -> list[float]:
    made = grown(returns)
    found = NodeValueCredit(**how).values(made, dict(zip((1, 2, 4), returns, strict=True)))
    return found.tolist()


def test_e3_values_of_the_nodes() -> None:
    n1, a, b, n2, c, root = values()
    assert [a, b, c] == pytest.approx(LEAVES, abs=1e-6)
    assert [n1, n2, root] == pytest.approx([0.144205, -0.707105, -0.119723], abs=1e-6)
    n1, *_, root = values(mean="children")
    assert [n1, root] == pytest.approx([0.353553, -0.176776], abs=1e-6)
    n1, *_, root = values(mean="leaves")
    assert [n1, root] == pytest.approx([0.353553, 0.0], abs=1e-6)


def test_a_turn_is_credited_on_its_tokens_in_every_path() -> None:
    forest = Forest.of([Group("g", "t", [grown()])])
    n1, a, b, n2, c, root = values()

    def credit(relative: Any) -> list[float]:
        rows = NodeValueCredit(relative=relative)(forest, {}).advantages
        assert [len(row) for row in rows] == [4, 4, 4]
        assert all((row[::2] == row[1::2]).all() for row in rows)
        return [float(x) for row in rows for x in row[::2]]

    of_parent = [n1 - root, a - n1, n1 - root, b - n1, n2 - root, c - n2]
    of_root = [v - root for v in (n1, a, n1, b, n2, c)]
    assert credit("value") == pytest.approx([n1, a, n1, b, n2, c])
    assert credit("parent") == pytest.approx(of_parent, abs=1e-6)
    assert credit("root") == pytest.approx(of_root, abs=1e-6)
    both = [x + y for x, y in zip(of_parent, of_root, strict=True)]
    assert credit("both") == pytest.approx(both, abs=1e-6)


def test_equal_returns_and_single_endings_give_exactly_nothing() -> None:
    assert values((0.7, 0.7, 0.7)) == [0.0] * 6
    chain = tree(node(0.3), node(0.4, 1.0, parent=0, status="solved"))
    given_ = NodeValueCredit()(Forest.of([Group("g", "t", [chain])]), {})
    assert not given_.advantages[0].any()
    assert given_.metrics == {"informative_trees_frac": 0.0}
    assert NodeValueCredit()(Forest.of([]), {}).advantages == []


def test_what_broke_is_in_no_value() -> None:
    whole = grown()
    whole.add(node(9.0, parent=0, status="env_error"))
    ends = {1: 1.0, 2: 0.0, 4: 0.0}
    found = NodeValueCredit().values(whole, ends)
    assert found[[0, 1, 2, 3, 4, -1]].tolist() == pytest.approx(values())


@given(st.integers(0, 60), st.floats(0.1, 9.0), st.floats(-5.0, 5.0))
def test_scale_and_place_of_the_returns_do_not_matter(seed: int, by: float, plus: float) -> None:
    for group in branching(seed).groups:
        for made in group.trees:
            ends = {last: float(last % 3) for last in made.finals()}
            moved = {last: by * value + plus for last, value in ends.items()}
            rule = NodeValueCredit(eps=1e-12)
            found = rule.values(made, ends)
            np.testing.assert_allclose(rule.values(made, moved), found, atol=1e-6)
            # a mean of what follows lies within it
            assert found.min() >= min(found[list(ends)]) - 1e-9
            assert found.max() <= max(found[list(ends)]) + 1e-9


@pytest.mark.parametrize("bad", [{"mean": "max"}, {"relative": "self"}, {"eps": 0.0}])
def test_settings_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        NodeValueCredit(**bad)


def test_a_tree_that_never_forks_is_refused() -> None:
    one = {"rollout.initial": 1, "rollout.rounds": 0}
    with pytest.raises(BadValueError, match="compares"):
        make_recipe("at2po", one)
