"""Speed of SearchQA-v0 in the full world: run with ``pytest benchmarks --benchmark-only``."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import TextVectorEnv, fork
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.world.world import World

COPIES = 64


@pytest.fixture(scope="module")
def env() -> SearchQA:
    made = SearchQA()
    assert len(made.knowledge.retriever) >= 20_000  # type: ignore[arg-type]
    return made


def test_batched_steps(benchmark: BenchmarkFixture, env: SearchQA) -> None:
    """Whole expert episodes, resets included, every query another; target 2,000 steps a second."""
    envs = TextVectorEnv(env, COPIES)
    observations, _ = envs.reset(seed=0)
    expert = env.expert()
    seen: list[list[str]] = []
    for _ in range(60):
        actions = [expert(e, o, {}) for e, o in zip(envs.envs, observations, strict=True)]
        seen.append(actions)
        observations, *_ = envs.step(actions)
    turns = itertools.cycle(seen)
    envs.reset(seed=0)

    benchmark(lambda: envs.step(next(turns)))
    benchmark.extra_info["steps_per_s"] = COPIES / benchmark.stats.stats.median
    assert benchmark.extra_info["steps_per_s"] > 2000


def test_reset(benchmark: BenchmarkFixture, env: SearchQA) -> None:
    """A new question each time; target 1 ms."""
    tasks = itertools.count()
    benchmark(lambda: env.reset(seed=0, options={"task": next(tasks)}))
    assert benchmark.stats.stats.median < 1e-3


def test_fork(benchmark: BenchmarkFixture, env: SearchQA) -> None:
    """A copy in the middle of an episode; target 100 microseconds."""
    env.reset(seed=0)
    for _ in range(3):
        env.step("<search> the novel </search>")
    benchmark(lambda: fork(env))
    assert benchmark.stats.stats.median < 100e-6


def test_build(benchmark: BenchmarkFixture, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """World and index from nothing, with an empty cache."""
    folders = (str(tmp_path / str(i)) for i in itertools.count())

    def build() -> World:
        monkeypatch.setenv("TURNGYM_CACHE", next(folders))
        return World("full", 0, 0.2)

    benchmark.pedantic(build, rounds=3)


def test_second_make(benchmark: BenchmarkFixture, env: SearchQA) -> None:
    """``gym.make`` when the world is in memory."""
    benchmark(lambda: gym.make("SearchQA-v0"))
