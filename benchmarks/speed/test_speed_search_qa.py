"""Speed of SearchQA-v0 in the full world: run with ``pytest benchmarks --benchmark-only``."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.envs import TextVectorEnv, fork
from turngym.envs.core.generated_tasks import DrawnTasks
from turngym.envs.search_qa.answer_metrics import normalise_answer
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.world.world import World
from turngym.envs.tools.retrieval.bm25 import Bm25

COPIES, ROUNDS = 64, 60
GROUP = 8
PROCESSES, REPEATS = 2, 7


@pytest.fixture(scope="module")
def env() -> SearchQA:
    made = SearchQA()
    assert len(made.knowledge.retriever) >= 20_000  # type: ignore[arg-type]
    return made


def played(
    env: SearchQA, mistakes: float, seed: int | list[int] = 0
) -> tuple[TextVectorEnv, list[list[str]]]:
    """The vector environment, and the actions of an expert that errs, ``ROUNDS`` times a copy."""
    envs = TextVectorEnv(env, COPIES)
    observations, _ = envs.reset(seed=seed)
    expert = env.expert(mistakes, seed=1)
    turns: list[list[str]] = []
    for _ in range(ROUNDS):
        actions = [expert(e, o, {}) for e, o in zip(envs.envs, observations, strict=True)]
        turns.append(actions)
        observations, *_ = envs.step(actions)
    return envs, turns


@pytest.mark.parametrize("mistakes", [0.0, 0.5], ids=["expert", "half_wrong"])
@pytest.mark.parametrize("kind", ["new", "groups", "again"])
@pytest.mark.parametrize("size", ["full", "micro"])
def test_batched_steps(benchmark: BenchmarkFixture, size: str, kind: str, mistakes: float) -> None:
    """Whole episodes, resets included; the aim is 30,000 steps a second in the full world.

    In ``new`` and ``groups`` nothing is remembered at the beginning, neither answers, drawn
    questions nor normalised texts. In ``new`` every episode's question is another: what an index
    answers again is what it was asked when the question was drawn, and what a copy asks twice. In
    ``groups`` eight copies each play the same questions, with mistakes of their own, as a step of
    GRPO does. In ``again`` the episodes of ``new`` are played once more. Seconds are CPU seconds of
    this process, which other programs disturb less.
    """
    env = SearchQA(size=size)
    index = env.retriever
    assert isinstance(index, Bm25)
    source = env.knowledge.source
    assert isinstance(source, DrawnTasks)
    seeds = [copy // GROUP if kind == "groups" else copy for copy in range(COPIES)]
    envs, turns = played(env, mistakes, seeds)
    seconds: list[float] = []

    def begin() -> None:
        envs.reset(seed=seeds)
        if kind != "again":
            index.forget()
            source.forget()
            normalise_answer.cache_clear()

    def play() -> None:
        began = time.process_time()
        for actions in turns:
            envs.step(actions)
        seconds.append(time.process_time() - began)

    benchmark.pedantic(play, setup=begin, rounds=5, warmup_rounds=1)
    steps = COPIES * ROUNDS / median(seconds[1:])
    queries = [action for actions in turns for action in actions if "<search>" in action]
    benchmark.extra_info |= {"steps_per_s": steps, "new_queries": len(set(queries)) / len(queries)}
    print(f"\n{size}, {kind}, mistakes {mistakes}: {steps:,.0f} steps/s")
    assert steps > 2000


class Cost(NamedTuple):
    """Seconds of :data:`ROUNDS` steps of all copies.

    Attributes:
        wall: By the clock.
        own: Processor time of this process.
        others: That of the processes of copies.
        reward: What the copies gained.
    """

    wall: float
    own: float
    others: float
    reward: float


def processor_seconds(pids: list[int]) -> float:
    """What other processes have computed, by the kernel's nanoseconds."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


def cost(envs: TextVectorEnv, turns: list[list[str]]) -> Cost:
    pids = [w.process.pid for w in getattr(envs._copies, "_workers", ())]
    before, own, began = processor_seconds(pids), time.process_time(), time.perf_counter()
    reward = sum(float(envs.step(actions)[1].sum()) for actions in turns)
    wall, own = time.perf_counter() - began, time.process_time() - own
    return Cost(wall, own, processor_seconds(pids) - before, reward)


def test_processes(benchmark: BenchmarkFixture, env: SearchQA) -> None:
    """Copies in two processes against one, in turns; the aim is 30,000 steps a second.

    Every repeat has questions of its own and new processes, which have seen a few others before.
    The questions are played once when they are new, as in :func:`test_batched_steps`, and once
    more. ``waiting`` is the form whose processes begin no episode while they wait for actions.
    Seconds are by the clock, so nothing else should run; the processor time of a step of all
    copies, in this process and in the others, is told beside them.
    """
    index, source = env.retriever, env.knowledge.source
    assert isinstance(index, Bm25)
    assert isinstance(source, DrawnTasks)
    costs: dict[str, list[dict[str, Cost]]] = {"new": [], "again": []}

    def repeat(number: int) -> None:
        one, turns = played(env, 0.0, seed=COPIES * number)
        forms = {"one": one, "two": TextVectorEnv(env, COPIES, PROCESSES)}
        env.blocking = True  # such environments are left alone until they are asked
        forms["waiting"] = TextVectorEnv(env, COPIES, PROCESSES)
        env.blocking = False
        order = list(forms)[number % 3 :] + list(forms)[: number % 3]
        for name in order:
            forms[name].reset(seed=10**9 + number)
            for _ in range(6):
                forms[name].step([f"<search> the novel {number} </search>"] * COPIES)
        index.forget()
        source.forget()
        for found in costs.values():
            played_now: dict[str, Cost] = {}
            for name in order:
                forms[name].reset(seed=COPIES * number)
                played_now[name] = cost(forms[name], turns)
            assert len({c.reward for c in played_now.values()}) == 1
            found.append(played_now)
        for name in ("two", "waiting"):
            forms[name].close()

    def measure() -> None:
        for number in range(REPEATS):
            repeat(number)

    benchmark.pedantic(measure, rounds=1)
    for kind, found in costs.items():
        print(f"\n{kind}:")
        benchmark.extra_info[kind] = rates = {name: tell(name, found) for name in found[0]}
        assert min(rates.values()) > 2000


def tell(name: str, repeats: list[dict[str, Cost]]) -> float:
    """Print the medians of one form; its steps a second."""
    mine = [forms[name] for forms in repeats]
    rate = COPIES * ROUNDS / median(c.wall for c in mine)
    ratio = median(forms["one"].wall / forms[name].wall for forms in repeats)
    own, others = (
        median(c) / ROUNDS * 1e6 for c in zip(*((c.own, c.others) for c in mine), strict=True)
    )
    print(
        f"  {name}: {rate:,.0f} steps/s, {ratio:.2f} times one; processor time of a step "
        f"{own:,.0f} + {others:,.0f} us"
    )
    return rate


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
