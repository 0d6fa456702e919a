"""On a GPU: tokens per second, a step's time split, flops utilisation, what shared prefixes save.

Models of the Qwen2.5 sizes with random weights. Needs CUDA (and vLLM for its rows). Run with
``pytest benchmarks/speed/test_speed_gpu.py -m gpu --benchmark-only -s``; every figure is printed
with
the card's name.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from turngym.agents.engines.base import Request, Sampling  # noqa: E402
from turngym.agents.engines.vllm.settings import VllmSettings  # noqa: E402
from turngym.algos import Budget, EnvConfig, TrainConfig, Trainer, make_recipe  # noqa: E402
from turngym.algos.core.forest import Forest, Group, Tree, Turn, last_token_reward  # noqa: E402
from turngym.algos.core.protocols import Credits  # noqa: E402
from turngym.algos.learner.learner import Learner  # noqa: E402
from turngym.algos.learner.settings import LearnerSettings  # noqa: E402
from turngym.algos.training.engines import make_engine  # noqa: E402
from turngym.benchmarks.speed.gpu.scale import QWEN, Scale  # noqa: E402

DEVICE = "cuda"
SCALE = Scale(device=DEVICE)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
ROWS, PROMPT, NEW = 128, 512, 256
ENGINES = ["transformers", "vllm"]


def settings(folder: str, engine: str, **more: Any) -> TrainConfig:
    if engine == "vllm" and importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    values: dict[str, Any] = {
        "env": EnvConfig(id="SearchQA-v0", settings={"size": "micro", "prompt": "none"}),
        "model": folder,
        "recipe": make_recipe("grpo", {"groups_per_step": 16, "rollout.n": 8}),
        "budget": Budget(steps=4),
        "max_tokens": 128,
        "max_batch": ROWS,
        "engine": engine,
        "engine_dtype": "bfloat16",
        "vllm": VllmSettings(prove_sync=False) if engine == "vllm" else VllmSettings(),
        "device": DEVICE,
        "checkpoint_every": 10**6,
        "learner": LearnerSettings(precision="bfloat16", gradient_checkpointing=True),
    }
    return TrainConfig(**{**values, **more})


def generated(engine: Any, shared: int) -> float:
    """Tokens per second of a batch whose prompts have their first ``shared`` tokens in common."""
    rng = np.random.default_rng(int(time.time()))
    front = rng.integers(300, SCALE.vocabulary, shared)

    async def work() -> int:
        asked = [
            Request(
                ids=np.concatenate([front, rng.integers(300, SCALE.vocabulary, PROMPT - shared)]),
                sampling=Sampling(max_tokens=NEW),
                seed=i,
            )
            for i in range(ROWS)
        ]
        done = await asyncio.gather(*(engine.generate(r) for r in asked))
        for completion in done:
            engine.release(completion.cache)
        return sum(len(completion.ids) for completion in done)

    began = time.perf_counter()
    return asyncio.run(work()) / (time.perf_counter() - began)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", QWEN)
def test_generation(benchmark: Any, size: str, engine: str, tmp_path: Path) -> None:
    from turngym.agents.models.loading import load_model, load_tokenizer

    folder = SCALE.folder(size, tmp_path)
    config = settings(folder, engine)
    policy = load_model(folder, dtype="bfloat16", device=DEVICE)
    sampler = make_engine(config, policy, load_tokenizer(folder))
    generated(sampler, 0)
    plain = max(generated(sampler, 0) for _ in range(3))
    shared = max(generated(sampler, PROMPT - 32) for _ in range(3))
    benchmark.extra_info |= {
        "card": SCALE.card(),
        "tokens_per_s": plain,
        "shared_tokens_per_s": shared,
    }
    benchmark.pedantic(lambda: generated(sampler, 0), rounds=1)
    print(
        f"\n{SCALE.card()}, {engine}, {size}: {plain:,.0f} tokens/s from {ROWS} prompts of "
        f"{PROMPT}, "
        f"{shared:,.0f} with shared prefixes ({shared / plain:.2f} times)"
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("max_lag", [None, 1])
def test_step_time_split(benchmark: Any, engine: str, max_lag: int | None, tmp_path: Path) -> None:
    folder = SCALE.folder("0.5B", tmp_path / "model")
    config = settings(folder, engine, max_lag=max_lag, importance_cap=2.0)

    def steps() -> list[dict[str, float]]:
        with Trainer(config, tmp_path / "run") as trainer:
            return [trainer.train_step() for _ in range(4)][1:]

    rows = benchmark.pedantic(steps, rounds=1)
    parts = {
        part: sum(r[f"time/{part}_s"] for r in rows) / len(rows)
        for part in ("rollout", "wait", "credit", "update", "sync", "step")
    }
    benchmark.extra_info |= {"card": SCALE.card(), **parts}
    said = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in parts.items())
    print(f"\n{SCALE.card()}, {engine}, 0.5B, max_lag {max_lag}: {said}")


def batch(paths: int, tokens: int) -> tuple[Forest, Credits]:
    """Single turns of random tokens, half of each observation."""
    rng = np.random.default_rng(0)
    trees = []
    for _ in range(paths):
        tree = Tree()
        obs, act = rng.integers(300, SCALE.vocabulary, (2, tokens // 2))
        tree.add(
            Turn(
                parent=-1,
                obs_ids=obs,
                act_ids=act,
                logprobs=np.full(len(act), -12.0, np.float32),
                entropies=np.zeros(len(act), np.float32),
                rewards=last_token_reward(1.0, len(act)),
                status="solved",
            )
        )
        trees.append(tree)
    forest = Forest.of([Group("g", "t", trees)])
    return forest, Credits([rng.normal(size=tokens // 2).astype(np.float32) for _ in range(paths)])


@pytest.mark.parametrize("size", QWEN)
def test_flops_utilisation_of_the_update(benchmark: Any, size: str, tmp_path: Path) -> None:
    """Six flops per weight and token, eight with layers computed again."""
    from turngym.agents.models.loading import load_model

    paths, tokens = 16, 1024
    policy = load_model(SCALE.folder(size, tmp_path), dtype="bfloat16", device=DEVICE)
    learner = Learner(
        policy,
        make_recipe("grpo", {"kl.coef": 0.0}),
        pad_id=0,
        settings=LearnerSettings(precision="bfloat16", gradient_checkpointing=True),
    )
    forest, credits = batch(paths, tokens)
    weights = sum(p.numel() for p in policy.parameters())

    def update() -> float:
        began = time.perf_counter()
        learner.update(forest, {}, credits)
        SCALE.settle()
        return time.perf_counter() - began

    update()
    seconds = benchmark.pedantic(lambda: min(update() for _ in range(3)), rounds=1)
    tflops = 8 * weights * paths * tokens / seconds / 1e12
    peak = SCALE.peak_tflops()
    share = f", {tflops / peak:.0%} of {peak:.0f}" if peak else ""
    benchmark.extra_info |= {"card": SCALE.card(), "tflops": tflops}
    print(
        f"\n{SCALE.card()}, {size}: {paths * tokens / seconds:,.0f} tokens/s, "
        f"{tflops:.0f} TFLOPS{share}"
    )
