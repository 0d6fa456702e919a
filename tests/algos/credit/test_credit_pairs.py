"""Pairs of steps over random forests and at their edges."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from helpers.branching import branching
from helpers.forests import tree, turn
from helpers.path_notes import owners
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import ROOT, Edge, Forest, Group
from turngym.algos.credit import StepPairs


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 300))
def test_pairs_are_sibling_turns_and_the_better_is_better(seed: int) -> None:
    forest = branching(seed, turns=9)
    credits = StepPairs()(forest, {})
    returns = forest.returns()
    sides: dict[int, dict[float, tuple[int, int, int]]] = defaultdict(dict)
    for place, who in owners(forest).items():
        n = len(forest.groups[place[0]].trees[place[1]].turns[place[2]].act_ids)
        for rank, (i, at) in enumerate(who):
            signs = set(credits.advantages[i][at : at + n].tolist())
            numbers = set(credits.extra["pair"][i][at : at + n].tolist())
            assert len(signs) == len(numbers) == 1
            sign, number = signs.pop(), int(numbers.pop())
            assert (number == -1) == (sign == 0)
            assert rank == 0 or number == -1
            if number >= 0:
                assert sign not in sides[number]
                sides[number][sign] = place
    assert sorted(sides) == list(range(int(credits.metrics["pairs"])))
    for pair in sides.values():
        better, worse = pair[1.0], pair[-1.0]
        turns = [forest.groups[g].trees[t].turns[i] for g, t, i in (better, worse)]
        assert turns[0].parent == turns[1].parent
        assert all(t.edge is Edge.CONTINUE for t in turns)
        means = [np.mean([returns[i] for i, _ in owners(forest)[side]]) for side in (better, worse)]
        assert means[0] > means[1]


def test_equal_means_of_different_numbers_of_paths_are_equal() -> None:
    """0.1 three times over has another last digit than 0.1 once."""
    side = [turn(0.1, parent=1, status="solved") for _ in range(3)]
    grown = tree(turn(0.0), turn(0.0, parent=0), *side, turn(0.1, parent=0, status="solved"))
    assert StepPairs()(Forest.of([Group("g", "t", [grown])]), {}).metrics == {"pairs": 0.0}


def test_starts_that_saw_something_else_are_no_fork() -> None:
    for other, pairs in (([7, 8], 1.0), ([7, 9], 0.0)):
        first = turn(1.0, status="solved", obs_ids=np.array([7, 8]))
        again = turn(0.0, status="failed", parent=ROOT, obs_ids=np.array(other))
        forest = Forest.of([Group("g", "t", [tree(first, again)])])
        assert StepPairs()(forest, {}).metrics == {"pairs": pairs}


def test_a_side_that_broke_is_no_side() -> None:
    grown = tree(
        turn(0.0),
        turn(1.0, parent=0, status="solved"),
        turn(0.0, parent=0, status="env_error"),
    )
    assert StepPairs()(Forest.of([Group("g", "t", [grown])]), {}).metrics == {"pairs": 0.0}
