"""One call over the pool's rows as pages: what CUDA's kernel is asked, computed by a reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.engine_help import FAMILIES, ask, engine, prompts, request, same, teacher
from helpers.small_models import model

from turngym.agents.engines.local import engine as module
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.local.forward import visible
from turngym.agents.engines.local.kv_cache import KvPool
from turngym.agents.engines.local.paged_attention import (
    PAGE,
    Sequences,
    attend_paged,
    find_kernel,
    paged_reference,
    prove_kernel,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("window", [None, 1, 100, 400])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("heads", [1, 3])
def test_rows_lie_as_pages_in_their_own_memory(rows: int, heads: int, window: Any) -> None:
    draws = torch.Generator().manual_seed(0)
    sizes, lengths = np.array([3, 1, 300][:rows]), np.array([260, 513, 300][:rows])
    where = np.array([2, 0, 1][:rows]) % rows
    shape = (2, rows, heads, 3 * PAGE, 4)
    keys, values = torch.randn(shape, generator=draws).unbind(0)
    q = torch.randn(int(sizes.sum()), 2 * heads, 4, generator=draws)
    sequences = Sequences.of(sizes, lengths, where, torch.from_numpy)
    got = attend_paged(paged_reference, q, keys, values, sequences, window)
    first = 0
    for size, length, row in zip(sizes, lengths, where, strict=True):
        k, v = (x[row, :, :length].repeat_interleave(2, 0) for x in (keys, values))
        own = q[first : first + size].transpose(0, 1)
        mask = visible(torch.arange(length - size, length), int(length), window)
        wanted = F.scaled_dot_product_attention(own, k, v, attn_mask=mask)
        mine = got[first : first + size]
        torch.testing.assert_close(mine, wanted.transpose(0, 1).flatten(1), atol=1e-5, rtol=1e-4)
        first += size


def paged(eng: TransformersEngine, kernel: Any = paged_reference) -> TransformersEngine:
    """Return an engine as it is on CUDA: pages in a fixed pool."""
    forward: Any = eng._forward
    forward._kernel, forward._as_rows = kernel, True
    eng._pool = KvPool(forward.shape, 2 * eng._max_batch, 2**26, fixed=True)
    assert eng._pool.shape.grain == PAGE
    return eng


@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Gemma3"])
def test_an_engine_over_pages_samples_the_same(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compiled_loops", lambda: None)  # torch, as on CUDA
    net = model(family, **FAMILIES[family][1])
    plain = engine(net)
    calls: list[tuple[int, int, int]] = []

    def kernel(q: Any, k: Any, v: Any, cuts: Any, none: Any, *more: Any, **named: Any) -> Any:
        assert none is None
        assert named["enable_gqa"]
        assert named["seqused_k"].dtype == named["block_table"].dtype == torch.int32
        assert int(named["block_table"].max()) < len(k)
        calls.append((len(q), *more))
        return paged_reference(q, k, v, cuts, none, *more, **named)

    eng = paged(engine(net, max_batch=3), kernel)
    contexts = [p.tolist() for p in prompts(5, high=30)]
    handles: list[int | None] = [None] * 5
    for turn in range(3):
        asked = [
            request(c, seed=10 * turn + i, cache=h)
            for i, (c, h) in enumerate(zip(contexts, handles, strict=True))
        ]
        for i, done in enumerate(ask(eng, *asked)):
            same(done, ask(plain, request(contexts[i], seed=10 * turn + i))[0])
            logprobs, _ = teacher(net, contexts[i], done.ids)
            np.testing.assert_allclose(done.logprobs, logprobs, atol=1e-5)
            eng.release(handles[i])
            handles[i] = done.cache
            contexts[i] += [*done.ids.tolist(), 7, 8, 9]
    # whole prompts of unequal lengths went through in one call, without a padded query
    assert any(total > longest > 1 for total, longest, _ in calls)
    assert {reach for *_, reach in calls} == {PAGE}


@pytest.mark.parametrize("mixes", [False, True])
def test_prompts_and_running_rows_go_through_together(
    mixes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compiled_loops", lambda: None)
    net = model("Qwen2")
    eng = engine(net, max_batch=4)
    paged(eng) if mixes else None
    eng._chunk = 24  # long prompts take several passes
    passes: list[tuple[str, int]] = []
    feed, decode = eng._forward.feed, eng._forward.decode

    def fed(pool: Any, pieces: Any) -> Any:
        passes.append(("feed", len(pieces)))
        return feed(pool, pieces)

    def decoded(pool: Any, rows: Any, *more: Any) -> Any:
        passes.append(("decode", len(rows)))
        return decode(pool, rows, *more)

    monkeypatch.setattr(eng._forward, "feed", fed)
    monkeypatch.setattr(eng._forward, "decode", decoded)
    draws = np.random.default_rng(1)
    asked = [
        request(p, seed=i, max_tokens=int(draws.integers(2, 12)))
        for i, p in enumerate([*prompts(11, low=2, high=60), *prompts(2, low=2)])
    ]
    steps: list[int] = []
    step = eng._step
    monkeypatch.setattr(eng, "_step", lambda: (steps.append(len(passes)), step())[1])
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        same(done, ask(_PLAIN, r)[0])
    # after the first step, one that admits has a pass of its own for it, or one for all
    starts = list(zip(steps, [*steps[1:], len(passes)], strict=True))[1:]
    both = [passes[a:b] for a, b in starts if {"feed", "decode"} <= {n for n, _ in passes[a:b]}]
    assert bool(both) != mixes
    if mixes:
        assert any(name == "feed" and rows > 2 for name, rows in passes[2:])


_PLAIN = engine(model("Qwen2"))


def test_the_reference_proves_itself_and_others_are_refused() -> None:
    given = (CPU, torch.bfloat16, (4, 2), 16)
    assert prove_kernel(paged_reference, *given) is None

    def wrong(*args: Any, **named: Any) -> torch.Tensor:
        named["seqused_k"] = (named["seqused_k"] - 1).clamp(min=1)
        return paged_reference(*args, **named)

    assert "off its reference" in str(prove_kernel(wrong, *given))

    def refuses(*_: Any, **__: Any) -> torch.Tensor:
        raise RuntimeError("Paged KV cache block size must be divisible by 512\nmore")

    reason = prove_kernel(refuses, *given)
    assert reason == "refused: Paged KV cache block size must be divisible by 512"


def test_where_there_is_no_kernel_the_reason_is_named() -> None:
    assert "CUDA's alone" in str(find_kernel(CPU, torch.bfloat16, (4, 2), 16))
    cuda = torch.device("cuda")
    assert "half precision" in str(find_kernel(cuda, torch.float32, (4, 2), 16))
    eng: Any = engine(model("Qwen2"))
    assert eng._forward._kernel is None
    assert "CUDA's alone" in eng._forward.unpaged_because
    assert eng._pool.shape.grain == 64


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("heads", "dim"), [((14, 2), 64), ((28, 4), 128), ((16, 8), 128)])
def test_the_kernel_of_a_gpu_gives_the_reference_s_numbers(
    heads: tuple[int, int], dim: int
) -> None:
    found = find_kernel(torch.device("cuda"), torch.bfloat16, heads, dim)
    assert not isinstance(found, str), found


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("window", [None, 1, 33, 300])
@pytest.mark.parametrize(
    ("heads", "dim"), [((9, 3), 64), ((14, 2), 64), ((3, 3), 80), ((40, 2), 128)]
)
def test_our_own_kernel_gives_the_reference_s_numbers(
    heads: tuple[int, int], dim: int, window: int | None
) -> None:
    attend_pages = pytest.importorskip("turngym.agents.engines.local.paged_triton").attend_pages
    for dtype in (torch.bfloat16, torch.float16):
        assert prove_kernel(attend_pages, torch.device("cuda"), dtype, heads, dim, window) is None
