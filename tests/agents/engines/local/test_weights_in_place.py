"""New weights take the old ones' place: the engine never holds two sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.allocations import peak_bytes
from helpers.engine_help import FAMILIES, TOKENIZER, ask, engine, prompts, request, same
from helpers.small_models import model

from turngym.agents.engines.base import EngineSource
from turngym.agents.engines.local import engine as local
from turngym.agents.engines.local import packed_weights
from turngym.agents.engines.local.engine import build
from turngym.agents.engines.local.hf_forward import HfForward
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.models.lora import (
    LoraSettings,
    MergedWeights,
    has_plain_lora,
    merged,
    merged_view,
    with_lora,
    without_adapters,
)

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 12,
    "vocab_size": 500,
}


def large(family: str = "Qwen2", **more: Any) -> Any:
    return model(family, **(SIZES | more))


def weight_bytes(net: Any) -> int:
    return sum(p.numel() * 4 for p in net.parameters())


def one_layer(net: Any) -> int:
    return sum(p.numel() * 4 for p in net.model.layers[0].parameters())


@pytest.fixture(params=["prepacked", "plain"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How weights lie: as oneDNN wants them, or plainly, as on CUDA."""
    if request.param == "plain":
        monkeypatch.setattr(packed_weights, "can_prepack", lambda _dtype: False)
    return request.param


def test_taking_weights_costs_one_layer_and_not_a_second_set(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, other = large(), large(seed=1)
    monkeypatch.setattr(packed_weights, "WRITE_ENTRIES", 2**12)
    made: list[FastDecoder] = []
    building = peak_bytes(lambda: made.append(FastDecoder(net, torch.float32, 64)))
    assert building > 0.9 * weight_bytes(net)  # what taking new weights cost as well, before
    taking = peak_bytes(lambda: made[0].load(other))
    assert taking < 1.5 * one_layer(net)
    assert taking < 0.2 * weight_bytes(net)
    assert made[0]._blocks[0].qkv._packed == (layout == "prepacked")


def test_addresses_stay_where_weights_lie_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_weights, "can_prepack", lambda _dtype: False)
    decoder = FastDecoder(large("Qwen3", head_dim=16), torch.float32, 64)

    def addresses() -> list[int]:
        layers = (decoder._blocks[3].qkv, decoder._blocks[3].down, decoder._weights.head)
        tensors = [decoder._weights.embed, *decoder._weights.turns, decoder._blocks[3].norm_q]
        tensors += [x._weight for x in layers]
        return [t.data_ptr() for t in tensors if t is not None]

    before = addresses()
    decoder.load(large("Qwen3", seed=1, head_dim=16))
    assert addresses() == before
    assert len(before) == 6


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("rows", [1, 2**24])
@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Llama", "Gemma3"])
def test_an_engine_that_took_weights_is_as_one_made_from_them(
    family: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_weights, "WRITE_ENTRIES", rows)
    more: dict[str, Any] = FAMILIES[family][1]
    net, other = model(family, **more), model(family, seed=1, **more)
    eng, new = engine(net), engine(other)
    eng.sync(other)
    asked = [request(p, seed=i) for i, p in enumerate(prompts(4))]
    for a, b in zip(ask(eng, *asked), ask(new, *asked), strict=True):
        same(a, b)
        assert a.logprobs.tolist() == b.logprobs.tolist()


def test_a_model_with_its_own_forward_is_copied_once_or_not_at_all() -> None:
    """Before, all weights were copied as they are, and only then brought into their format."""
    net = large("Gemma", head_dim=8, vocab_size=4000)
    copy = weight_bytes(net) // 2  # in half precision
    made: list[HfForward] = []
    beside = one_layer(net) + 2 * 4 * 4000 * 16  # logits of the proof
    peak = peak_bytes(lambda: made.append(HfForward(net, torch.bfloat16, 64)))
    assert copy < peak < copy + beside < 1.5 * copy
    assert all(p.dtype == torch.float32 for p in net.parameters())
    with torch.no_grad():  # training changes nothing before new weights are taken
        net.lm_head.weight.zero_()
    assert made[0]._model.lm_head.weight.any()
    kept = peak_bytes(lambda: made.append(HfForward(net, torch.float32, 64, owned=True)))
    assert kept < beside
    assert made[1]._model is net


def test_an_engine_keeps_a_model_that_was_loaded_for_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, loaded = (model("Gemma", head_dim=8) for _ in range(2))
    monkeypatch.setattr(local, "load_model", lambda *_, **__: loaded)
    source = EngineSource(tokenizer=TOKENIZER, model="", dtype="float32", device="cpu", max_batch=4)
    alone: Any = build(source)
    shared: Any = build(replace(source, learner=net))
    assert alone._forward._model is loaded
    assert {id(p) for p in net.parameters()}.isdisjoint(
        map(id, shared._forward._model.parameters())
    )
    asked = [request(p, seed=i) for i, p in enumerate(prompts(2))]
    for a, b in zip(ask(alone, *asked), ask(shared, *asked), strict=True):
        same(a, b)


def adapted(net: Any, targets: tuple[str, ...] = ("all-linear",), std: float = 0.1) -> Any:
    """Return the model with adapters that have learned something."""
    made = with_lora(net, LoraSettings(rank=4, targets=targets))
    draws = torch.Generator().manual_seed(1)
    for name, weight in made.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn(weight.shape, generator=draws) * std
    return made


def test_adapters_are_merged_a_layer_at_a_time(layout: str) -> None:
    """Before, a sync made every adapted weight anew: nearly a second set."""
    net = adapted(large(num_hidden_layers=6))
    decoder = FastDecoder(without_adapters(net), torch.float32, 64)
    before = {name: (w.data_ptr(), w.clone()) for name, w in net.state_dict().items()}
    wanted = merged(net)
    old = peak_bytes(lambda: decoder.load(merged(net)))
    new = peak_bytes(lambda: decoder.load(merged_view(net)))
    assert old > 0.7 * weight_bytes(without_adapters(net))
    assert new < 2 * one_layer(wanted)
    assert new < 0.4 * old
    for name, w in net.state_dict().items():  # the learner's own stay where and what they are
        assert (w.data_ptr(), True) == (before[name][0], torch.equal(w, before[name][1]))
    whole = FastDecoder(wanted, torch.float32, 64)
    for mine, theirs in zip(decoder._blocks, whole._blocks, strict=True):
        for name in ("qkv", "out", "gate", "up", "down"):
            a, b = (getattr(layer, name)._weight for layer in (mine, theirs))
            assert torch.equal(*((x.to_dense() if x.is_mkldnn else x) for x in (a, b))), name
    assert decoder._blocks[0].qkv._packed == (layout == "prepacked")


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("family", "targets"),
    [("Qwen2", ("all-linear",)), ("Gemma", ("q_proj", "down_proj")), ("GPT2", ("c_attn",))],
)
def test_weights_are_read_as_peft_merges_them(
    family: str, targets: tuple[str, ...], weights: torch.dtype
) -> None:
    more: dict[str, Any] = {"head_dim": 8} if family == "Gemma" else {}
    net = adapted(model(family, **more).to(weights), targets)
    view = merged_view(net)
    assert isinstance(view, MergedWeights)
    wanted = merged(net).state_dict()
    found = dict(view.state_dict())
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert any(not torch.equal(w, without_adapters(net).state_dict()[n]) for n, w in found.items())
    eng, new = engine(net), engine(merged(net))
    draws = torch.Generator().manual_seed(2)
    for name, weight in net.named_parameters():
        if "lora_B" in name:
            weight.data = torch.randn(weight.shape, generator=draws) * 0.1
    for other in (merged(net), None):
        for a, b in zip(*(ask(e, request([5, 6, 7], seed=3)) for e in (eng, new)), strict=True):
            same(a, b)
            assert a.logprobs.tolist() == b.logprobs.tolist()
        if other is not None:
            eng.sync(net)
            new.sync(other)


def test_adapters_of_another_kind_are_merged_whole() -> None:
    bare = large()
    assert merged_view(bare) is bare
    assert without_adapters(bare) is bare
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], use_dora=True, task_type="CAUSAL_LM")
    net = peft.get_peft_model(large(), config).eval()
    assert not has_plain_lora(net)
    whole = merged_view(net)
    assert not isinstance(whole, MergedWeights)
    assert whole.state_dict().keys() == large().state_dict().keys()


def test_an_embedding_in_half_precision_stays_in_it() -> None:
    half = model("Qwen2").to(torch.bfloat16)
    decoder: Any = engine(half)._forward
    assert decoder._weights.embed.dtype == torch.bfloat16
    ids = torch.arange(20)
    assert torch.equal(decoder._weights.embedded(ids), half.model.embed_tokens(ids).float())
    exact = model("Qwen2")
    decoder.load(exact)  # nothing of these weights may be rounded
    assert torch.equal(decoder._weights.embedded(ids), exact.model.embed_tokens(ids))
