"""Where an episode has many sessions, episodes are compared and not their paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from turngym.algos.core.forest import Edge, Forest, Group, Tree, Turn, last_token_reward
from turngym.algos.core.protocols import Annotations, Credit
from turngym.algos.credit import (
    GoalDistances,
    GroupCredit,
    InformationGain,
    ReturnsToGo,
    StateCredit,
    TrackedCredit,
    TurnReturns,
)
from turngym.algos.credit.group import episode_returns
from turngym.algos.credit.kept_graph import KeptGraphCredit
from turngym.algos.rollouts.kept_graphs import KeptGraphs


def turn(parent: int, edge: Edge, worth: float, status: str, state: str) -> Turn:
    one = np.zeros(1, np.float32)
    return Turn(
        parent=parent,
        edge=edge,
        obs_ids=np.array([1, 2]),
        act_ids=np.array([3]),
        logprobs=one - 1,
        entropies=one,
        rewards=last_token_reward(worth, 1),
        status=status,  # type: ignore[arg-type]
        state=state,
        action=state,
    )


def episode(sessions: int, worth: float, name: str) -> Tree:
    """One turn, and so many sessions less one that it asked for; the last one earns."""
    tree = Tree()
    for i in range(sessions):
        last = i == sessions - 1
        status = ("solved" if worth else "failed") if last else "running"
        edge, parent = (Edge.SPAWN, 0) if i else (Edge.CONTINUE, -1)
        made = turn(parent, edge, worth if last else 0.0, status, f"{name}{i}")
        tree.add(made if i < 2 else replace(made, previous=i - 1))
    return tree


PLAYED = Forest.of(
    [Group("1/0", "task", [episode(3, 1.0, "a"), episode(1, 0.0, "b"), episode(1, 0.0, "c")])]
)
Z = [2 / 3**0.5] * 3 + [-1 / 3**0.5] * 2


def scores(rule: Credit, given: Annotations) -> list[float]:
    return [float(row[0]) for row in rule(PLAYED, given).advantages]


def test_group_graph_kept_graph_and_information_agree_on_the_episodes_score() -> None:
    assert [path.tree for path in PLAYED] == [0, 0, 0, 1, 2]
    assert episode_returns(PLAYED, range(5)) == [1.0, 0.0, 0.0]
    assert scores(GroupCredit(), {}) == pytest.approx(Z, abs=1e-4)
    graph = StateCredit(term=GoalDistances())
    assert scores(graph, {}) == pytest.approx(Z, abs=1e-4)
    fresh = KeptGraphs().start(0, "train", 10, (0.0, 1.0)).annotations(PLAYED)
    assert scores(KeptGraphCredit(), fresh) == pytest.approx(scores(graph, {}), abs=1e-5)
    gold = {"gold_logprobs": [np.full(PLAYED.n_act(p), -1.0, np.float32) for p in PLAYED]}
    assert scores(InformationGain(), gold) == pytest.approx(Z, abs=1e-4)


def test_a_kept_graph_remembers_one_return_an_episode() -> None:
    memory = KeptGraphs().start(0, "train", 10, (0.0, 1.0))
    memory.starts(1, 1)
    memory.learn(PLAYED, None)  # type: ignore[arg-type]
    known = memory.annotations(PLAYED)
    assert known["earlier_returns"][0].tolist() == [1.0, 0.0, 0.0]
    both = np.array([1.0, 0, 0, 1.0, 0, 0])
    want = (both - both.mean()) / (both.std(ddof=1) + 1e-6)
    found = scores(KeptGraphCredit(state_weight=0.0), known)
    assert found == pytest.approx([want[3]] * 3 + [want[4]] * 2, abs=1e-5)


def test_gains_and_outcomes_that_are_compared_together_hold_an_episode_once() -> None:
    gold = {"gold_logprobs": [np.full(PLAYED.n_act(p), -1.0, np.float32) for p in PLAYED]}
    assert scores(InformationGain(normalise="joint"), gold) == pytest.approx(Z, abs=1e-4)


@pytest.mark.parametrize("rule", [GroupCredit(), TrackedCredit(), ReturnsToGo(), TurnReturns()])
def test_the_first_sessions_of_an_episode_that_broke_are_in_no_statistic(rule: Credit) -> None:
    """What the later ones earned is not known; the first ones were the only ones punished."""
    broken = episode(3, 1.0, "a")
    broken.turns[-1] = replace(broken.turns[-1], status="env_error")
    forest = Forest.of([Group("g", "t", [broken, episode(3, 1.0, "b"), episode(3, 1.0, "c")])])
    assert [path.tree for path in forest] == [1, 1, 1, 2, 2, 2]
    assert forest.env_errors == 1
    given = {"tracked_values": [np.full(1, 0.5, np.float32) for _ in forest]}
    assert not any(row.any() for row in rule(forest, given).advantages)
