"""What a tree is worth: paths per sampled token, Expand against Chains on tasks of three turns.

The small starter plays two-hop questions of the micro world (search, search, answer). Counts, not
times, so the figures do not depend on the machine; the time per group is measured beside them.
Run with ``pytest benchmarks/speed/test_speed_rollout.py --benchmark-only -s``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest

torch = pytest.importorskip("torch")

from turngym.agents.engines.base import Sampling  # noqa: E402
from turngym.agents.engines.local.engine import TransformersEngine  # noqa: E402
from turngym.agents.models.loading import load_model, load_tokenizer  # noqa: E402
from turngym.agents.rendering.factory import make_renderer  # noqa: E402
from turngym.agents.warm_start.cache import ensure_starter  # noqa: E402
from turngym.algos.core.forest import Forest  # noqa: E402
from turngym.algos.rollouts import Chains, EpisodeRunner, Expand  # noqa: E402
from turngym.algos.rollouts.stats import tokens_sampled  # noqa: E402
from turngym.algos.rollouts.task_order import step_starts  # noqa: E402

GROUPS = 32


@pytest.fixture(scope="module")
def runner() -> EpisodeRunner:
    folder = str(ensure_starter("SearchQA-v0"))
    env = gym.make("SearchQA-v0", size="micro", hops=2)
    tokenizer = load_tokenizer(folder)
    engine = TransformersEngine(load_model(folder), tokenizer, max_batch=64)
    return EpisodeRunner(env, engine, make_renderer(tokenizer), Sampling(max_tokens=64), None)


def play(runner: EpisodeRunner, rollout: Any) -> Forest:
    starts = step_starts(0, 1, GROUPS, "train", None)
    return Forest.of(asyncio.run(runner.groups(rollout, starts)))


def paths_per_token(forest: Forest) -> float:
    return len(forest.paths) / tokens_sampled(forest)


@pytest.mark.parametrize(
    ("trees", "nodes", "rounds", "at_least"),
    [(2, 2, 1, 1.2), (1, 5, 1, 1.3), (2, 11, 1, 1.4)],
)
def test_paths_per_sampled_token(
    benchmark: Any, runner: EpisodeRunner, trees: int, nodes: int, rounds: int, at_least: float
) -> None:
    chains = play(runner, Chains(n=6))
    rollout = Expand(trees=trees, nodes=nodes, rounds=rounds)
    grown = benchmark.pedantic(lambda: play(runner, rollout), rounds=3, warmup_rounds=1)
    ratio = paths_per_token(grown) / paths_per_token(chains)
    turns = sum(len(path.turns) for path in chains) / len(chains.paths)
    benchmark.extra_info["ratio"] = ratio
    print(
        f"\nExpand({trees}, {nodes}, {rounds}): {len(grown.paths)} paths, "
        f"{1 / paths_per_token(grown):.1f} tokens each, chains {1 / paths_per_token(chains):.1f} "
        f"({turns:.2f} turns): {ratio:.2f} times the paths"
    )
    assert ratio >= at_least
