"""Continuations per second of the credit microscope, against playing every continuation out.

A group of eight chains is played and each of its turns measured with 16 continuations of Q and of
V: by the blank 0.1M model on Password-v0, and by the small starter on two-hop questions of the
micro world. Equal histories are continued once; the ratio is to playing all of them, in one run and
one process. Run with ``pytest benchmarks/speed/test_speed_microscope.py --benchmark-only -s``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turngym.agents.warm_start.cache import ensure_starter  # noqa: E402
from turngym.algos.recipes import make_recipe  # noqa: E402
from turngym.algos.rollouts.task_order import step_starts  # noqa: E402
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig  # noqa: E402
from turngym.benchmarks.microscope.crew import Bench, Job  # noqa: E402
from turngym.benchmarks.microscope.truth import TruthSettings  # noqa: E402

GROUPS = 4
WORLDS: dict[str, dict[str, Any]] = {
    "Password-v0": {},
    "SearchQA-v0": {"size": "micro", "hops": 2},
}
NEEDED = 100_000 / 600 / 2
"""Continuations per second and core for 100,000 in ten minutes on two cores."""


def make_job(env_id: str) -> tuple[Bench, Job]:
    torch.set_num_threads(1)
    recipe = make_recipe("grpo", small=True)
    config = TrainConfig(
        env=EnvConfig(id=env_id, settings=WORLDS[env_id]),
        model=str(ensure_starter(env_id)),
        recipe=recipe,
        budget=Budget(steps=1),
        max_batch=256,
    )
    starts = tuple(step_starts(0, 1, GROUPS, "train", 100))
    truth = TruthSettings(continuations=16)
    return Bench(config), Job(
        rollout=recipe.rollout, temperature=1.0, starts=starts, truth=truth, random=False
    )


@pytest.mark.parametrize("env_id", WORLDS)
def test_continuations(benchmark: Any, env_id: str) -> None:
    bench, job = make_job(env_id)
    apart = replace(job, truth=replace(job.truth, merge=False))
    bench.run(job)  # compiles the engine's loops

    def seconds(of: Job) -> tuple[float, int]:
        began = time.process_time()
        measured = bench.run(of)
        return time.process_time() - began, sum(m.work.continuations for m in measured)

    slow, count = seconds(apart)
    found = benchmark.pedantic(lambda: seconds(job), rounds=3)
    fast = min(found[0], benchmark.stats.stats.min)
    benchmark.extra_info["continuations_per_s"] = count / fast
    benchmark.extra_info["ratio"] = slow / fast
    print(
        f"\n{env_id}: {count:,} continuations, {count / fast:,.0f}/s on one core; every one played "
        f"out {count / slow:,.0f}/s: {slow / fast:.1f} times"
    )
    assert found[1] == count
    assert slow / fast >= 1.3
    assert count / slow >= NEEDED
