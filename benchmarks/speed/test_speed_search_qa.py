"""Speed of SearchQA-v0 in the full world: run with ``pytest benchmarks --benchmark-only``."""

from __future__ import annotations

import itertools
import time
from statistics import median
from typing import Any

import gymnasium as gym
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import TextVectorEnv, fork
from turngym.envs.core.generated_tasks import DrawnTasks
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.world.world import World
from turngym.envs.tools.retrieval.bm25 import Bm25

COPIES, ROUNDS = 64, 60


@pytest.fixture(scope="module")
def env() -> SearchQA:
    made = SearchQA()
    assert len(made.knowledge.retriever) >= 20_000  # type: ignore[arg-type]
    return made


def played(env: SearchQA, mistakes: float) -> tuple[TextVectorEnv, list[list[str]]]:
    """The vector environment, and the actions of an expert that errs, ``ROUNDS`` times a copy."""
    envs = TextVectorEnv(env, COPIES)
    observations, _ = envs.reset(seed=0)
    expert = env.expert(mistakes, seed=1)
    turns: list[list[str]] = []
    for _ in range(ROUNDS):
        actions = [expert(e, o, {}) for e, o in zip(envs.envs, observations, strict=True)]
        turns.append(actions)
        observations, *_ = envs.step(actions)
    return envs, turns


@pytest.mark.parametrize("mistakes", [0.0, 0.5], ids=["expert", "half_wrong"])
@pytest.mark.parametrize("remembered", [False, True], ids=["new", "again"])
@pytest.mark.parametrize("size", ["full", "micro"])
def test_batched_steps(
    benchmark: BenchmarkFixture, size: str, remembered: bool, mistakes: float
) -> None:
    """Whole episodes, resets included; the aim is 30,000 steps a second in the full world.

    In ``new`` nothing is remembered at the beginning, neither answers nor drawn questions, and
    every episode's question is another: what an index answers again is what it was asked when the
    question was drawn, and what a copy asks twice. In ``again`` the same episodes are played once
    more, as the paths of a group are. Seconds are CPU seconds of this process, which other programs
    disturb less.
    """
    env = SearchQA(size=size)
    index = env.retriever
    assert isinstance(index, Bm25)
    source = env.knowledge.source
    assert isinstance(source, DrawnTasks)
    envs, turns = played(env, mistakes)
    seconds: list[float] = []

    def begin() -> None:
        envs.reset(seed=0)
        if not remembered:
            index.forget()
            source.forget()

    def play() -> None:
        began = time.process_time()
        for actions in turns:
            envs.step(actions)
        seconds.append(time.process_time() - began)

    benchmark.pedantic(play, setup=begin, rounds=5, warmup_rounds=1)
    steps = COPIES * ROUNDS / median(seconds[1:])
    queries = [action for actions in turns for action in actions if "<search>" in action]
    benchmark.extra_info |= {"steps_per_s": steps, "new_queries": len(set(queries)) / len(queries)}
    print(
        f"\n{size}, {'again' if remembered else 'new'}, mistakes {mistakes}: {steps:,.0f} steps/s"
    )
    assert steps > 2000


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
