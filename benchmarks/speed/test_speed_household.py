"""Speed of Household-v0: ``pytest benchmarks/speed/test_speed_household.py --benchmark-only -s``.

Commands are random admissible ones over sixty episodes of generated houses. Rates are of processor
time, so that other work on the machine does not count. The original's figures, measured on one core
of another machine: loading a game 654 ms, reset 611 ms, a step 44.7 ms, 10 MB per live environment.
"""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import fork
from turngym.envs.household.env import Household

EPISODES, STEPS, COPIES = 60, 40, 200
ORIGINAL_STEP_S = 44.7e-3
MAX_BYTES = 50_000

Walk = tuple[Household, Sequence[str]]


def best_cpu_seconds(work: Callable[[], object], rounds: int = 7) -> float:
    """Least processor time of some rounds."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def make_walks(size: str, admissible: bool) -> list[Walk]:
    env = Household(size=size, admissible=admissible)
    rng = np.random.default_rng(0)
    walks = []
    for task in range(EPISODES):
        env.reset(seed=0, options={"split": "train", "task": task})
        start = fork(env)
        assert isinstance(start, Household)
        commands: list[str] = []
        status = "running"
        while status == "running" and len(commands) < STEPS:
            listed = env.legal_actions()
            commands.append(listed[int(rng.integers(len(listed)))])
            status = env.step(commands[-1])[4]["status"]
        walks.append((start, commands))
    return walks


@pytest.mark.parametrize(("admissible", "least"), [(False, 30_000), (True, 10_000)])
@pytest.mark.parametrize("size", ["full", "micro"])
def test_steps(benchmark: BenchmarkFixture, size: str, admissible: bool, least: int) -> None:
    """Steps a second; targets 30,000 and with lists of admissible commands 10,000."""
    walks = make_walks(size, admissible)

    def play() -> None:
        for start, commands in walks:
            env = fork(start)
            for command in commands:
                env.step(command)

    rate = sum(len(commands) for _, commands in walks) / best_cpu_seconds(play)
    benchmark.extra_info["steps_per_s"] = round(rate)
    benchmark.extra_info["times_the_original"] = round(rate * ORIGINAL_STEP_S)
    benchmark.pedantic(play, rounds=3)
    print(f"{size}, lists {admissible}: {rate:,.0f} steps/s, {rate * ORIGINAL_STEP_S:,.0f} times")
    assert rate > least


@pytest.mark.parametrize("new", [False, True])
def test_reset(benchmark: BenchmarkFixture, new: bool) -> None:
    """A task that was played before, or one that is drawn now; target 300 microseconds."""
    env = Household()
    for task in range(200):  # all rooms are furnished once
        env.reset(seed=0, options={"task": task})
    tasks = itertools.count(1000) if new else itertools.cycle(range(200))

    def reset_all() -> None:
        for task in itertools.islice(tasks, 200):
            env.reset(seed=0, options={"task": task})

    seconds = best_cpu_seconds(reset_all) / 200
    benchmark.extra_info["reset_us"] = round(1e6 * seconds, 1)
    benchmark.pedantic(reset_all, rounds=1)
    print(f"reset, new {new}: {1e6 * seconds:.0f} us")
    assert seconds < 300e-6


def test_fork(benchmark: BenchmarkFixture) -> None:
    """A copy in the middle of an episode; target 20 microseconds."""
    start, commands = make_walks("full", admissible=False)[0]
    for command in commands[:20]:
        start.step(command)
    seconds = best_cpu_seconds(lambda: [fork(start) for _ in range(1000)]) / 1000
    benchmark.extra_info["fork_us"] = round(1e6 * seconds, 1)
    benchmark(lambda: fork(start))
    print(f"fork: {1e6 * seconds:.1f} us")
    assert seconds < 20e-6


def test_state_digest(benchmark: BenchmarkFixture) -> None:
    """The identity of a state, as graphs of states ask for after every step."""
    start, _ = make_walks("full", admissible=False)[0]
    benchmark(start.state_digest)


def test_memory_of_a_live_episode(benchmark: BenchmarkFixture) -> None:
    """Bytes per environment that has been played, beside the shared game; at most 50 kB."""
    start, commands = make_walks("full", admissible=False)[0]

    def grow() -> float:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        copies = [fork(start) for _ in range(COPIES)]
        for copy in copies:
            for command in commands:
                copy.step(command)
        size = (tracemalloc.get_traced_memory()[0] - before) / COPIES
        tracemalloc.stop()
        return size

    size = benchmark.pedantic(grow, rounds=1)
    benchmark.extra_info["bytes"] = round(size)
    print(f"memory: {size:,.0f} bytes")
    assert size < MAX_BYTES
