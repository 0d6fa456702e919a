"""Luck of a group: paths draw their own where results are drawn, and the same ones every time."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
from helpers.talk_world import LetterRenderer, ScriptEngine

import turngym.envs  # noqa: F401 - registers
from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Rollout, Start
from turngym.algos.rollouts import Chains, EpisodeRunner, Expand

START = Start("train", 2, 5, "u")


def play(env_id: str, rollout: Rollout, words: str, **settings: Any) -> Group:
    renderer: Any = LetterRenderer()
    engine = ScriptEngine(words=words)
    env = gym.make(env_id, **settings)
    return asyncio.run(rollout(EpisodeRunner(env, engine, renderer, Sampling(max_tokens=1)), START))


def noises(group: Group) -> list[float]:
    """The noise of every episode, in order."""
    return [
        dict(tree.turns[last].reward_terms)["noise"]
        for tree in group.trees
        for last in tree.finals()
    ]


def test_chains_of_equal_letters_have_noise_of_their_own() -> None:
    drawn = noises(play("Noise-v0", Chains(n=5), "a"))
    assert len(set(drawn)) == 5
    assert drawn == noises(play("Noise-v0", Chains(n=5), "a"))
    assert drawn[:2] == noises(play("Noise-v0", Chains(n=2), "a"))


def test_branches_of_a_tree_have_noise_of_their_own() -> None:
    plan = Expand(trees=1, nodes=4, rounds=2)
    drawn = noises(play("Noise-v0", plan, "a"))
    assert len(drawn) > 4
    assert len(set(drawn)) == len(drawn)
    assert drawn == noises(play("Noise-v0", plan, "a"))


def test_looks_of_a_group_err_apart() -> None:
    group = play("Fog-v0", Chains(n=12), "l", fog=0.6)
    firsts = {"".join(map(chr, tree.turns[1].obs_ids)) for tree in group.trees}
    assert len(firsts) > 1


def test_a_lot_is_shared_by_what_shares_its_letters() -> None:
    group = play("Lottery-v0", Chains(n=3), "a")
    assert len({tree.turns[-1].reward for tree in group.trees}) == 1
