"""Speed of ScienceWorld-v0, beside the Java engine where it and its package are installed.

Run with ``pytest benchmarks/speed/test_speed_science_world.py --benchmark-only``. Inputs are those
of
the expert over one variation of each task, all four simplifications on.
"""

from __future__ import annotations

import itertools
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import fork
from turngym.envs.core.errors import BadValueError, MissingExtraError
from turngym.envs.science_world.env import ScienceWorld
from turngym.envs.science_world.jvm import start_engine
from turngym.envs.science_world.tasks.catalogue import TASKS

BACKENDS = ("python", "jvm")
MAX_BYTES = 2_000_000
COPIES = 50


FIGURES: dict[tuple[str, str], float] = {}
LIVE: list[Any] = []
"""The Java engine that was started here last."""


def note(benchmark: BenchmarkFixture, what: str, backend: str, figure: float) -> None:
    """Keep a figure, and beside the original's how many times the one is the other."""
    FIGURES[what, backend] = figure
    benchmark.extra_info[what] = round(figure, 3)
    if backend == "jvm" and (ours := FIGURES.get((what, "python"))) is not None:
        benchmark.extra_info["python_over_jvm"] = round(ours / figure, 4)
        print(f"{what}: python {ours:.4g}, jvm {figure:.4g}, ratio {ours / figure:.4g}")


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
def test_start(benchmark: BenchmarkFixture, backend: str) -> None:
    """From nothing to the first observation of an episode: the original starts a Java process."""

    def begin() -> None:
        if backend == "python":
            ScienceWorld().reset(seed=0, options={"task": "boil/0"})
            return
        while LIVE:
            LIVE.pop().close()
        LIVE.append(start_engine())
        LIVE[-1].load("boil", 0, "easy")
        LIVE[-1].reset()

    made(backend)
    rounds = 3 if backend == "jvm" else 50
    benchmark.pedantic(begin, rounds=rounds, warmup_rounds=int(backend == "python"))
    note(benchmark, "start_ms", backend, 1e3 * benchmark.stats.stats.median)


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps(
    benchmark: BenchmarkFixture, backend: str, episodes: list[tuple[str, list[str]]]
) -> None:
    """Inputs without a list of actions; target 3,000 steps a second."""
    env = made(backend)
    if backend == "jvm":
        episodes = episodes[::5]
    worlds = {}
    for task, texts in episodes:
        env.reset(seed=0, options={"task": task})
        worlds[task] = (fork(env), texts)

    def ready() -> tuple[tuple[list[ScienceWorld]], dict[str, object]]:
        copies = [fork(start) for start, _ in worlds.values()]
        for copy in copies:
            copy.look()  # an engine of the original's lives through the start only now
        return (copies,), {}

    def play(copies: list[ScienceWorld]) -> None:
        for copy, (_, texts) in zip(copies, worlds.values(), strict=True):
            for text in texts:
                copy.step(text)

    benchmark.pedantic(play, setup=ready, rounds=3 if backend == "jvm" else 10)
    steps = sum(len(texts) for _, texts in worlds.values())
    rate = steps / benchmark.stats.stats.median
    note(benchmark, "steps_per_s", backend, rate)
    assert backend == "jvm" or rate > 3000


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_with_all_legal_actions(benchmark: BenchmarkFixture, backend: str) -> None:
    """A legal action at random after listing them all; target 400 steps a second."""
    env = made(backend)
    rng = np.random.default_rng(0)
    env.reset(seed=0, options={"task": "boil/0"})
    for text in ("teleport to kitchen", "open cupboard"):
        env.step(text)

    def ready() -> tuple[tuple[ScienceWorld], dict[str, object]]:
        copy = fork(env)
        copy.look()
        return (copy,), {}

    def play(copy: ScienceWorld) -> None:
        for _ in range(20):
            listed = [t for t in copy.legal_actions() if not t.startswith(("focus", "reset"))]
            copy.step(listed[int(rng.integers(len(listed)))])

    benchmark.pedantic(play, setup=ready, rounds=5 if backend == "jvm" else 20)
    rate = 20 / benchmark.stats.stats.median
    note(benchmark, "listed_steps_per_s", backend, rate)
    assert backend == "jvm" or rate > 400


@pytest.mark.parametrize("backend", BACKENDS)
def test_reset(benchmark: BenchmarkFixture, backend: str) -> None:
    """Another variation each time; target 3 ms."""
    env = made(backend)
    tasks = itertools.cycle(range(0, 3592, 97))
    benchmark.pedantic(
        lambda: env.reset(seed=0, options={"task": next(tasks)}),
        rounds=20 if backend == "jvm" else 200,
        warmup_rounds=5,
    )
    note(benchmark, "reset_ms", backend, 1e3 * benchmark.stats.stats.median)
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
    note(benchmark, "bytes", "python", size)
    assert size < MAX_BYTES


def test_memory_of_a_java_engine(benchmark: BenchmarkFixture) -> None:
    """Resident bytes of the Java process of one environment, after its first observation."""
    made("jvm")
    engine = LIVE[-1] if LIVE else start_engine()
    if not LIVE:
        engine.load("boil", 0, "easy")
        engine.reset()
    status = Path(f"/proc/{engine._gateway.java_process.pid}/status")
    if not status.is_file():
        pytest.skip("the memory of a process is read from /proc")

    def resident() -> int:
        found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text(encoding="ascii"))
        assert found is not None
        return 1024 * int(found[1])

    note(benchmark, "bytes", "jvm", benchmark.pedantic(resident, rounds=1))
