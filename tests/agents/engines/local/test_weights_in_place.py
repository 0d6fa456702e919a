"""New weights take the old ones' place: the engine never holds two sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.allocations import peak_bytes
from helpers.engine_help import ask, engine, prompts, request, same
from helpers.small_models import model

from turngym.agents.engines.local import packed_decoder
from turngym.agents.engines.local.packed_decoder import FastDecoder

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
        monkeypatch.setattr(packed_decoder, "can_prepack", lambda _dtype: False)
    return request.param


def test_taking_weights_costs_one_layer_and_not_a_second_set(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, other = large(), large(seed=1)
    monkeypatch.setattr(packed_decoder, "WRITE_ENTRIES", 2**12)
    made: list[FastDecoder] = []
    building = peak_bytes(lambda: made.append(FastDecoder(net, torch.float32, 64)))
    assert building > 0.9 * weight_bytes(net)  # what taking new weights cost as well, before
    taking = peak_bytes(lambda: made[0].load(other))
    assert taking < 1.5 * one_layer(net)
    assert taking < 0.2 * weight_bytes(net)
    assert made[0]._layers[0].qkv._packed == (layout == "prepacked")


def test_addresses_stay_where_weights_lie_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_decoder, "can_prepack", lambda _dtype: False)
    decoder = FastDecoder(large("Qwen3", head_dim=16), torch.float32, 64)

    def addresses() -> list[int]:
        layers = (decoder._layers[3].qkv, decoder._layers[3].down, decoder._head)
        tensors = [decoder._embed, decoder._turns, decoder._layers[3].norm_q]
        tensors += [x._weight for x in layers]
        return [t.data_ptr() for t in tensors if t is not None]

    before = addresses()
    decoder.load(large("Qwen3", seed=1, head_dim=16))
    assert addresses() == before
    assert len(before) == 6


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("rows", [1, 2**24])
@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Llama"])
def test_an_engine_that_took_weights_is_as_one_made_from_them(
    family: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_decoder, "WRITE_ENTRIES", rows)
    more: dict[str, Any] = {"Qwen3": {"head_dim": 16}, "Llama": {"attention_bias": True}}
    more = more.get(family, {})
    net, other = model(family, **more), model(family, seed=1, **more)
    eng, new = engine(net), engine(other)
    eng.sync(other)
    asked = [request(p, seed=i) for i, p in enumerate(prompts(4))]
    for a, b in zip(ask(eng, *asked), ask(new, *asked), strict=True):
        same(a, b)
        assert a.logprobs.tolist() == b.logprobs.tolist()


def test_an_embedding_in_half_precision_stays_in_it() -> None:
    half = model("Qwen2").to(torch.bfloat16)
    decoder: Any = engine(half)._forward
    assert decoder._embed.dtype == torch.bfloat16
    ids = torch.arange(20)
    assert torch.equal(decoder._embedded(ids), half.model.embed_tokens(ids).float())
    exact = model("Qwen2")
    decoder.load(exact)  # nothing of these weights may be rounded
    assert torch.equal(decoder._embedded(ids), exact.model.embed_tokens(ids))
