"""The engine with sliding windows and with adapters: the numbers of teacher forcing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import FAMILIES, TOKENIZER, ask, engine, prompts, request, same, teacher
from helpers.small_models import model

from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.models.attention import choose_attention, set_attention
from turngym.agents.models.export import export_merged
from turngym.agents.models.loading import load_model
from turngym.agents.models.lora import LoraSettings, load_adapters, merged, with_lora
from turngym.envs.core.errors import BadValueError, MissingExtraError, UnknownNameError

WINDOWED: dict[str, dict[str, Any]] = {
    "Gemma3Text": {
        "head_dim": 8,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 8,
    },
    "Mistral": {"sliding_window": 8, "head_dim": 8},
    "Qwen2": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
}


def windowed(family: str) -> Any:
    return model("Gemma3" if family == "Gemma3Text" else family, config=family, **WINDOWED[family])


@pytest.mark.parametrize("family", WINDOWED)
def test_windows_shorter_than_the_context_give_the_models_own_numbers(family: str) -> None:
    net = windowed(family)
    eng = engine(net, max_batch=4)
    asked = [request(p, seed=i) for i, p in enumerate(prompts(4, low=5, high=40))]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        logprobs, _ = teacher(net, r.ids, done.ids)
        np.testing.assert_allclose(done.logprobs, logprobs, atol=2e-5)
        longer = [*r.ids.tolist(), *done.ids.tolist(), 5]
        again = ask(eng, request(longer, cache=done.cache))[0]
        logprobs, _ = teacher(net, longer, again.ids)
        np.testing.assert_allclose(again.logprobs, logprobs, atol=2e-5)


def test_half_precision_rounds_weights_and_no_rotary_angles() -> None:
    net = model("Gemma", head_dim=8, max_position_embeddings=1600)
    ids = np.random.default_rng(0).integers(2, 400, 1500)
    done = ask(engine(net, dtype="bfloat16"), request(ids, temperature=0.0, max_tokens=1))[0]
    for weight in net.parameters():  # as transformers loads it in bfloat16
        weight.data = weight.data.bfloat16()
    logprobs, entropies = teacher(net, ids, done.ids)
    np.testing.assert_allclose(done.logprobs, logprobs, atol=1e-3)
    np.testing.assert_allclose(done.entropies, entropies, atol=1e-3)


def test_a_table_of_positions_is_rounded_with_the_embeddings() -> None:
    small = {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4}
    net = model("XGLM", **small, max_position_embeddings=128)
    (done,) = ask(engine(net, dtype="bfloat16"), request([5, 6, 7], temperature=0.0, max_tokens=2))
    assert np.isfinite(done.logprobs).all()


def adapted(family: str = "Qwen2", seed: int = 0, **more: Any) -> Any:
    net = with_lora(model(family, **more), LoraSettings(rank=4), seed=seed)
    shake(net)
    return net


def shake(net: Any, std: float = 0.2) -> None:
    """As if the adapters had learned something."""
    draws = torch.Generator().manual_seed(1)
    for name, weight in net.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn(weight.shape, generator=draws) * std


def logits(net: Any) -> torch.Tensor:
    with torch.no_grad():
        return net(input_ids=torch.arange(2, 30)[None]).logits


def test_merging_computes_the_same_and_changes_nothing() -> None:
    net = adapted()
    before = {name: w.clone() for name, w in net.state_dict().items()}
    plain = merged(net)
    torch.testing.assert_close(logits(plain), logits(net), atol=1e-4, rtol=1e-4)
    assert all(torch.equal(before[name], w) for name, w in net.state_dict().items())
    embedded = plain.get_input_embeddings().weight
    assert embedded.data_ptr() == net.get_input_embeddings().weight.data_ptr()  # no copy
    bare = model("Qwen2")
    assert merged(bare) is bare
    assert not torch.allclose(logits(bare), logits(net), atol=1e-2)


def test_fresh_adapters_change_nothing_and_alone_learn() -> None:
    net = with_lora(model("Qwen2"), LoraSettings(rank=2))
    torch.testing.assert_close(logits(net), logits(model("Qwen2")))
    learning = {n for n, p in net.named_parameters() if p.requires_grad}
    assert learning
    assert all("lora_" in n for n in learning)
    again = with_lora(model("Qwen2"), LoraSettings(rank=2))
    other = with_lora(model("Qwen2"), LoraSettings(rank=2), seed=1)
    first = next(n for n in sorted(learning) if "lora_A" in n)
    assert torch.equal(net.get_parameter(first), again.get_parameter(first))
    assert not torch.equal(net.get_parameter(first), other.get_parameter(first))


@pytest.mark.parametrize("family", ["Qwen2", "Gemma3", "Gemma"])
def test_an_engine_samples_from_a_model_with_adapters(family: str) -> None:
    net = adapted(family, **FAMILIES[family][1])
    eng = engine(net)
    assert isinstance(eng._forward, FastDecoder) == (family != "Gemma")
    for scale in (0.2, 0.4):
        shake(net, scale)
        eng.sync(net)
        done = ask(eng, request(range(3, 20)))[0]
        logprobs, _ = teacher(net, range(3, 20), done.ids)
        np.testing.assert_allclose(done.logprobs, logprobs, atol=1e-4)


def test_a_folder_with_adapters_loads_merged_and_exports_as_a_plain_model(tmp_path: Path) -> None:
    base, folder, out = tmp_path / "base", tmp_path / "lora", tmp_path / "whole"
    model("Qwen2").save_pretrained(base)
    net = with_lora(load_model(base, device="cpu"), LoraSettings(rank=4))
    shake(net)
    net.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    loaded = load_model(folder, device="cpu")
    torch.testing.assert_close(logits(loaded), logits(net), atol=1e-4, rtol=1e-4)
    export_merged(folder, out)
    assert not (out / "adapter_config.json").exists()
    assert load_model(out, device="cpu", dtype="float32").config.vocab_size == 420
    torch.testing.assert_close(logits(load_model(out, device="cpu")), logits(loaded))
    with pytest.raises(BadValueError, match="not an empty folder"):
        export_merged(folder, out)
    with pytest.raises(BadValueError, match="nothing to merge"):
        export_merged(base, tmp_path / "more")
    with pytest.raises(BadValueError, match="do not fit"):
        load_adapters(model("Qwen2", hidden_size=64), folder)


def test_bad_adapters_are_refused() -> None:
    with pytest.raises(BadValueError, match="rank is 0"):
        LoraSettings(rank=0)
    with pytest.raises(BadValueError, match="targets are"):
        LoraSettings(targets=())
    with pytest.raises(BadValueError, match="LoRA on Qwen2ForCausalLM"):
        with_lora(model("Qwen2"), LoraSettings(targets=("no_such_layer",)))


def test_peft_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[train\]"):
        with_lora(model("Qwen2"), LoraSettings())


def test_attention_falls_back_with_the_reason() -> None:
    cpu = torch.device("cpu")
    net = model("Qwen2")
    assert choose_attention(net, "auto", cpu) == ("sdpa", "")
    assert choose_attention(net, "eager", cpu) == ("eager", "")
    name, why = choose_attention(net, "flash_attention_2", cpu)
    assert name == "sdpa"
    assert "the device is cpu and it needs CUDA" in why
    assert "needs CUDA" in set_attention(net, "flex_attention", cpu)
    assert net.config._attn_implementation == "sdpa"
    net._supports_sdpa = False
    name, why = choose_attention(net, "sdpa", cpu)
    assert name == "eager"
    assert "Qwen2ForCausalLM does not support it" in why
    with pytest.raises(UnknownNameError, match="Did you mean 'sdpa'"):
        choose_attention(net, "sdp", cpu)  # type: ignore[arg-type]


def test_flash_attention_is_asked_for_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = torch.device("cuda")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    net = model("Qwen2").bfloat16()
    assert choose_attention(net, "auto", cuda) == ("flash_attention_2", "")
    assert choose_attention(model("Qwen2"), "auto", cuda) == ("sdpa", "")
    assert "--weights bfloat16" in choose_attention(model("Qwen2"), "flash_attention_2", cuda)[1]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    name, why = choose_attention(net, "flash_attention_2", cuda)
    assert name == "sdpa"
    assert "Ampere" in why


@pytest.mark.parametrize("limit", [17, 18, 20, 22, 23, 30])
def test_a_context_just_above_the_window_is_no_reason_to_refuse_a_model(limit: int) -> None:
    """More tokens than the context were fed for the proof, all at its last position."""
    net = model("Mistral", sliding_window=16, max_position_embeddings=64)
    eng = engine(net, max_context=limit)
    asked = request(range(5, 14), max_tokens=4)
    same(ask(eng, asked)[0], ask(engine(net, max_context=60), asked)[0])


@pytest.mark.parametrize("limit", [2, 4, 6, 8])
def test_short_contexts_are_proved_with_what_they_hold(limit: int) -> None:
    eng = engine(model("GPT2"), max_context=limit)
    assert len(ask(eng, request([5], max_tokens=1))[0].ids) == 1
