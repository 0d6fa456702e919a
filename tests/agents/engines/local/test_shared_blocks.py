"""Blocks that rows have in common: found rightly, and read together with the same bits."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_models import model
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from turngym.agents.engines.local import numba_decoder
from turngym.agents.engines.local.forward import Piece
from turngym.agents.engines.local.kv_cache import KvPool
from turngym.agents.engines.local.numba_decoder import NativeDecoder
from turngym.agents.engines.local.numba_kernels import BLOCK, head_kernels
from turngym.agents.engines.local.shared_blocks import find_shared_blocks
from turngym.agents.models.loops.parts import bits


def noise(*shape: int, seed: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=7))
def test_blocks_are_shared_exactly_where_another_row_holds_the_same_beginning(
    texts: list[list[int]],
) -> None:
    block, pool_rows = 2, np.arange(len(texts))[::-1] * 2 + 1
    tokens = np.full((2 * len(texts) + 1, 12), 7)
    lengths = np.full(len(tokens), 12)
    for row, text in zip(pool_rows, texts, strict=True):
        tokens[row, : len(text)], lengths[row] = text, len(text)
    found = find_shared_blocks(tokens, lengths, pool_rows, block)
    assert sorted(found.order) == list(range(len(texts)))
    beginnings = [
        [tuple(text[: n + block]) for n in range(0, len(text) - block + 1, block)] for text in texts
    ]
    for place, depth, sources in zip(found.order, found.depth, found.source, strict=True):
        others = [b for i, mine in enumerate(beginnings) if i != place for b in mine]
        assert depth == sum(b in others for b in beginnings[place])
        for n, source in enumerate(sources[:depth]):
            end = (n + 1) * block
            assert lengths[source] >= end
            assert (tokens[source, :end] == texts[place][:end]).all()
            same = [p for p, mine in enumerate(beginnings) if beginnings[place][n] in mine]
            assert source in pool_rows[same]
            rows = found.source[np.isin(found.order, same), n]
            assert (rows == source).all(), "each block is read from one place"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "group"), [(1, 1), (2, 3), (1, 4), (2, 7)])
def test_looking_together_gives_the_bits_of_looking_alone(
    heads: int, group: int, dtype: torch.dtype
) -> None:
    rows, dim, blocks = 6, 8, 4
    rng = np.random.default_rng(0)
    lengths = np.array([255, 130, 64, 200, 5, 192])
    tokens = np.zeros((rows, blocks * BLOCK), np.int64)
    tokens[3:, 100:] = 1  # two families, which part in the second block
    tokens[0, 140:] = 2
    cache = torch.empty(2, rows, heads, blocks, BLOCK * dim, dtype=dtype)
    for row in range(rows):
        for block in range(blocks):  # what a block holds follows from all tokens up to its end
            end = (block + 1) * BLOCK
            known = tokens[row, :end].tobytes() if end <= lengths[row] else bytes([row])
            seed = zlib.crc32(known)
            cache[:, row, :, block] = noise(2, heads, BLOCK * dim, seed=seed, dtype=dtype)
    q = noise(rows, heads * group, dim, seed=9, dtype=dtype)
    chosen = rng.permutation(rows)
    slots = np.stack([chosen, lengths[chosen]])
    shared = find_shared_blocks(tokens, lengths, chosen, BLOCK)
    assert shared.depth.max() == 3
    out = torch.zeros(2, rows, heads * group * dim, dtype=dtype)
    made = head_kernels(dim, 1e-6)
    scale = np.float32(0.3)
    made.look(bits(q), bits(cache), slots, scale, bits(out[0]))
    made.look_together(bits(q), bits(cache), slots, *shared, scale, bits(out[1]))
    assert out[0].any()
    assert torch.equal(*out)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_model_decodes_the_same_and_reads_what_rows_share_from_one(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba_decoder, "is_large", lambda _: True)
    net = model("Qwen2", max_position_embeddings=256)
    decoder = NativeDecoder(net, dtype, 256)
    pool = KvPool(decoder.shape, 4, 2**62)
    rows = [row for row in (pool.acquire(200) for _ in range(3)) if row is not None]
    text = np.arange(150) % 50 + 3
    at = np.array([row.index for row in rows])
    pool.tokens[at[0], :150] = text
    decodings: list[Any] = []
    with torch.inference_mode():
        decoder.feed(pool, [Piece(int(at[0]), 0, text)])
        pool.lengths[at[0]] = 150
        pool.copy(rows[0], rows[1:], 140)
        for loop in ("look_together", "look"):
            if loop == "look":
                decoder._reads_once = False
            else:  # what the others hold of the first two blocks is not looked at
                pool.data[:, :, at[1:], :, :2] = torch.nan
            decodings.append(decoder.decode(pool, at, np.array([4, 5, 6])))
            pool.data[:, :, at[1:], :, :2] = pool.data[:, :, at[:1], :, :2]
    assert decodings[0].isfinite().all()
    assert torch.equal(*decodings)
