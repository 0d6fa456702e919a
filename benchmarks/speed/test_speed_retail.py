"""Speed of Retail-v0 in CPU time: run with ``pytest benchmarks --benchmark-only``.

Beside each figure stands the peers' on two busy cores (specs: tau-bench v1, tau2): a world
14.4 and 33.4 ms, reading an order 13.7 and 41 microseconds, scoring 330 and 524 ms, a whole gold
episode 351 and over 550 ms, memory of a world 5.9 and 11.8 MB.
"""

from __future__ import annotations

import gc
import itertools
import time
import tracemalloc
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import fork
from turngym.envs.retail.customer.scripted import RuleCustomer
from turngym.envs.retail.env import Retail, prove_solvable
from turngym.envs.retail.tasks.make import make_tasks

pytestmark = pytest.mark.benchmark(timer=time.process_time)
TASKS = 200


@pytest.fixture(scope="module")
def env() -> Retail:
    made = Retail()
    for i in range(TASKS):
        made.reset(seed=0, options={"task": i})
    return made


@pytest.fixture(scope="module")
def played(env: Retail) -> list[list[str]]:
    """The expert's actions for the first tasks."""
    found = []
    for i in range(TASKS):
        observation, info = env.reset(seed=0, options={"task": i})
        expert, actions = env.expert(), []
        while info["status"] == "running":
            actions.append(expert(env, observation, info))
            observation, *_, info = env.step(actions[-1])
        found.append(actions)
    return found


def test_reset(benchmark: BenchmarkFixture, env: Retail) -> None:
    """Another task each time; target 20 microseconds."""
    tasks = itertools.cycle(range(TASKS))
    benchmark(lambda: env.reset(seed=0, options={"task": next(tasks)}))
    assert benchmark.stats.stats.median < 20e-6


def test_tool_steps(benchmark: BenchmarkFixture, env: Retail, played: list[list[str]]) -> None:
    """The median tool call of the expert's episodes; target 15 microseconds.

    One round plays the tool calls of an episode; messages are played outside the clock.
    """
    took: list[float] = []

    def episode(i: int) -> None:
        env.reset(seed=0, options={"task": i})
        for action in played[i]:
            if not action.startswith("<tool_call>"):
                env.step(action)
                continue
            start = time.perf_counter()
            env.step(action)
            took.append(time.perf_counter() - start)

    tasks = itertools.cycle(range(TASKS))
    benchmark.pedantic(lambda: episode(next(tasks)), rounds=3 * TASKS, warmup_rounds=TASKS)
    took.sort()
    benchmark.extra_info["median_us"] = 1e6 * took[len(took) // 2]


def test_read_an_order(benchmark: BenchmarkFixture) -> None:
    """The commonest call; target 15 microseconds."""
    env = Retail(max_turns=10**9)
    env.reset(seed=0)
    order = next(iter(env.episode.state.overlay.shop.orders))
    action = env.knowledge.tools.write("get_order_details", {"order_id": order})

    def start() -> tuple[tuple[()], dict[str, Any]]:
        env.reset(seed=0)
        return (), {}

    def steps() -> None:
        for _ in range(50):
            env.step(action)

    benchmark.pedantic(steps, setup=start, rounds=300, warmup_rounds=20)
    benchmark.extra_info["step_us"] = 1e6 * benchmark.stats.stats.median / 50
    assert benchmark.stats.stats.median / 50 < 15e-6


def test_customer_turn(benchmark: BenchmarkFixture, env: Retail) -> None:
    """An answer to a message that was never seen before; target 150 microseconds."""
    env.reset(seed=0, options={"task": 3})
    scenario, state = env.episode.task.payload.scenario, env.episode.state.customer
    assert scenario is not None
    customer, numbers = RuleCustomer(), itertools.count()

    def turn() -> None:
        text = (
            f"I will cancel order #W{next(numbers):07d} because it is no longer needed. The money "
            "goes back to your gift card. Do you confirm? Which items do you mean?"
        )
        customer.reply(scenario, state.fork(), text, ())

    benchmark(turn)
    assert benchmark.stats.stats.median < 150e-6


def test_scoring(benchmark: BenchmarkFixture, env: Retail, played: list[list[str]]) -> None:
    """The score of a finished visit of several writes; target 50 microseconds."""
    task = max(range(TASKS), key=lambda i: env.source.task("train", i).payload.features["writes"])
    env.reset(seed=0, options={"task": task})
    for action in played[task]:
        env.step(action)
    assert benchmark(lambda: env.score(env.episode)).success
    assert benchmark.stats.stats.median < 50e-6


def test_gold_episode(benchmark: BenchmarkFixture, env: Retail, played: list[list[str]]) -> None:
    """Reset, all steps, customer and score; target 2 ms in the median."""
    tasks = itertools.cycle(range(TASKS))

    def episode() -> None:
        i = next(tasks)
        env.reset(seed=0, options={"task": i})
        for action in played[i]:
            env.step(action)

    benchmark.pedantic(episode, rounds=3 * TASKS, warmup_rounds=TASKS)
    steps = sum(map(len, played)) / TASKS
    benchmark.extra_info["steps_per_cpu_s"] = steps / benchmark.stats.stats.mean
    assert benchmark.stats.stats.median < 2e-3


def test_fork(benchmark: BenchmarkFixture, env: Retail, played: list[list[str]]) -> None:
    """A copy in the middle of a visit; target 20 microseconds."""
    env.reset(seed=0, options={"task": 3})
    for action in played[3][:-2]:
        env.step(action)
    benchmark(lambda: fork(env))
    assert benchmark.stats.stats.median < 20e-6


def test_memory(benchmark: BenchmarkFixture, env: Retail, played: list[list[str]]) -> None:
    """Heap of a live copy late in its episode; target 50 kB."""

    def grown() -> float:
        gc.collect()
        tracemalloc.start()
        copies = []
        for i in range(100):
            twin = env.fork()
            twin.reset(seed=0, options={"task": i})
            for action in played[i][:-1]:
                twin.step(action)
            copies.append(twin)
        used = tracemalloc.get_traced_memory()[0] / len(copies)
        tracemalloc.stop()
        return used

    benchmark.extra_info["bytes_per_env"] = benchmark.pedantic(grown, rounds=1)
    assert benchmark.extra_info["bytes_per_env"] < 50_000


def test_making_tasks(benchmark: BenchmarkFixture) -> None:
    """The 300 test tasks from nothing, each proved by playing it."""
    benchmark.pedantic(lambda: make_tasks("full", 0, "test", prove_solvable), rounds=1)
