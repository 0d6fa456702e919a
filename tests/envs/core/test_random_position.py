"""Where an episode's random numbers stand, and other luck for a fork."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import turngym.envs  # noqa: F401 - registers the environments
from turngym.envs.core.env import TextEnv


def started(env_id: str, **settings: Any) -> TextEnv[Any, Any]:
    env = gym.make(env_id, **settings).unwrapped
    assert isinstance(env, TextEnv)
    env.reset(seed=3, options={"task": 0})
    return env


def test_a_step_that_draws_moves_the_position() -> None:
    env = started("Fog-v0")
    before = env.random_position()
    env.step("l")
    assert env.random_position() != before
    quiet = started("Password-v0")
    before = quiet.random_position()
    quiet.step("a")
    assert quiet.random_position() == before


@pytest.mark.parametrize("settings", [{"size": "micro"}])
def test_a_stream_in_the_state_counts_and_is_redrawn(settings: dict[str, Any]) -> None:
    env = started("ScienceWorld-v0", **settings)
    one, two = env.fork(), env.fork()
    one.redraw(5)
    assert one.random_position() != two.random_position() == env.random_position()
    same = env.fork()
    same.redraw(5)
    assert same.random_position() == one.random_position()
    assert one.state_digest() == two.state_digest()
