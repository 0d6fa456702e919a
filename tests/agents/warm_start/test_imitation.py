"""Chunks of an imitation: how much goes through the model at a time, and by which kernel."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from helpers.small_models import model as small_model
from torch.nn.attention import SDPBackend, sdpa_kernel

from turngym.agents.models import size
from turngym.agents.warm_start.imitation import chunk_tokens, in_chunks, row_attention

CPU = torch.device("cpu")


def test_a_large_model_on_a_cpu_takes_less_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(4, 4)
    assert chunk_tokens(model) == 4096
    monkeypatch.setattr(size, "LARGE", 20)
    assert chunk_tokens(model) == 1024
    assert chunk_tokens(model.to("meta")) == 4096
    lengths = [600, 500, 400, 1500]
    assert list(in_chunks(lengths, 1024)) == [[2, 1], [0], [3]]  # a row is never cut


def passed(model: Any, ids: torch.Tensor, mask: torch.Tensor | None, chosen: Any) -> Any:
    """Return last hidden states, gradients, and the bytes that the backward pass needed."""
    kept: dict[int, int] = {}
    held: list[torch.Tensor] = []

    def count(x: torch.Tensor) -> torch.Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        held.append(x)
        return x

    with chosen, torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    seen = hidden if mask is None else hidden[mask.bool()]
    model.zero_grad()
    seen.float().square().sum().backward()
    return (
        seen.detach(),
        [p.grad.clone() for p in model.base_model.parameters()],
        sum(kept.values()),
    )


@pytest.mark.parametrize("padding", ["none", "left", "right"])
def test_the_kernel_for_long_rows_computes_the_same(padding: str) -> None:
    net = small_model("Qwen2", max_position_embeddings=1024)
    ids = torch.arange(600).view(2, 300) % 200 + 5
    mask = None
    if padding != "none":
        mask = torch.ones_like(ids)
        mask[0, slice(0, 40) if padding == "left" else slice(260, 300)] = 0
    plain = passed(net, ids, mask, sdpa_kernel(SDPBackend.MATH))
    ours = passed(net, ids, mask, row_attention(CPU, 300))
    assert torch.allclose(plain[0], ours[0], atol=1e-4)
    for a, b in zip(plain[1], ours[1], strict=True):
        assert torch.allclose(a, b, atol=1e-3 * float(a.abs().max()))


def test_a_token_of_a_long_row_keeps_no_more_than_one_of_a_short_row() -> None:
    net = small_model("Qwen2", max_position_embeddings=2048)
    short, long = (
        passed(net, torch.full((1, n), 7), None, row_attention(CPU, n))[2] / n for n in (300, 1200)
    )
    assert long < 1.1 * short


def test_elsewhere_no_kernel_is_chosen() -> None:
    assert isinstance(row_attention(torch.device("meta"), 1000), contextlib.nullcontext)
