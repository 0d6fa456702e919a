"""Speed of PaperCrawler-v0 at 8,000 papers: run with ``pytest benchmarks --benchmark-only``."""

from __future__ import annotations

import itertools

import gymnasium as gym
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from turngym.agents.scripted import scripted
from turngym.envs import fork
from turngym.envs.paper_crawler.env import PaperCrawler

CRAWLS = 20


@pytest.fixture(scope="module")
def env() -> PaperCrawler:
    made = gym.make("PaperCrawler-v0", granularity="session").unwrapped
    assert isinstance(made, PaperCrawler)
    return made


def recorded(env: PaperCrawler, name: str) -> list[list[str]]:
    """Actions of whole crawls, so that only the environment is timed."""
    crawls = []
    for task in range(CRAWLS):
        policy = scripted(name, task, env)
        observation, info = env.reset(seed=task, options={"task": task})
        actions: list[str] = []
        while info["status"] == "running":
            actions.append(policy(env, observation, info))
            observation, _, _, _, info = env.step(actions[-1])
        crawls.append(actions)
    return crawls


@pytest.mark.parametrize("name", ["heuristic", "expand-all"])
def test_session_steps(benchmark: BenchmarkFixture, env: PaperCrawler, name: str) -> None:
    """Whole sessions of full crawls, resets included; target 3,000 a second."""
    crawls = recorded(env, name)
    tasks = itertools.cycle(range(CRAWLS))

    def crawl() -> None:
        task = next(tasks)
        env.reset(seed=task, options={"task": task})
        for action in crawls[task]:
            env.step(action)

    benchmark(crawl)
    sessions = sum(map(len, crawls)) / CRAWLS
    benchmark.extra_info["session_steps_per_s"] = sessions / benchmark.stats.stats.median
    assert benchmark.extra_info["session_steps_per_s"] > 3000


def test_reset(benchmark: BenchmarkFixture, env: PaperCrawler) -> None:
    """A new request each time; target 1 ms."""
    tasks = itertools.count()
    benchmark(lambda: env.reset(seed=0, options={"task": next(tasks) % 10_000}))
    assert benchmark.stats.stats.median < 1e-3


def test_fork(benchmark: BenchmarkFixture, env: PaperCrawler) -> None:
    """A copy at the end of a crawl that opened everything; target 100 microseconds."""
    actions = recorded(env, "expand-all")[0]
    env.reset(seed=0, options={"task": 0})
    for action in actions[:-1]:
        env.step(action)
    benchmark.extra_info["queue"] = len(env.episode.state.queue)
    benchmark(lambda: fork(env))
    assert benchmark.stats.stats.median < 100e-6


def test_search(benchmark: BenchmarkFixture, env: PaperCrawler) -> None:
    """One search session of five queries."""
    text = "[Search] graph methods for protein folding\n" * 4 + "[Search] survey of translation\n"
    twins = [fork(env) for _ in range(2)]
    twins[0].reset(seed=0, options={"task": 0})
    benchmark(lambda: fork(twins[0]).step(text + "[StopSearch]"))
