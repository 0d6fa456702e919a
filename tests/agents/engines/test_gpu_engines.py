"""Engines on a CUDA device: ``pytest -m gpu tests/gpu``; the vLLM ones where it is installed."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import TOKENIZER, ask, prompts, request, teacher
from helpers.small_models import model

from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts import Chains
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"
)
SIZES = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    more = {**SIZES, "max_position_embeddings": 1024, "initializer_range": 0.05}
    model("Qwen2", **more).save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


def check_numbers(eng: Any, net: Any, atol: float) -> None:
    asked = [request(p, seed=i) for i, p in enumerate(prompts(8))]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        logprobs, _ = teacher(net, r.ids, done.ids)
        np.testing.assert_allclose(done.logprobs, logprobs, atol=atol)


@needs_vllm
def test_vllm_s_numbers_equal_teacher_forcing_and_it_sleeps_and_wakes(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    from turngym.agents.engines.vllm.engine import VllmEngine

    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    settings = VllmSettings(sleep=True, gpu_memory_frac=0.2)
    eng = VllmEngine(str(folder), TOKENIZER, dtype="bfloat16", settings=settings)
    check_numbers(eng, net, atol=0.1)
    before = torch.cuda.mem_get_info()[0]
    eng.rest()
    assert torch.cuda.mem_get_info()[0] > before + 2**30  # its cache is given back
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(1.25)
    eng.sync(net)
    check_numbers(eng, net, atol=0.2)
    eng.rest()
    check_numbers(eng, net, atol=0.2)  # a request wakes it too
    eng.prove_sync(net)


@pytest.mark.parametrize("max_lag", [None, 1])
@pytest.mark.parametrize("engine", ["transformers", pytest.param("vllm", marks=needs_vllm)])
def test_training_on_a_gpu(folder: Path, tmp_path: Path, engine: str, max_lag: int | None) -> None:
    recipe = dataclasses.replace(grpo(), rollout=Chains(n=4), groups_per_step=4)
    config = TrainConfig(
        env=EnvConfig(id="Letters-v0"),
        model=str(folder),
        recipe=recipe,
        budget=Budget(steps=3),
        max_tokens=8,
        engine=engine,  # type: ignore[arg-type]
        vllm=VllmSettings(gpu_memory_frac=0.2) if engine == "vllm" else VllmSettings(),
        device="cuda",
        max_lag=max_lag,
        importance_cap=2.0,
    )
    train(config, tmp_path / "run")
    rows = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if "update/loss" in r]
    assert len(rows) == 3
    assert all(r["update/logprob_diff_mean_nats"] < 0.1 for r in rows)


def test_a_cpu_engine_s_seed_means_the_same_on_a_gpu(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    asked = [request(p, seed=i) for i, p in enumerate(prompts(8))]
    here = ask(TransformersEngine(net, TOKENIZER, dtype="float32"), *asked)
    there = ask(TransformersEngine(net.cuda(), TOKENIZER, dtype="float32"), *asked)
    for a, b in zip(here, there, strict=True):
        assert a.ids.tolist() == b.ids.tolist()
