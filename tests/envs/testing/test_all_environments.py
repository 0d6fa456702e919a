"""The conformance kit over every registered environment."""

from __future__ import annotations

import gymnasium as gym
import pytest

from turngym.envs import all_ids, check_text_env, find_environment
from turngym.envs.core.env import TextEnv

IDS = [i for i in all_ids(hidden=True) if find_environment(i).builtin]


OWN_BOUNDS = ("PaperCrawler-v0",)  # the micro world has its own: its crawls are shorter


@pytest.mark.parametrize("env_id", IDS)
def test_world_keeps_every_law(env_id: str) -> None:
    report = check_text_env(env_id, **find_environment(env_id).smallest)
    skippable = {"legal actions are valid"}
    if find_environment(
        env_id
    ).hidden:  # diagnostic worlds show what is to be done, or hide only rules
        skippable.add("the answer is hidden")
    assert set(report.skipped) <= skippable


@pytest.mark.parametrize("env_id", IDS)
def test_registered_facts_are_the_worlds_own(env_id: str) -> None:
    made = {} if env_id in OWN_BOUNDS else find_environment(env_id).smallest
    world, env = find_environment(env_id), gym.make(env_id, **made)
    assert isinstance(env, TextEnv)
    assert tuple(env.source.sizes()) == world.splits
    assert env.reward_range == world.reward_range


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", [None, "sync"])
def test_world_steps_as_a_vector(env_id: str, mode: str | None) -> None:
    env = gym.make_vec(
        env_id, num_envs=3, vectorization_mode=mode, **find_environment(env_id).smallest
    )
    observations, _ = env.reset(seed=1)
    assert len(observations) == 3
    rewards = env.step(("", "", ""))[1]
    assert rewards.shape == (3,)
    env.close()
