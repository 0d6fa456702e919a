"""Fork-v0 counted: how often a group holds a good and a bad door of one and the same room."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest
from helpers.talk_world import LetterRenderer, ScriptEngine

import turngym.envs  # noqa: F401 - registers
from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Rollout, Start
from turngym.algos.rollouts import Branch, Chains, EpisodeRunner, Expand

WALK = 3
CALLS = 20
"""Turns that a group may take: five chains."""
GROUPS = 120


def runner(engine: Any) -> EpisodeRunner:
    renderer: Any = LetterRenderer()
    return EpisodeRunner(gym.make("Fork-v0"), engine, renderer, Sampling(max_tokens=1))


def doors_by_room(group: Group) -> dict[str, set[str]]:
    """Status of the episodes that ended at a door, by the letters walked; trees thrown together."""
    seen: dict[str, set[str]] = {}
    for tree in group.trees:
        for last in tree.finals():
            line = [tree.turns[i] for i in tree.chain(last)]
            if len(line) == WALK + 1:
                walk = "".join(turn.action for turn in line[:WALK])
                seen.setdefault(walk, set()).add(line[-1].status)
    return seen


def share_with_signal(rollout: Rollout) -> float:
    """Share of groups with both kinds of door in one room, under a policy that throws dice."""
    play = runner(ScriptEngine(words="abcd"))
    hits = 0
    for task in range(GROUPS):
        group = asyncio.run(rollout(play, Start("train", task % 70, task, f"u{task}")))
        taken = sum(len(tree.turns) for tree in group.trees) + group.pruned_turns
        assert taken <= CALLS
        hits += any({"solved", "failed"} <= ends for ends in doors_by_room(group).values())
    return hits / GROUPS


@pytest.mark.parametrize(
    "tree_rollout",
    [
        Expand(trees=2, nodes=4, rounds=2, limit_calls=CALLS),
        Branch(initial=2, budget=20, beam=3, alpha=0.5, beta=0.0, limit_calls=CALLS),
    ],
    ids=["expand", "branch"],
)
def test_only_trees_see_both_kinds_of_door_in_one_room(tree_rollout: Rollout) -> None:
    chains = share_with_signal(Chains(n=CALLS // (WALK + 1)))
    trees = share_with_signal(tree_rollout)
    assert chains < 0.12  # about 10 pairs * 1/64 * 3/8
    assert trees > 0.4


def test_the_count_sees_what_it_should() -> None:
    engine = ScriptEngine([*"aaac", *"aaab", *"bbbc"])  # the good door of aaa is b, of bbb c
    group = asyncio.run(Chains(n=3)(runner(engine), Start("train", 0, 0, "u")))
    assert doors_by_room(group) == {"aaa": {"failed", "solved"}, "bbb": {"solved"}}
