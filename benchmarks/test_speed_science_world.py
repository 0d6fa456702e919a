"""Speed of ScienceWorld-v0, beside the Java engine where it and its package are installed.

Run with ``pytest benchmarks/test_speed_science_world.py --benchmark-only``. Inputs are those of
the expert over one variation of each task, all four simplifications on.
"""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import fork
from turngym.envs.errors import BadValueError, MissingExtraError
from turngym.envs.science_world.env import ScienceWorld
from turngym.envs.science_world.tasks.catalogue import TASKS

BACKENDS = ("python", "jvm")
MOST_BYTES = 2_000_000
COPIES = 50


def made(backend: str) -> ScienceWorld:
    try:
        return ScienceWorld(backend=backend)
    except (MissingExtraError, BadValueError) as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def episodes() -> list[tuple[str, list[str]]]:
    """Per task the expert's inputs for variation 0."""
    env, found = ScienceWorld(), []
    for kind in TASKS:
        task = f"{kind.name}/0"
        observation, info = env.reset(seed=0, options={"task": task})
        expert, texts = env.expert(), []
        while info["status"] == "running":
            texts.append(expert(env, observation, info))
            observation, *_, info = env.step(texts[-1])
        found.append((task, texts))
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps(
    benchmark: BenchmarkFixture, backend: str, episodes: list[tuple[str, list[str]]]
) -> None:
    """Inputs without a list of actions; target 3,000 steps a second."""
    env = made(backend)
    worlds = {}
    for task, texts in episodes:
        env.reset(seed=0, options={"task": task})
        worlds[task] = (fork(env), texts)

    def play() -> int:
        steps = 0
        for start, texts in worlds.values():
            copy = fork(start)
            for text in texts:
                copy.step(text)
            steps += len(texts)
        return steps

    steps = benchmark.pedantic(play, rounds=3 if backend == "jvm" else 10)
    benchmark.extra_info["steps_per_s"] = steps / benchmark.stats.stats.median
    if backend == "python":
        assert benchmark.extra_info["steps_per_s"] > 3000


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_with_all_legal_actions(benchmark: BenchmarkFixture, backend: str) -> None:
    """A legal action at random after listing them all; target 400 steps a second."""
    env = made(backend)
    rng = np.random.default_rng(0)
    env.reset(seed=0, options={"task": "boil/0"})
    for text in ("teleport to kitchen", "open cupboard"):
        env.step(text)
    start = fork(env)

    def play() -> None:
        copy = fork(start)
        assert isinstance(copy, ScienceWorld)
        for _ in range(20):
            listed = [text for text in copy.legal_actions() if not text.startswith("focus")]
            copy.step(listed[int(rng.integers(len(listed)))])

    benchmark.pedantic(play, rounds=3 if backend == "jvm" else 20)
    benchmark.extra_info["steps_per_s"] = 20 / benchmark.stats.stats.median
    if backend == "python":
        assert benchmark.extra_info["steps_per_s"] > 400


@pytest.mark.parametrize("backend", BACKENDS)
def test_reset(benchmark: BenchmarkFixture, backend: str) -> None:
    """Another variation each time; target 3 ms."""
    env = made(backend)
    tasks = itertools.cycle(range(0, 3592, 97))
    benchmark.pedantic(
        lambda: env.reset(seed=0, options={"task": next(tasks)}),
        rounds=10 if backend == "jvm" else 200,
    )
    assert backend == "jvm" or benchmark.stats.stats.median < 3e-3


def test_fork(benchmark: BenchmarkFixture) -> None:
    """A copy in the middle of an episode; target 200 microseconds."""
    env = ScienceWorld()
    env.reset(seed=0, options={"task": "boil/0"})
    for text in ("teleport to kitchen", "open cupboard", "wait"):
        env.step(text)
    benchmark(lambda: fork(env))
    assert benchmark.stats.stats.median < 200e-6


def test_memory_of_a_live_episode(benchmark: BenchmarkFixture) -> None:
    """Bytes per environment that has been played; at most 2 MB."""
    env = ScienceWorld()
    env.reset(seed=0, options={"task": "boil/0"})

    def grow() -> float:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        copies = [fork(env) for _ in range(COPIES)]
        for copy in copies:
            for text in ("teleport to kitchen", "open cupboard", "look around", "wait"):
                copy.step(text)
        size = (tracemalloc.get_traced_memory()[0] - before) / COPIES
        tracemalloc.stop()
        return size

    size = benchmark.pedantic(grow, rounds=1)
    benchmark.extra_info["bytes_per_env"] = size
    assert size < MOST_BYTES
