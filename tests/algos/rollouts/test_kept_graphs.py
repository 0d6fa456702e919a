"""TIGPO's tracker: the reference's numbers, which tasks come back, and what a checkpoint keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.forests import Fixed
from helpers.state_forests import FOREST, Walk, walks

from turngym.algos.core.forest import Forest, Group
from turngym.algos.credit import KeptGraphCredit, StateCredit
from turngym.algos.credit.state_terms import SUCCESS, GoalDistances
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts.kept_graphs import GraphMemory, KeptGraphs
from turngym.envs.core.errors import BadValueError

SCORER: Any = Fixed()
FAIL = FOREST[1:3]
EDGES = {("S", "A"), ("A", "C"), ("C", SUCCESS)}


def memory(**rule: Any) -> GraphMemory:
    return KeptGraphs(**rule).start(3, "train", 40, (0.0, 1.0))


def named(forest: Forest, uid: str, task: str) -> Forest:
    """The forest's first group as a group of this task."""
    group = forest.groups[0]
    return Forest.of([Group(uid, task, group.trees)])


def test_a5_a_group_that_fails_learns_from_ways_that_are_known() -> None:
    forest = walks(FAIL)
    kept = memory()
    assert not np.any(np.concatenate(credit(kept, forest)))
    kept.edges["t0"] = set(EDGES)
    notes = kept.annotations(forest)
    earned = [10 * 0.1 ** row.astype(float) for row in notes["kept_distances"]]
    assert earned[0] == pytest.approx([0.1, 0.001, 0.0001])  # A 2, B 4, D 5
    assert earned[1] == pytest.approx([0.001, 0.01, 0.1, 0.0001])  # S 3
    found = credit(kept, forest)
    assert found[0] == pytest.approx([0.577340, 0.705997, -0.707006], abs=2e-6)
    assert found[1] == pytest.approx([-1.154680, 0.707006, 0.577340, -0.705997], abs=2e-6)


def test_a5_returns_are_compared_with_those_of_the_task_s_last_group() -> None:
    kept = memory()
    group = tuple(
        Walk(c, "+" if r else "D", r) for c, r in zip("WXYZ", (1.0, 1, 0, 1), strict=True)
    )
    forest = walks(group)
    alone = [row[0] for row in credit(kept, forest)]
    assert alone == pytest.approx([0.499999, 0.499999, -1.499997, 0.499999], abs=2e-6)
    kept.returns["t0"] = [0.0, 0.0, 1.0, 0.0]
    both = [row[0] for row in credit(kept, forest)]
    assert both == pytest.approx([0.935413, 0.935413, -0.935413, 0.935413], abs=2e-6)


def credit(kept: GraphMemory, forest: Forest, **rule: Any) -> list[list[float]]:
    rows = KeptGraphCredit(**rule)(forest, kept.annotations(forest)).advantages
    return [row.astype(float).tolist() for row in rows]


def test_a_new_task_has_the_credit_of_the_group_s_own_graph() -> None:
    forest = walks(FOREST, FAIL)
    plain = StateCredit(term=GoalDistances())(forest, {}).advantages
    for one, two in zip(credit(memory(), forest), plain, strict=True):
        assert one == pytest.approx(two.tolist(), abs=1e-5)


def test_what_a_group_found_is_known_to_the_task_s_next_one_alone() -> None:
    kept = memory()
    kept.starts(1, 1)
    row = kept.learn(named(walks(FOREST), "1/0", "one"), SCORER)
    assert row == {"edges_mean": float(len(kept.edges["one"])), "revisits_frac": 0.0}
    assert kept.edges["one"] >= {("S", "A"), ("C", SUCCESS), ("B", "D")}
    assert kept.returns["one"] == [1.0, 0.0, 0.0, 1.0]
    again, other = (named(walks(FAIL), "2/0", task) for task in ("one", "two"))
    assert np.any(np.concatenate(credit(kept, again)))
    assert not np.any(np.concatenate(credit(kept, other)))


def play(kept: GraphMemory, step: int, count: int) -> list[Any]:
    """Take a step's tasks, and have seen a group of each."""
    starts = kept.starts(step, count)
    groups = [Group(s.uid, f"task {s.task}", walks(FAIL).groups[0].trees) for s in starts]
    kept.learn(Forest.of(groups), SCORER)
    return starts


def test_tasks_come_back_at_odd_places_after_the_wait() -> None:
    kept, plain = memory(wait=2), KeptGraphs().start(3, "train", 40, (0.0, 1.0))
    first, second = play(kept, 1, 4), play(kept, 2, 4)
    assert [s.task for s in first] == [s.task for s in plain.starts(1, 4)]
    third = kept.starts(3, 4)
    assert [s.task for s in third][1::2] == [f"task {s.task}" for s in first[:2]]
    assert [s.task for s in third][::2] == [s.task for s in plain.starts(3, 4)][::2]
    assert len({s.uid for s in third}) == 4
    assert not {s.seed for s in third} & {s.seed for s in (*first, *second)}
    groups = [Group(s.uid, str(s.task), walks(FAIL).groups[0].trees) for s in third]
    assert kept.learn(Forest.of(groups), SCORER)["revisits_frac"] == 0.5
    fourth = kept.starts(4, 4)
    assert [s.task for s in fourth][1::2] == [f"task {s.task}" for s in second[:2]]
    assert kept.starts_from(4, 12, 1, 2) == fourth[1:3]  # however many are asked for at once


def test_a_checkpoint_keeps_graphs_returns_and_who_comes_back() -> None:
    kept = memory(wait=2)
    play(kept, 1, 3)
    play(kept, 2, 3)
    other = memory(wait=2)
    other.load(json.loads(json.dumps(kept.state())))
    assert (other.edges, other.returns, other.fresh) == (kept.edges, kept.returns, kept.fresh)
    assert other.starts(3, 4) == kept.starts(3, 4)


def test_old_tasks_are_forgotten() -> None:
    kept = memory(wait=2, tasks=3)
    for step in range(1, 6):
        play(kept, step, 2)
    assert len(kept.edges) == len(kept.returns) == 3
    assert sorted(kept.fresh) == [4, 5]


def test_bad_settings_and_a_missing_tracker_are_refused() -> None:
    for field in ("wait", "tasks"):
        with pytest.raises(BadValueError, match=field):
            KeptGraphs(**{field: 0})
    recipe = make_recipe("tigpo")
    with pytest.raises(BadValueError, match=r"KeptGraphCredit needs 'earlier_returns'.*KeptGraphs"):
        replace(recipe, tracker=None)
    from turngym.envs.diagnostic.fog import Fog

    with pytest.raises(BadValueError, match="draws what an action brings"):
        recipe.check(Fog(fog=0.3))
