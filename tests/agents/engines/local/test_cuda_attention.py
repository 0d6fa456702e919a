"""The form of attention that sampling takes on CUDA, run on a CPU: same numbers, few shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.engine_help import FAMILIES, ask, engine, prompts, request, same, teacher
from helpers.small_models import model

from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.local.forward import GRAIN, Piece
from turngym.agents.engines.local.grouped_attention import GroupedAttention
from turngym.agents.engines.local.kv_cache import KvPool
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.models.attention import avoid_planned_kernels

Calls = list[tuple[tuple[int, ...], tuple[int, ...], bool, bool]]


def as_on_cuda(eng: TransformersEngine) -> TransformersEngine:
    """Return the engine with the form of attention that it has on CUDA."""
    forward: Any = eng._forward
    forward._grain = GRAIN
    if isinstance(forward, FastDecoder):
        forward._as_rows = True
    return eng


def torch_engine(net: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> TransformersEngine:
    """Return an engine that decodes by torch, as it does on CUDA."""
    monkeypatch.setattr("turngym.agents.engines.local.engine.compiled_loops", lambda: None)
    return engine(net, **more)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What torch's attention is called with: shapes of queries and keys, mask, grouped heads."""
    seen: Calls = []
    real = F.scaled_dot_product_attention

    def spy(q: Any, k: Any, v: Any, attn_mask: Any = None, **more: Any) -> Any:
        grouped = bool(more.get("enable_gqa", False))
        seen.append((tuple(q.shape), tuple(k.shape), attn_mask is not None, grouped))
        return real(q, k, v, attn_mask=attn_mask, **more)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    return seen


def talk(eng: TransformersEngine) -> list[list[int]]:
    """Play three turns of five contexts of unequal lengths; return what was sampled."""
    contexts = [p.tolist() for p in prompts(5, low=3, high=20)]
    handles: list[int | None] = [None] * 5
    said = []
    for turn in range(3):
        asked = [
            request(c, seed=10 * turn + i, cache=h, max_tokens=9)
            for i, (c, h) in enumerate(zip(contexts, handles, strict=True))
        ]
        for i, done in enumerate(ask(eng, *asked)):
            logprobs, _ = teacher(_NET, contexts[i], done.ids)
            np.testing.assert_allclose(done.logprobs, logprobs, atol=1e-5)
            said.append(done.ids.tolist())
            handles[i] = done.cache
            contexts[i] += [*done.ids.tolist(), *range(20 + i, 24 + 2 * i)]
    return said


_NET = model("Qwen2")


def test_tokens_stay_while_no_kernel_meets_a_mask_with_grouped_heads(
    monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    assert _NET.config.num_attention_heads > _NET.config.num_key_value_heads
    before = talk(torch_engine(_NET, monkeypatch))
    # the CPU's form, which was CUDA's too: mask and grouped heads, a new width for most prompts
    assert any(mask and grouped for _, _, mask, grouped in calls)
    calls.clear()
    assert talk(as_on_cuda(torch_engine(_NET, monkeypatch))) == before
    masked = [call for call in calls if call[2]]  # the others are teacher forcing
    assert masked
    assert not any(grouped for *_, grouped in masked)
    assert {keys[2] for _, keys, *_ in masked} == {GRAIN}


def test_shapes_repeat_from_token_to_token(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: dict[bool, set[int]] = {}
    for rounded in (False, True):
        eng = torch_engine(_NET, monkeypatch)
        if rounded:
            as_on_cuda(eng)
        name = "_one_grouped" if rounded else "_one_query"
        real, seen = getattr(eng._forward, name), widths.setdefault(rounded, set())

        def spy(window: Any, at: Any, real: Any = real, seen: set[int] = seen) -> Any:
            seen.add(window.shape[-2])
            return real(window, at)

        monkeypatch.setattr(eng._forward, name, spy)
        ask(eng, *(request(p, seed=i, max_tokens=40) for i, p in enumerate(prompts(4, low=5))))
    assert len(widths[False]) > 20  # every token its own
    assert widths[True] == {64} or widths[True] == {64, 128}


@pytest.mark.parametrize("entries", [None, 1, 3 * 2 * 40 * 4])
@pytest.mark.parametrize("width", [1, 11])
@pytest.mark.parametrize("group", [1, 2, 7])
@pytest.mark.parametrize("window", [None, 5])
def test_queries_of_a_key_head_as_rows_equal_repeated_keys(
    window: int | None, group: int, width: int, entries: int | None
) -> None:
    draws = torch.Generator().manual_seed(0)
    rows, heads, n, dim = 3, 2, 40, 8
    q = torch.randn(rows, width, heads * group, dim, generator=draws)
    k, v = torch.randn(2, rows, heads, n, dim, generator=draws).unbind(0)
    at = torch.tensor([[4], [0], [29]]) + torch.arange(width)
    wide = (x.repeat_interleave(group, 1) for x in (k, v))
    keys = torch.arange(n)
    mask = (keys <= at[..., None]) & (keys > at[..., None] - (window or n))
    mask = mask[:, None]
    wanted = F.scaled_dot_product_attention(q.transpose(1, 2), *wide, attn_mask=mask)
    got = GroupedAttention(at, n, group, entries, window)(q, k, v)
    torch.testing.assert_close(got, wanted.transpose(1, 2).flatten(2), atol=1e-6, rtol=1e-5)


def test_a_tile_s_mask_stays_small() -> None:
    at = torch.arange(100)[None]
    seen: list[int] = []
    attention = GroupedAttention(at, 128, 4, entries=4 * 128 * 10)
    real = attention._attend

    def spy(q: Any, keys: Any, values: Any, mask: Any) -> Any:
        seen.append(mask.numel())
        return real(q, keys, values, mask)

    attention._attend = spy
    draws = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 100, 8, 4, generator=draws), torch.randn(1, 2, 128, 4, generator=draws)
    attention(q, k, k)
    assert len(seen) == 10
    assert max(seen) <= 4 * 128 * 10


@pytest.mark.parametrize("family", ["Gemma", "GPT2"])
def test_other_models_in_rounded_widths(family: str) -> None:
    net = model(family, **FAMILIES[family][1])
    asked = [request(p, seed=i, max_tokens=9) for i, p in enumerate(prompts(6))]
    for here, there in zip(
        ask(engine(net), *asked), ask(as_on_cuda(engine(net)), *asked), strict=True
    ):
        same(here, there)


def test_padding_never_asks_for_a_position_behind_the_context() -> None:
    """A model with learned positions, a row at its end beside one that takes in many tokens."""
    forward: Any = engine(model("GPT2"))._forward
    pool = KvPool(forward.shape, 4, 2**26)
    first, second = pool.acquire(159), pool.acquire(159)
    assert first is not None
    assert second is not None
    ids = np.arange(150) % 420
    with torch.inference_mode():
        forward.feed(pool, [Piece(first.index, 0, ids)])
        both = [Piece(first.index, 150, ids[:3]), Piece(second.index, 0, ids[:60])]
        got = forward.feed(pool, both)
        alone = forward.feed(pool, [Piece(first.index, 150, ids[:3])])
        torch.testing.assert_close(got[:1], alone, atol=1e-5, rtol=1e-5)
        forward._last_position = 10**6  # as it was: bounded by the cache's positions alone
        with pytest.raises(IndexError):
            forward.feed(pool, both)


def test_cudnn_s_attention_is_off_where_a_model_is_on_cuda() -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        avoid_planned_kernels(torch.device("cpu"))
        assert torch.backends.cuda.cudnn_sdp_enabled()
        avoid_planned_kernels(torch.device("cuda"))
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
