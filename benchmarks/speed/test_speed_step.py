"""Where a training step's time goes: rollouts over the bare engine, and the hand-over of weights.

On SearchQA's micro world, for the engine over transformers and, where it is installed, over vLLM;
with the small starter, whose tokens cost next to nothing, and with a model that acts as it does and
has eight times its layers. Overhead is CPU time of playing over that of asking the engine for the
same actions again, with no world, no text and no forest, over thirty steps. The aims are 15 % with
the starter and a hand-over under 5 % of a step; what is asserted is looser, since a loaded machine
misses both. Run with
``pytest benchmarks/speed/test_speed_step.py --benchmark-only -s``; one run's overhead moves by
several points with the machine, so ``TURNGYM_BENCH_SEEDS`` asks for several and their interval.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

from turngym.agents.engines.base import Completion, Request  # noqa: E402
from turngym.agents.engines.vllm.settings import VllmSettings  # noqa: E402
from turngym.agents.models.loading import load_tokenizer  # noqa: E402
from turngym.agents.warm_start.cache import ensure_starter  # noqa: E402
from turngym.algos import Budget, EnvConfig, TrainConfig, Trainer, make_recipe  # noqa: E402
from turngym.envs.utils.garbage_collection import settled_heap  # noqa: E402
from turngym.envs.utils.statistics import student_mean  # noqa: E402

STEPS, WARM = 33, 3
SEEDS = max(1, int(os.environ.get("TURNGYM_BENCH_SEEDS", "1")))
MOST_OVERHEAD = {"transformers": 0.5, "vllm": 1.0}  # against breakage
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


class Recorded:
    """What an engine was asked by whom, so that the engine can be asked the same again, alone."""

    def __init__(self, engine: Any) -> None:
        self.engine, self._generate = engine, engine.generate
        self.lines: dict[Any, list[tuple[Request, Completion]]] = {}
        self.differ = 0
        engine.generate = self.generate

    async def generate(self, request: Request) -> Completion:
        """Ask, and note it under the task that asked: a path asks for one action at a time."""
        line = self.lines.setdefault(asyncio.current_task(), [])  # now: lines in order of arrival
        done = await self._generate(request)
        line.append((request, done))
        return done

    def again(self) -> float:
        """CPU seconds of the same requests, a path's next one once its last one is answered."""

        async def line(asked: list[tuple[Request, Completion]]) -> None:
            last = None
            for request, before in asked:
                cache = None if request.cache is None else last
                done = await self._generate(replace(request, cache=cache))
                self.differ += done.ids.tolist() != before.ids.tolist()
                self.engine.release(last)
                last = done.cache
            self.engine.release(last)

        async def main() -> float:
            began = time.process_time()
            await asyncio.gather(*(line(asked) for asked in self.lines.values()))
            return time.process_time() - began

        took = asyncio.run(main())
        # rows meet in other batches than before, so that bfloat16 may round another way
        assert self.differ <= 0.2 * sum(map(len, self.lines.values()))
        return took


def deepened(folder: Path, layers: int) -> str:
    """The starter with more layers that add nothing: the same actions for more work."""
    source = ensure_starter("SearchQA-v0")
    small = AutoModelForCausalLM.from_pretrained(source)
    config = small.config
    config.num_hidden_layers, config.layer_types = layers, ["full_attention"] * layers
    with torch.random.fork_rng():
        big = AutoModelForCausalLM.from_config(config)
    big.load_state_dict(small.state_dict(), strict=False)
    with torch.no_grad():
        for block in big.model.layers[len(small.model.layers) :]:
            block.self_attn.o_proj.weight.zero_()
            block.mlp.down_proj.weight.zero_()
    big.save_pretrained(folder)
    load_tokenizer(source).save_pretrained(folder)
    return str(folder)


def stepped(
    name: str, model: str, run_dir: Path, seed: int
) -> tuple[list[dict[str, float]], list[tuple[float, float]]]:
    """Metrics of each step that counts, and its CPU seconds of playing and of the engine alone."""
    config = TrainConfig(
        env=EnvConfig(id="SearchQA-v0", settings={"size": "micro"}),
        model=model,
        recipe=make_recipe("grpo", {}, small=True),
        budget=Budget(steps=STEPS),
        engine=name,  # type: ignore[arg-type]
        vllm=VllmSettings(cache_gib=0.5) if name == "vllm" else VllmSettings(),
        device="cpu",
        checkpoint_every=10**6,
        seed=seed,
    )
    rows, split = [], []
    with Trainer(config, run_dir) as trainer, settled_heap():
        recorded = Recorded(trainer.engine)
        pipeline: Any = trainer.pipeline
        play, took = pipeline._play, [0.0]

        async def timed(step: int) -> Any:
            began = time.process_time()
            played = await play(step)
            took[0] = time.process_time() - began
            return played

        pipeline._play = timed
        for i in range(STEPS):
            recorded.lines.clear()
            recorded.differ = 0
            row = trainer.train_step()
            if i >= WARM:
                rows.append(row)
                split.append((took[0], recorded.again()))
    return rows, split


def layers_of_starter() -> int:
    return int(AutoConfig.from_pretrained(ensure_starter("SearchQA-v0")).num_hidden_layers)


def over(split: list[tuple[float, float]]) -> float:
    """What playing costs over the engine alone, as a share of the latter."""
    return sum(playing for playing, _ in split) / sum(alone for _, alone in split) - 1


@pytest.mark.timeout(900 * SEEDS)
@pytest.mark.parametrize("times", [1, 8], ids=["starter", "8_times_the_layers"])
@pytest.mark.parametrize("name", ENGINES)
def test_overhead_and_hand_over(benchmark: Any, name: str, times: int, tmp_path: Path) -> None:
    model = deepened(tmp_path / "model", times * layers_of_starter())
    rows: list[dict[str, float]] = []
    splits: list[list[tuple[float, float]]] = []

    def measured() -> None:
        for seed in range(SEEDS):
            of_seed, split = stepped(name, model, tmp_path / f"run-{seed}", seed)
            rows.extend(of_seed)
            splits.append(split)

    benchmark.pedantic(measured, rounds=1)
    each = [over(split) for split in splits]
    overhead = sum(each) / len(each)
    of_a_step = median(playing / alone - 1 for split in splits for playing, alone in split)
    sync = sum(r["time/sync_s"] for r in rows) / sum(r["time/step_s"] for r in rows)
    parts = {
        part: sum(r[f"time/{part}_s"] for r in rows) / len(rows)
        for part in ("rollout", "credit", "update", "sync", "step")
    }
    cached = sum(r["engine/prefix_hit_frac"] for r in rows) / len(rows)
    benchmark.extra_info |= {"overhead": overhead, "sync_frac": sync, "cached": cached, **parts}
    spread = ""
    if len(each) > 1:
        mean = student_mean(each)
        benchmark.extra_info["overhead_of_seeds"] = each
        spread = f"{mean.low95:.1%} to {mean.high95:.1%} over {len(each)} seeds, "
    said = ", ".join(f"{part} {seconds:.3f} s" for part, seconds in parts.items())
    print(
        f"\n{name}, {times} x the starter's layers: rollouts {overhead:.1%} over the bare engine "
        f"({spread}median of a step {of_a_step:.1%}), "
        f"hand-over {sync:.1%} of a step, "
        f"{cached:.0%} of the context tokens cached; {said}"
    )
    assert overhead < MOST_OVERHEAD[name]
    assert sync < MOST_SYNC[name]
