"""Tree credit, shared means and pairs of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.forests import single_turns, tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest, Group
from turngym.algos.credit import GroupCredit, SharedMean, StepPairs, TreeCredit
from turngym.envs.core.errors import BadValueError

A, B = [1.0, 0.0, 0.2], [0.8, 0.1, 0.2]
INTER = [1.497101, -0.930630, -0.445084, 1.011555, -0.687857, -0.445084]
INTRA = [1.133891, -0.755928, -0.377964, 1.144583, -0.704359, -0.440224]


RETURNS = st.lists(
    st.lists(st.floats(-5, 5, width=16), min_size=1, max_size=5), min_size=1, max_size=4
)


def bushes(*trees: list[float], n: int = 1) -> Forest:
    """One group; every tree is one turn that forks into these rewards."""
    grown = [
        tree(turn(0.0, n=n), *(turn(r, n=n, parent=0, status="solved") for r in rewards))
        for rewards in trees
    ]
    return Forest.of([Group("g", "t", grown)])


def scores(credit: Any, forest: Forest) -> list[float]:
    return [float(a[-1]) for a in credit(forest, {}).advantages]


def test_two_trees() -> None:
    """E4."""
    forest = bushes(A, B)
    assert scores(TreeCredit(terms="inter"), forest) == pytest.approx(INTER, abs=2e-6)
    assert scores(TreeCredit(terms="intra"), forest) == pytest.approx(INTRA, abs=2e-6)
    both = [2.630992, -1.686558, -0.823048, 2.156138, -1.392216, -0.885308]
    assert scores(TreeCredit(), forest) == pytest.approx(both, abs=2e-6)
    assert INTRA[0] + INTRA[1] == pytest.approx(0.377963, abs=2e-6)


def test_trees_of_equal_returns_differ_only_between() -> None:
    """E5."""
    forest = bushes([1, 1, 1], [0, 0, 0])
    assert scores(TreeCredit(terms="intra"), forest) == [0] * 6
    assert scores(TreeCredit(), forest) == pytest.approx([0.912869] * 3 + [-0.912869] * 3, abs=2e-6)


def test_single_chains() -> None:
    """E6: the release adds the raw return, which is no longer GRPO."""
    forest = single_turns([1, 0, 0, 1])
    raw = [1.866023, -0.866024, -0.866024, 1.866023]
    assert scores(TreeCredit(singleton="raw"), forest) == pytest.approx(raw, abs=2e-6)
    assert scores(TreeCredit(), forest) == scores(GroupCredit(), forest)


@given(
    st.lists(st.lists(st.floats(-5, 5, width=16), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_within_a_tree_the_second_term_sums_to_nothing(trees: list[list[float]]) -> None:
    forest = bushes(*trees)
    found = scores(TreeCredit(terms="intra"), forest)
    at = 0
    for rewards in trees:
        assert sum(found[at : at + len(rewards)]) == pytest.approx(0, abs=1e-4)
        at += len(rewards)


@given(
    st.lists(st.lists(st.floats(-5, 5, width=16), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_on_chains_all_of_them_are_grpo(groups: list[list[float]]) -> None:
    forest = single_turns(*groups, n=3)
    grpo = GroupCredit()(forest, {}).advantages
    rules: list[Any] = [TreeCredit(), TreeCredit(terms="inter"), SharedMean()]
    rules += [SharedMean(shared="once"), SharedMean(shared="own")]
    for rule in rules:
        for mine, theirs in zip(rule(forest, {}).advantages, grpo, strict=True):
            assert (mine == theirs).all()


def test_the_hard_advantage_is_the_owners_mean() -> None:
    """E12: R = [1, 1, 0, 0], a turn shared by paths 0, 1 and 2."""
    shared = tree(turn(0.0, n=2), *(turn(r, parent=0, status="solved") for r in (1.0, 1.0, 0.0)))
    forest = Forest.of([Group("g", "t", [shared, tree(turn(0.0, status="failed"))])])
    hard = SharedMean()(forest, {}).advantages
    z = scores(GroupCredit(), forest)
    assert [a[0] for a in hard[:3]] == pytest.approx([0.288675] * 3, abs=1e-6)
    assert [a[-1] for a in hard] == pytest.approx(z)
    once = SharedMean(shared="once")(forest, {}).advantages
    assert once[0][:2].tolist() == hard[0][:2].tolist()
    assert not once[1][:2].any()
    assert not once[2][:2].any()
    soft = SharedMean(shared="own")(forest, {}).advantages
    assert [a[0] for a in soft] == pytest.approx(z)
    # unclipped, the summed weight of a shared token is the same
    assert sum(a[0] for a in soft[:3]) == pytest.approx(sum(a[0] for a in hard[:3]))


def test_equal_tokens_are_not_shared_turns() -> None:
    twins = [tree(turn(0.0), turn(r, parent=0, status="solved")) for r in (1.0, 0.0)]
    forest = Forest.of([Group("g", "t", twins)])
    assert SharedMean()(forest, {}).advantages[0][0] > 0


def test_a_critic_has_no_mean_over_paths() -> None:
    from turngym.algos.credit import Gae

    with pytest.raises(BadValueError, match="critic"):
        SharedMean(of=Gae())  # type: ignore[arg-type]


def test_pairs_are_the_best_and_the_worst_side_of_each_fork() -> None:
    grown = tree(
        turn(0.0, n=2),  # 0
        turn(0.0, n=2, parent=0),  # 1: worth 0.5
        turn(1.0, parent=1, status="solved"),  # 2
        turn(0.0, parent=1, status="failed"),  # 3
        turn(0.9, parent=0, status="solved"),  # 4: the best side of the first fork
        turn(0.6, parent=0, status="solved"),  # 5
    )
    forest = Forest.of([Group("g", "t", [grown])])
    credits = StepPairs()(forest, {})
    assert credits.metrics == {"pairs": 2.0}
    signs = {p.turns: a.tolist() for p, a in zip(forest, credits.advantages, strict=True)}
    pairs = {p.turns: a.tolist() for p, a in zip(forest, credits.extra["pair"], strict=True)}
    assert signs[0, 1, 2] == [0, 0, -1, -1, 1]
    assert signs[0, 1, 3] == [0, 0, 0, 0, -1]  # turn 1 counts once
    assert signs[0, 4] == [0, 0, 1]
    assert signs[0, 5] == [0, 0, 0]
    first, second = pairs[0, 4][-1], pairs[0, 1, 3][-1]
    assert first != second
    assert pairs[0, 1, 2] == [-1, -1, first, first, second]
    assert pairs[0, 5] == [-1, -1, -1]


def test_equal_sides_and_chains_make_no_pair() -> None:
    for forest in (bushes([0.5, 0.5]), single_turns([1, 0]), single_turns([1])):
        credits = StepPairs()(forest, {})
        assert credits.metrics == {"pairs": 0.0}
        assert not any(a.any() for a in credits.advantages)
        assert all((a == -1).all() for a in credits.extra["pair"])


def test_first_turns_of_a_tree_are_a_fork_too() -> None:
    roots = tree(turn(1.0, status="solved"), turn(0.0, status="failed"))
    credits = StepPairs()(Forest.of([Group("g", "t", [roots])]), {})
    assert [a.tolist() for a in credits.advantages] == [[1.0], [-1.0]]


def test_session_worlds_count_the_whole_episode() -> None:
    from turngym.algos.core.forest import Edge

    episode = tree(
        turn(0.0),
        turn(1.0, parent=0, edge=Edge.SPAWN),
        turn(2.0, parent=0, edge=Edge.SPAWN, previous=1, status="solved"),
    )
    other = tree(turn(0.5, status="failed"))
    forest = Forest.of([Group("g", "t", [episode, other])])
    assert forest.returns().tolist() == [3.0, 3.0, 3.0, 0.5]
    # two episodes are compared, not four sessions
    assert np.allclose(scores(GroupCredit(scale="none"), forest), [1.25] * 3 + [-1.25])
    half = 0.5**0.5
    assert np.allclose(scores(TreeCredit(), forest), [half] * 3 + [-half], atol=1e-5)


def test_a_session_before_a_fork_gets_the_mean_of_what_it_led_to() -> None:
    from turngym.algos.core.forest import Edge

    first = turn(0.0)
    good = turn(2.0, parent=0, edge=Edge.SPAWN, status="solved")
    bad = turn(0.0, parent=0, edge=Edge.SPAWN, status="failed")
    broken = turn(9.0, parent=0, edge=Edge.SPAWN, status="env_error")
    forest = Forest.of([Group("g", "t", [tree(first, good, bad, broken)])])
    assert scores(GroupCredit(scale="none"), forest) == [0.0, 1.0, -1.0]
    _, ends = forest.endings()
    assert ends == [[(0, 0, 1), (0, 0, 2)], [(0, 0, 1)], [(0, 0, 2)]]
