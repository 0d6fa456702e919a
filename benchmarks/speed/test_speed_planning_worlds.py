"""Speed of Game24-v0 and WebShop-v0: run with ``pytest benchmarks --benchmark-only``."""

from __future__ import annotations

import itertools

import gymnasium as gym
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import fork
from turngym.envs.core.env import TextEnv

IDS = ("Game24-v0", "WebShop-v0")
EPISODES = 50


def opened(env_id: str) -> TextEnv:
    """A full world."""
    made = gym.make(env_id)
    assert isinstance(made, TextEnv)
    return made


@pytest.mark.parametrize("env_id", IDS)
def test_steps(benchmark: BenchmarkFixture, env_id: str) -> None:
    """The expert's episodes, recorded beforehand, resets included; target 2,000 steps a second."""
    env = opened(env_id)
    expert = env.expert()
    plays: list[list[str]] = []
    for task in range(EPISODES):
        text, info = env.reset(seed=0, options={"task": task})
        plays.append([])
        while info["status"] == "running":
            plays[-1].append(expert(env, text, info))
            text, *_, info = env.step(plays[-1][-1])

    def replay() -> None:
        for task, actions in enumerate(plays):
            env.reset(seed=0, options={"task": task})
            for action in actions:
                env.step(action)

    benchmark(replay)
    steps = sum(map(len, plays))
    benchmark.extra_info["steps_per_s"] = steps / benchmark.stats.stats.median
    assert benchmark.extra_info["steps_per_s"] > 2000


@pytest.mark.parametrize("env_id", IDS)
def test_reset(benchmark: BenchmarkFixture, env_id: str) -> None:
    """Another task each time; target 1 ms."""
    env = opened(env_id)
    tasks = itertools.cycle(range(500))
    benchmark(lambda: env.reset(seed=0, options={"task": next(tasks)}))
    assert benchmark.stats.stats.median < 1e-3


@pytest.mark.parametrize("env_id", IDS)
def test_fork(benchmark: BenchmarkFixture, env_id: str) -> None:
    """A copy in the middle of an episode; target 100 microseconds."""
    env = opened(env_id)
    text, info = env.reset(seed=0)
    env.step(env.expert()(env, text, info))
    benchmark(lambda: fork(env))
    assert benchmark.stats.stats.median < 100e-6
