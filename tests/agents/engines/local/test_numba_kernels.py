"""The compiled loops of a decode step against torch and numpy, number by number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.engine_help import FAMILIES, ask, engine, prompts, request
from helpers.small_models import model
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from turngym.agents.engines.local import numba_decoder
from turngym.agents.engines.local import numba_kernels as kernels
from turngym.agents.engines.local.forward import Piece
from turngym.agents.engines.local.kv_cache import CacheShape, KvPool
from turngym.agents.engines.local.numba_decoder import (
    NativeDecoder,
    padded_rows,
    why_not_native,
)
from turngym.agents.engines.local.numba_kernels import (
    BLOCK,
    add_normed_unit,
    add_unit,
    head_kernels,
)
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.engines.sampling import compiled_loops
from turngym.agents.models.loops import causal_kernels
from turngym.agents.models.loops.parts import bits, subroutine
from turngym.algos.learner.attention import block_kernels
from turngym.algos.learner.scoring import layer_kernels

FORMATS = [torch.float32, torch.bfloat16]


def noise(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def close(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-5, "atol": 2e-6} if dtype == torch.float32 else {"rtol": 0.01, "atol": 0.01}


def plain(cache: torch.Tensor, dim: int) -> torch.Tensor:
    """One layer's blocks as ``[2, rows, heads, positions, dim]``."""
    keys = cache[0].unflatten(-1, (dim, BLOCK)).mT.flatten(-3, -2)
    return torch.stack([keys, cache[1].unflatten(-1, (BLOCK, dim)).flatten(-3, -2)])


@settings(deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=40))
def test_bfloat16_is_rounded_as_torch_rounds(values: list[float]) -> None:
    wide = torch.tensor([values])
    got = torch.empty(wide.shape, dtype=torch.bfloat16)
    _copy(bits(wide), bits(got))
    torch.testing.assert_close(got, wide.bfloat16(), rtol=0, atol=0, equal_nan=True)
    back = torch.empty_like(wide)
    _copy(bits(got), bits(back))
    torch.testing.assert_close(back, got.float(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("module", [kernels, causal_kernels, layer_kernels, block_kernels])
def test_parts_that_add_in_any_order_are_inlined(module: ModuleType) -> None:
    """Else the process that compiles and those that load the result round differently.

    A function that does not say whether it may adds in the order of whoever calls it.
    """
    functions = [f for f in vars(module).values() if hasattr(f, "targetoptions")]
    assert all("fastmath" in f.targetoptions for f in functions)
    loose = [f for f in functions if f.targetoptions.get("fastmath") and not f.stats.cache_path]
    assert loose
    assert all(f.targetoptions.get("inline") == "always" for f in loose)
    kept = [f for f in functions if f.stats.cache_path]
    called = {name for f in functions for name in f.py_func.__code__.co_names}
    assert not called & {f.__name__ for f in kept}, "a loop within a loop is compiled twice"


_BITS = """
import hashlib
import numpy as np
from turngym.agents.engines.local import numba_kernels as kernels

draw = np.random.default_rng(0).standard_normal
rows, dim = 37, 32
qkv, cache = draw((rows, 8 * dim), np.float32), draw((2, rows, 2, 3, 64 * dim), np.float32)
slots = np.stack([np.arange(rows), np.arange(rows) * 5])
q, out = np.zeros((rows, 4, dim), np.float32), np.zeros((rows, 4 * dim), np.float32)
loops = kernels.head_kernels(dim, 1e-6)
turns, norms = draw((192, dim // 2, 2), np.float32), draw((2, dim), np.float32)
loops.enter(qkv, turns, slots, norms, cache, q)
loops.look(q, cache, slots, np.float32(0.2), out)
unit = np.zeros_like(out)
kernels.add_unit(out.copy(), out, np.float32(0.01), unit)
chosen, measures = np.zeros((2, rows), np.int64), np.zeros((2, 2, rows), np.float32)
heat = np.stack([np.ones(rows), np.linspace(0, 0.99, rows)]).astype(np.float32)
kernels.sample(3 * out, heat, 16, chosen[0], measures[0])
# a long flat tail, and numbers that fall into it: who adds in another order finds another token
peaked, far = draw((rows, 813), np.float32), np.linspace(0.99997, 0.99999, rows)
peaked[:, 0] += 17
heat = np.stack([np.ones(rows), far]).astype(np.float32)
kernels.sample(peaked, heat, 1, chosen[1], measures[1])
print([hashlib.sha256(x.tobytes()).hexdigest() for x in (cache, q, out, unit, chosen, measures)])
"""


@pytest.mark.slow
def test_compiling_and_loading_give_the_same_bits(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, loaded = (
        subprocess.run(
            [sys.executable, "-c", _BITS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    )
    assert any(tmp_path.rglob("*.nbc"))
    assert compiled == loaded


@subroutine
def _copy(source: Any, target: Any) -> None:
    for i in range(source.shape[1]):
        target[0, i] = kernels.narrow(kernels.widen(source[0, i]), target[0, i])


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("added", [True, False])
def test_add_unit_is_the_sum_and_its_norm(dtype: torch.dtype, added: bool) -> None:
    hidden, delta = noise(5, 24), noise(5 if added else 0, 24, seed=1, dtype=dtype)
    out = torch.empty(5, 24, dtype=dtype)
    want = hidden + delta.float() if added else hidden.clone()
    add_unit(bits(hidden), bits(delta), np.float32(0.3), bits(out))
    torch.testing.assert_close(hidden, want)
    norm = torch.hypot(want.norm(dim=-1, keepdim=True), torch.tensor(0.3))
    torch.testing.assert_close(out, (want / norm).to(dtype), **close(dtype))


@pytest.mark.parametrize("dtype", FORMATS)
def test_add_normed_unit_norms_what_it_adds(dtype: torch.dtype) -> None:
    hidden, delta, weight = noise(5, 24), noise(5, 24, seed=1, dtype=dtype), noise(24, seed=2)
    out = torch.empty(5, 24, dtype=dtype)
    want = hidden + F.rms_norm(delta.float(), (24,), weight, 0.01)
    given = (bits(x) for x in (hidden, delta, weight))
    add_normed_unit(*given, np.float32(0.01), np.float32(0.3), bits(out))
    torch.testing.assert_close(hidden, want)
    norm = torch.hypot(want.norm(dim=-1, keepdim=True), torch.tensor(0.3))
    torch.testing.assert_close(out, (want / norm).to(dtype), **close(dtype))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(
    ("heads", "group", "dim", "window"),
    [
        (1, 1, 4, None),
        (2, 3, 12, None),
        (2, 7, 12, None),
        (3, 2, 32, None),
        (2, 3, 12, 1),
        (1, 1, 4, 40),
        (1, 1, 4, 64),
    ],
)
def test_look_is_attention_over_the_first_positions(
    heads: int, group: int, dim: int, window: int | None, dtype: torch.dtype
) -> None:
    rows, most = 6, 128
    q = noise(rows, heads * group, dim, dtype=dtype)
    cache = noise(2, rows, heads, most // BLOCK, BLOCK * dim, seed=1, dtype=dtype)
    at = np.array([0, 1, 31, 32, 63, 127])
    out = torch.empty(rows, heads * group * dim, dtype=dtype)
    slots = np.stack([np.array([3, 1, 0, 5, 2, 4]), at])
    made, given = head_kernels(dim, 1e-6), (bits(q), bits(cache), slots, np.float32(0.3))
    if window is None:
        made.look(*given, bits(out))
    else:
        made.look_back(*given, window, bits(out))
    keys, values = plain(cache.float(), dim)[:, slots[0]]
    back = torch.from_numpy(at)[:, None] - torch.arange(most)
    seen = (back >= 0) & (back < (window or most))
    want = F.scaled_dot_product_attention(
        q.float()[:, :, None], keys, values, seen[:, None, None], scale=0.3, enable_gqa=True
    )
    torch.testing.assert_close(out, want.reshape(out.shape).to(dtype), **close(dtype))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("normed", [True, False])
def test_enter_norms_turns_and_places_and_fetch_finds(dtype: torch.dtype, normed: bool) -> None:
    tokens, queries, heads, dim, rows, most = 7, 3, 2, 8, 4, 2 * BLOCK
    qkv = noise(tokens, (queries + 2 * heads) * dim, dtype=dtype)
    angles = torch.polar(torch.ones(most, dim // 2), noise(most, dim // 2, seed=2))
    norm = [noise(dim if normed else 0, seed=s) for s in (3, 4)]
    row, at = slots = np.array([[0, 0, 0, 2, 2, 3, 3], [0, 1, 2, 5, 6, 0, 70]])
    cache = torch.full((2, rows, heads, 2, BLOCK * dim), 9.0, dtype=dtype)
    q = torch.empty(tokens, queries, dim, dtype=dtype)
    turns = torch.view_as_real(angles).numpy()
    made = head_kernels(dim, 1e-3)
    made.enter(bits(qkv), turns, slots, torch.stack(norm).numpy(), bits(cache), bits(q))

    split = qkv.float().view(tokens, -1, dim).split([queries, heads, heads], dim=1)
    turned = []
    for x, weight in zip(split[:2], norm, strict=True):
        held = F.rms_norm(x, (dim,), weight, 1e-3) if normed else x
        pairs = torch.view_as_complex(held.unflatten(-1, (-1, 2)).contiguous())
        turned.append(torch.view_as_real(pairs * angles[at][:, None]).flatten(-2))
    torch.testing.assert_close(q, turned[0].to(dtype), **close(dtype))
    found = torch.empty(2, 3, heads, most, dim, dtype=dtype)
    made.fetch(bits(cache), np.array([0, 2, 3]), 0, bits(found))
    some = torch.empty(2, 3, heads, 9, dim, dtype=dtype)
    made.fetch(bits(cache), np.array([0, 2, 3]), 62, bits(some))
    assert torch.equal(some, found[:, :, :, 62:71])
    want = torch.full((2, rows, heads, most, dim), 9.0)
    want[0, row, :, at], want[1, row, :, at] = turned[1], split[2]
    torch.testing.assert_close(found, want[:, [0, 2, 3]].to(dtype), **close(dtype))
    assert torch.equal(found, plain(cache, dim)[:, [0, 2, 3]])


@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Gemma3"])
@pytest.mark.parametrize("dtype", FORMATS)
def test_the_native_decoder_gives_the_packed_decoders_logits(
    family: str, dtype: torch.dtype
) -> None:
    net = model(family, **FAMILIES[family][1])
    texts = prompts(6, low=3)
    logits = []
    for kind in (FastDecoder, NativeDecoder):
        decoder = kind(net, dtype, 64)
        pool = KvPool(decoder.shape, 8, 2**62)
        with torch.inference_mode():
            pieces = []
            for text in texts:
                row = pool.acquire(len(text) + 3)
                assert row is not None
                pieces.append(Piece(row.index, 0, text))
            made = [decoder.feed(pool, pieces)]
            pool.lengths[[p.row for p in pieces]] = [len(p.ids) for p in pieces]
            for step in range(3):
                rows = np.array([4, 0, 2, 5, 1, 3])
                made.append(decoder.decode(pool, rows, np.arange(6) + step))
                pool.lengths[rows] += 1
            pool.copy(pool._slots[0], [pool._slots[3]], 3)  # type: ignore[list-item]
            made.append(decoder.feed(pool, [Piece(3, 3, np.array([9, 8]))]))
        logits.append(torch.cat(made))
    limit = 1e-4 if dtype == torch.float32 else 0.05
    off = logits[0] - logits[1]
    assert off.norm() < limit * logits[0].norm()
    if family != "Gemma3":  # its logits are larger
        assert off.abs().max() < limit
    assert logits[0].std() > 0.1


@pytest.mark.parametrize("family", ["Qwen2", "Gemma3"])
@pytest.mark.parametrize("dtype", FORMATS)
def test_rows_of_zeros_behind_the_tokens_change_nothing(
    family: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = model(family, **FAMILIES[family][1])
    texts = prompts(3, low=5)
    logits, cached = [], []
    for large in (False, True):
        monkeypatch.setattr(numba_decoder, "is_large", lambda _, large=large: large)
        decoder = NativeDecoder(net, dtype, 64)
        assert decoder._pads is not large
        pool = KvPool(decoder.shape, 4, 2**62)
        rows = [row.index for row in (pool.acquire(20) for _ in texts) if row is not None]
        with torch.inference_mode():
            fed = decoder.feed(pool, [Piece(r, 0, t) for r, t in zip(rows, texts, strict=True)])
            pool.lengths[rows] = [len(text) for text in texts]
            drawn = decoder.decode(pool, np.array(rows), np.array([3, 4, 5]))
        assert len(fed) == len(drawn) == 3
        logits.append(torch.cat([fed, drawn]))
        cached.append(pool.data.float())
    torch.testing.assert_close(*logits, **close(dtype))
    torch.testing.assert_close(*cached, **close(dtype))  # and nothing is written beside the tokens


@given(st.integers(1, 2000))
def test_padded_numbers_of_rows_are_few_and_near(n: int) -> None:
    padded = padded_rows(n)
    assert n <= padded <= max(n + 7, n * 9 // 8)
    assert padded_rows(padded) == padded
    assert len({padded_rows(m) for m in range(1, n + 1)}) <= 8 * n.bit_length()


def test_a_cache_in_blocks_keeps_what_any_other_keeps() -> None:
    dim, pools = 4, []
    for block in (1, BLOCK):
        shape = CacheShape(2, 3, dim, torch.float32, torch.device("cpu"), block)
        pool = KvPool(shape, 4, 2**62)
        rows = [pool.acquire(10), pool.acquire(10)]
        a, b = (row for row in rows if row is not None)
        given = noise(2, 2, 3, 10, dim)
        if block == 1:
            pool.data[:, :, a.index, :, :10] = given
        else:
            pool.data[:, 0, a.index, :, 0].unflatten(-1, (dim, -1))[..., :10] = given[:, 0].mT
            pool.data[:, 1, a.index, :, 0].unflatten(-1, (-1, dim))[..., :10, :] = given[:, 1]
        pool.lengths[a.index] = 10
        c = pool.acquire(600)  # rebuilds
        assert c is not None
        pool.copy(a, [b, c], 10)
        a.busy = b.busy = False
        assert pool.compact(slack=0)
        pools.append(pool.data if block == 1 else torch.stack([plain(x, dim) for x in pool.data]))
        assert pool.positions >= 600
    assert torch.equal(pools[0][..., :10, :], pools[1][..., :10, :])
    assert pools[0][:, :, :3, :, :10].all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_do_not_get_through(bad: float) -> None:
    logits = noise(3, 12)
    logits[1] = bad
    tokens, measures = np.zeros(3, np.int64), np.zeros((2, 3), np.float32)
    kernels.sample(logits.numpy(), np.full((2, 3), 0.5, np.float32), 4, tokens, measures)
    assert np.isfinite(measures[0]).tolist() == [True, False, True]


def test_models_that_the_loops_do_not_take_keep_the_packed_decoder() -> None:
    odd = model("Qwen2", hidden_size=24, num_attention_heads=4, num_key_value_heads=2)
    assert "heads of 6" in str(why_not_native(odd, torch.float32))
    eng = engine(odd)
    assert type(eng._forward) is FastDecoder
    assert len(ask(eng, request([3, 4, 5]))[0].ids)
    assert "float16" in str(why_not_native(model("Qwen2"), torch.float16))
    assert why_not_native(model("Qwen2"), torch.float32) is None


def test_many_threads_draw_and_decode_with_torch() -> None:
    threads = torch.get_num_threads()
    assert compiled_loops() is kernels
    try:
        torch.set_num_threads(5)
        assert compiled_loops() is None
        assert type(engine()._forward) is FastDecoder
    finally:
        torch.set_num_threads(threads)
    assert type(engine()._forward) is NativeDecoder
