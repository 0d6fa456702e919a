"""Where a training step's time goes: rollouts over the bare engine, and the hand-over of weights.

The small starter on SearchQA's micro world, for the engine over transformers and, where it is
installed, over vLLM. The aims are an overhead of rollouts under 10 % and a hand-over under 5 % of
a step; what is asserted is looser, since a loaded machine misses both. Run with
``pytest benchmarks/test_speed_step.py --benchmark-only -s``.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turngym.agents.starter import ensure_starter  # noqa: E402
from turngym.agents.vllm_settings import VllmSettings  # noqa: E402
from turngym.algos import Budget, EnvConfig, TrainConfig, Trainer, make_recipe  # noqa: E402

STEPS, WARM = 6, 2
MOST_OVERHEAD = {"transformers": 0.5, "vllm": 1.0}  # against breakage; the aim is 0.1
MOST_SYNC = {"transformers": 0.05, "vllm": 0.25}  # vLLM's reload costs a fixed 0.1 s and more
ENGINES = [
    "transformers",
    pytest.param(
        "vllm",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"
        ),
    ),
]


def stepped(name: str, run_dir: Path) -> tuple[list[dict[str, float]], list[tuple[float, float]]]:
    """Metrics of each step that counts, and its seconds of playing: all, in the engine."""
    config = TrainConfig(
        env=EnvConfig(id="SearchQA-v0", settings={"size": "micro"}),
        model=str(ensure_starter("SearchQA-v0")),
        recipe=make_recipe("grpo", {}, small=True),
        budget=Budget(steps=STEPS),
        engine=name,  # type: ignore[arg-type]
        vllm=VllmSettings(cache_gib=0.5) if name == "vllm" else VllmSettings(),
        device="cpu",
        checkpoint_every=10**6,
    )
    rows, split = [], []
    with Trainer(config, run_dir) as trainer:
        engine: Any = trainer.engine
        step, inside = engine._step, [0.0]

        def timed() -> None:
            began = time.perf_counter()
            step()
            inside[0] += time.perf_counter() - began

        engine._step = timed
        for i in range(STEPS):
            inside[0] = 0.0
            row = trainer.train_step()
            if i >= WARM:
                rows.append(row)
                split.append((row["time/rollout_s"], inside[0]))
    return rows, split


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ENGINES)
def test_overhead_and_hand_over(benchmark: Any, name: str, tmp_path: Path) -> None:
    rows, split = benchmark.pedantic(lambda: stepped(name, tmp_path), rounds=1)
    overhead = min(playing / inside - 1 for playing, inside in split)
    sync = sum(r["time/sync_s"] for r in rows) / sum(r["time/step_s"] for r in rows)
    parts = {
        part: sum(r[f"time/{part}_s"] for r in rows) / len(rows)
        for part in ("rollout", "credit", "update", "sync", "step")
    }
    cached = sum(r["engine/prefix_hit_frac"] for r in rows) / len(rows)
    benchmark.extra_info |= {"overhead": overhead, "sync_frac": sync, "cached": cached, **parts}
    said = ", ".join(f"{part} {seconds:.3f} s" for part, seconds in parts.items())
    print(
        f"\n{name}: rollouts {overhead:.1%} over the bare engine, hand-over {sync:.1%} of a step, "
        f"{cached:.0%} of the context tokens cached; {said}"
    )
    assert overhead < MOST_OVERHEAD[name]
    assert sync < MOST_SYNC[name]
