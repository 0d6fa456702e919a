"""The engine over vLLM: the laws of engines, weights in place, prefixes, adapters, training.

Runs where vLLM is installed: ``make test-vllm`` makes an environment for it.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import TOKENIZER, ask, prompts, request, teacher
from helpers.engine_laws import EngineLaws
from helpers.small_models import model

from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.engines.vllm.weights import learner_logprobs, plain_weights
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts import Chains
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import train
from turngym.envs.core.errors import BadValueError, EngineFault

INSTALLED = importlib.util.find_spec("vllm") is not None
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not INSTALLED, reason="vLLM is not installed; make test-vllm installs it"),
]
SIZES = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1}
SMALL = VllmSettings(cache_gib=0.125)


@pytest.fixture(scope="module")
def net() -> Any:
    return model("Qwen2", **SIZES)


@pytest.fixture(scope="module")
def folder(net: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    net.save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


def vllm_engine(folder: Path, settings: VllmSettings = SMALL, **more: Any) -> Any:
    from turngym.agents.engines.vllm.engine import VllmEngine

    return VllmEngine(str(folder), TOKENIZER, dtype="float32", settings=settings, **more)


@pytest.fixture(scope="module")
def eng(folder: Path) -> Any:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    made = vllm_engine(folder)
    assert torch.equal(torch.get_rng_state(), before)
    return made


class TestVllmEngine(EngineLaws):
    def test_the_proof_passes_and_puts_the_weights_back(self, net: Any, eng: Any) -> None:
        kept = {k: v.clone() for k, v in net.state_dict().items()}
        version = eng.version
        eng.prove_sync(net)
        assert all(torch.equal(v, kept[k]) for k, v in net.state_dict().items())
        assert eng.version == version
        context, action = [5, 6, 7], [8, 9, 10, 11]
        np.testing.assert_allclose(
            eng.logprobs_of(context, action), learner_logprobs(net, context, action), atol=3e-5
        )

    @pytest.mark.parametrize("stale", ["lm_head", "o_proj", "qkv", "embed", "norm", "gate"])
    def test_the_proof_sees_weights_that_stay_behind(
        self, net: Any, eng: Any, monkeypatch: Any, stale: str
    ) -> None:
        """A hand-over that loses one kind of weights, as a stale packed copy would."""
        words = {"qkv": ("q_proj", "k_proj", "v_proj"), "gate": ("gate_proj",)}.get(stale, (stale,))
        kept = {k: v.clone() for k, v in net.state_dict().items()}

        def losing(weights: Any) -> Any:
            for name, tensor in plain_weights(weights):
                yield name, (kept[name] if any(w in name for w in words) else tensor)

        monkeypatch.setattr("turngym.agents.engines.vllm.weights.plain_weights", losing)
        with pytest.raises(EngineFault, match="stale copies"):
            eng.prove_sync(net)
        assert all(torch.equal(v, kept[k]) for k, v in net.state_dict().items())

    def test_weights_that_are_not_finite_fail_every_request(self, net: Any, eng: Any) -> None:
        kept = net.model.norm.weight.detach().clone()
        with torch.no_grad():
            net.model.norm.weight.fill_(float("nan"))
        eng.sync(net)
        try:
            with pytest.raises(BadValueError, match="not finite"):
                ask(eng, request([5, 6]))
        finally:
            with torch.no_grad():
                net.model.norm.weight.copy_(kept)
            eng.sync(net)
        assert len(ask(eng, request([5, 6]))[0].ids)

    def test_a_step_that_breaks_fails_every_request_and_the_next_works(
        self, eng: Any, monkeypatch: Any
    ) -> None:
        def broken() -> Any:
            raise RuntimeError("the card fell off")

        with monkeypatch.context() as patch:
            patch.setattr(eng._llm, "step", broken)
            with pytest.raises(EngineFault, match="the card fell off"):
                ask(eng, request([5, 6]), request([7]))
        assert len(ask(eng, request([5, 6]))[0].ids)

    def test_a_peft_policy_is_handed_over_merged(self, net: Any, eng: Any) -> None:
        adapted = adapter_on(net)
        version = eng.version
        eng.sync(adapted)
        try:
            numbers_of(eng, adapted)
        finally:
            plain = adapted.unload()
            eng.sync(plain, version)
        numbers_of(eng, net)


def adapter_on(net: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, lora_alpha=16, target_modules=["q_proj", "v_proj", "down_proj"])
    adapted = get_peft_model(net, config).eval()
    rng = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if "lora_" in name:
                p.copy_(0.5 * torch.randn(p.shape, generator=rng))
    return adapted


def numbers_of(eng: Any, net: Any) -> None:
    asked = [request(p, seed=i) for i, p in enumerate(prompts(4))]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        logprobs, _ = teacher(net, r.ids, done.ids)
        np.testing.assert_allclose(done.logprobs, logprobs, atol=2e-4)


def test_adapters_are_swapped_while_the_base_stays(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(folder).eval()
    eng = vllm_engine(folder, dataclasses.replace(SMALL, lora_rank=8))
    numbers_of(eng, net)
    adapted = adapter_on(net)
    for scale in (1.0, -2.0):
        with torch.no_grad():
            for name, p in adapted.named_parameters():
                if "lora_B" in name:
                    p.mul_(scale)
        eng.sync(adapted)
        numbers_of(eng, adapted)
    eng.prove_sync(adapted)
    numbers_of(eng, adapted)


def test_sleep_is_refused_on_a_cpu(folder: Path) -> None:
    from turngym.agents.engines.vllm.setup import vllm_device

    if vllm_device().type != "cpu":
        pytest.skip("this vLLM computes on a GPU")
    with pytest.raises(BadValueError, match="nothing to give back"):
        vllm_engine(folder, dataclasses.replace(SMALL, sleep=True))


def test_a_process_of_its_own_is_refused(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    with pytest.raises(BadValueError, match="Unset it"):
        vllm_engine(folder)


# ---------------------------------------------------------------- training


@pytest.fixture(scope="module")
def player(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with room for SearchQA's prompts."""
    from transformers import AutoTokenizer

    path = tmp_path_factory.mktemp("player")
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokenizer.save_pretrained(path)
    more = {**SIZES, "max_position_embeddings": 2048, "initializer_range": 0.05}
    model("Qwen2", vocab_size=len(tokenizer), **more).save_pretrained(path)
    return path


def search_qa(player: Path, **more: Any) -> TrainConfig:
    recipe = dataclasses.replace(grpo(), rollout=Chains(n=3), groups_per_step=2)
    recipe = dataclasses.replace(recipe, optim=dataclasses.replace(recipe.optim, lr=1e-3))
    settings: dict[str, Any] = {
        "env": EnvConfig(id="SearchQA-v0", settings={"size": "micro"}),
        "model": str(player),
        "recipe": recipe,
        "budget": Budget(steps=3),
        "max_tokens": 12,
        "engine": "vllm",
        "engine_dtype": "float32",
        "device": "cpu",
        "vllm": SMALL,
        "learner": LearnerSettings(precision="float32"),
    }
    return TrainConfig(**{**settings, **more})


def rows(folder: Path) -> list[dict[str, Any]]:
    return [r for r in read_metrics(folder / "metrics.jsonl") if "rollout/paths" in r]


def test_training_equals_that_with_the_transformers_engine(player: Path, tmp_path: Path) -> None:
    train(search_qa(player), tmp_path / "vllm")
    train(search_qa(player, engine="transformers", vllm=VllmSettings()), tmp_path / "transformers")
    ours, theirs = rows(tmp_path / "vllm"), rows(tmp_path / "transformers")
    assert len(ours) == 3
    for a, b in zip(ours, theirs, strict=True):
        assert a["update/logprob_diff_max_nats"] < 1e-3  # every hand-over arrived
        assert a["engine/prefix_hit_frac"] > 0.3
        for key in ("rollout/tokens", "rollout/return_mean", "rollout/turns_mean"):
            assert a[key] == b[key]
        assert a["update/loss"] == pytest.approx(b["update/loss"], rel=1e-3, abs=1e-5)


def test_training_ahead_in_a_thread(player: Path, tmp_path: Path) -> None:
    train(search_qa(player, max_lag=1, importance_cap=2.0), tmp_path)
    assert [r["rollout/lag_max"] for r in rows(tmp_path)] == [0.0, 1.0, 1.0]
    assert all(r["update/importance_mean"] <= 2.0 for r in rows(tmp_path))


def test_a_prompt_fed_in_parts_is_sampled_from_once(player: Path) -> None:
    """More context tokens than vLLM feeds in one step."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from turngym.agents.engines.vllm.engine import VllmEngine

    tokenizer = AutoTokenizer.from_pretrained(player)
    eng = VllmEngine(str(player), tokenizer, dtype="float32", settings=SMALL)
    limit = eng._llm.vllm_config.scheduler_config.max_num_batched_tokens
    net = AutoModelForCausalLM.from_pretrained(player).eval()
    rng = np.random.default_rng(0)
    n = 1 + limit // 1900
    asked = [request(rng.integers(4, 260, size=1900), seed=i, max_tokens=4) for i in range(n + 1)]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        logprobs, _ = teacher(net, r.ids, done.ids)
        np.testing.assert_allclose(done.logprobs, logprobs, atol=2e-4)


def test_a_runner_keeps_one_and_a_half_batches_open(eng: Any) -> None:
    assert eng.max_open == 96
