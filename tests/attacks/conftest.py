"""Every environment, made once for all attacks."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from turngym.envs import TextEnv, all_ids


@pytest.fixture(scope="session")
def started() -> dict[str, TextEnv[Any, Any]]:
    """Every environment at the start of an episode; steps are taken in copies."""
    found: dict[str, TextEnv[Any, Any]] = {}
    for env_id in all_ids(hidden=True):
        env = gym.make(env_id).unwrapped
        assert isinstance(env, TextEnv)
        env.reset(seed=3)
        found[env_id] = env
    return found
