"""The one data structure: invariants, paths, what is left out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.forests import forests, tree, trees, turn
from hypothesis import given

from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree, last_token_reward
from turngym.envs.core.errors import BadValueError


@given(trees())
def test_every_leaf_has_one_path_and_paths_cover_the_tree(grown: Tree) -> None:
    lines = [grown.chain(leaf) for leaf in grown.leaves()]
    assert {i for line in lines for i in line} == set(range(len(grown.turns)))
    assert len({line[-1] for line in lines}) == len(lines)
    for line in lines:
        first = grown.turns[line[0]]
        assert first.parent == ROOT or first.edge is Edge.SPAWN
        for above, below in itertools.pairwise(line):
            assert grown.turns[below].parent == above < below
            assert grown.turns[below].edge is Edge.CONTINUE
            assert grown.turns[above].status == "running"


@given(forests())
def test_broken_episodes_are_counted_and_left_out(forest: Forest) -> None:
    assert all(forest.turns(p)[-1].status != "env_error" for p in forest)
    leaves = [t.turns[i].status for g in forest.groups for t in g.trees for i in t.leaves()]
    faults = sum(g.faults for g in forest.groups)
    assert forest.env_errors == leaves.count("env_error") + faults
    _, ends = forest.endings()
    assert all(ends), "a path whose episodes all broke"
    assert list(forest.paths) == sorted(forest.paths, key=lambda p: (p.group, p.tree, p.turns[-1]))


def test_a_fork_gives_two_paths_with_a_shared_prefix_and_their_own_returns() -> None:
    grown = tree(
        turn(0.5),
        turn(1.0, parent=0, status="solved"),
        turn([0.25, 0.5], parent=0, status="failed"),
    )
    forest = Forest.of([Group("u", "t", [grown])])
    assert [p.turns for p in forest] == [(0, 1), (0, 2)]
    assert [forest.reward(p) for p in forest] == [1.5, 1.25]
    assert [forest.n_act(p) for p in forest] == [2, 3]


def test_a_spawned_context_is_a_path_of_its_own() -> None:
    grown = tree(turn(), turn(parent=0, edge=Edge.SPAWN), turn(parent=0), turn(parent=1))
    assert [grown.chain(leaf) for leaf in grown.leaves()] == [(0, 2), (1, 3)]


def test_two_trees_of_equal_tokens_are_not_shared() -> None:
    forest = Forest.of([Group("u", "t", [tree(turn(status="solved")) for _ in range(2)])])
    assert len(forest.paths) == 2


def test_a_scalar_reward_sits_on_the_last_token() -> None:
    assert last_token_reward(2.0, 3).tolist() == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (turn(parent=5), "parent is 5; expected an index from -1 to 0"),
        (turn(edge=Edge.SPAWN), "SPAWN edge needs a parent"),
        (turn(parent=0), "continues turn 0, which ended as 'solved'"),
        (turn([], act_ids=np.zeros(0, np.int64)), "no action tokens"),
        (turn(logprobs=np.zeros(2, np.float32)), r"logprobs has shape \(2,\); expected \(1,\)"),
        (turn(float("nan")), "rewards .* not finite"),
        (turn(logprobs=np.array([-np.inf], np.float32)), "logprobs .* not finite"),
    ],
)
def test_a_turn_that_breaks_an_invariant_is_refused(bad: object, message: str) -> None:
    grown = tree(turn(status="solved"))
    with pytest.raises(BadValueError, match=message):
        grown.add(bad)  # pyright: ignore[reportArgumentType]
    assert len(grown.turns) == 1
