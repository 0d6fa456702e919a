"""AT2PO's rollout."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from helpers.forests import tree, turn
from helpers.rollout_laws import check_replay
from helpers.rollout_laws import play as hall
from helpers.walk_world import DiceEngine, Walk, WalkRenderer
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import ROOT, Forest, Group
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import Chains, EntropyExpand, EpisodeRunner
from turngym.envs.core.errors import BadValueError


def play(rollout: Any, turns: int = 3, seed: int = 5, **engine: Any) -> Group:
    renderer: Any = WalkRenderer()
    runner = EpisodeRunner(Walk(turns), DiceEngine(**engine), renderer, Sampling(max_tokens=4))
    return asyncio.run(rollout(runner, Start("train", 1, seed, "1/0")))


def lines(group: Group) -> list[list[tuple[str, str]]]:
    forest = Forest.of([group])
    return [[(t.action, t.status) for t in forest.turns(path)] for path in forest]


def node(entropy: float, parent: int = ROOT) -> Any:
    return turn(0.0, n=2, parent=parent, logprobs=np.full(2, -entropy, np.float32))


def test_e3_scores() -> None:
    made = tree(
        node(1.2), node(0.4), node(1.2, 0), node(0.1, 0), node(0.2, 0), node(0.3, 0), node(0.6, 1)
    )
    rollout = EntropyExpand(nodes=4)
    assert rollout.scores(made, [0, 1, 2]) == pytest.approx([1.15, 0.35, 1.05])
    assert rollout.scores(made, [ROOT, 6]) == pytest.approx([-0.05, 0.6])
    assert rollout.chosen(made, [ROOT, 0, 1, 2]) == [0, 2, 1, ROOT]
    assert rollout.chosen(made, [ROOT, 1, 0]) == [0, 1, ROOT, 0]
    assert EntropyExpand(nodes=2, penalty=0.0).chosen(made, [ROOT, 2, 0]) == [0, 2]
    assert EntropyExpand().max_paths == 22


@given(
    st.integers(1, 3), st.integers(0, 3), st.integers(0, 2), st.integers(1, 4), st.integers(0, 99)
)
@settings(max_examples=30, deadline=None)
def test_it_grows_one_tree_of_the_paths_it_says_and_runs_no_tool_twice(
    initial: int, nodes: int, rounds: int, turns: int, seed: int
) -> None:
    Walk.steps = 0
    group = play(EntropyExpand(initial=initial, nodes=nodes, rounds=rounds), turns, seed)
    (grown,) = group.trees
    assert Walk.steps == len(grown.turns)
    found = lines(group)
    assert len(found) == initial + nodes * rounds
    assert all([s for _, s in line] == ["running"] * (turns - 1) + ["solved"] for line in found)
    # the first chains are those of Chains: expanding changes nothing that was there
    first = play(EntropyExpand(initial=initial, rounds=0), turns, seed)
    assert lines(first) == lines(play(Chains(n=initial), turns, seed))
    before = first.trees[0].turns
    assert [t.action for t in grown.turns[: len(before)]] == [t.action for t in before]


def test_new_endings_leave_the_turns_that_scored_best() -> None:
    for seed in range(10):
        before = play(EntropyExpand(initial=3, rounds=0), 4, seed).trees[0]
        after = play(EntropyExpand(initial=3, nodes=2, rounds=1), 4, seed).trees[0]
        running = [i for i, t in enumerate(before.turns) if t.status == "running"]
        chosen = EntropyExpand(nodes=2).chosen(before, [ROOT, *running])
        n = len(before.turns)
        fresh = [t.parent for t in after.turns[n:] if t.parent < n]
        assert sorted(fresh) == sorted(chosen)


def test_a_deterministic_function_of_the_seed() -> None:
    rollout = EntropyExpand(initial=2, nodes=3, rounds=2)
    assert lines(play(rollout)) == lines(play(rollout, delays=True))
    assert lines(play(rollout, seed=6)) != lines(play(rollout, seed=7))


def test_worlds_that_break_and_replay() -> None:
    for seed in range(10):
        group, _ = hall(
            EntropyExpand(initial=2, nodes=3, rounds=2), seed, ("s.", "f.", "b.", "yy.")
        )
        check_replay(group, seed)


@pytest.mark.parametrize("unit", ["tokens", "calls"])
@given(st.integers(1, 60), st.integers(0, 20))
@settings(max_examples=15, deadline=None)
def test_a_limit_is_passed_by_at_most_one_turn(unit: str, amount: int, seed: int) -> None:
    limit: dict[str, Any] = {f"limit_{unit}": amount}
    group = play(EntropyExpand(initial=10, nodes=3, **limit), seed=seed, width=4)
    turns = [t for made in group.trees for t in made.turns]
    tokens = sum(len(t.act_ids) for t in turns) + group.pruned_tokens
    used, most = (tokens, 4) if unit == "tokens" else (len(turns) + group.pruned_turns, 1)
    assert used < amount + most
    assert all(line[-1][1] == "solved" for line in lines(group))


@pytest.mark.parametrize(
    "bad", [{"initial": 0}, {"nodes": -1}, {"rounds": -1}, {"penalty": -0.1}, {"limit_calls": 0}]
)
def test_settings_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(BadValueError):
        EntropyExpand(**bad)
