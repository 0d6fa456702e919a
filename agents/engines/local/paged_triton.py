"""Attention over a paged cache as a Triton kernel, for a torch whose own takes no pages.

``torch.nn.attention.varlen.varlen_attn`` takes paged caches in torch 2.13, not yet in 2.11. Where
it does not, this kernel takes its place, under the same laws: one call for all rows, nothing padded
or copied, and a row's numbers do not depend on what else is in the batch, since its keys are never
split between programs. It is the online softmax of FlashAttention (Dao et al. 2022, algorithm 1)
with the queries of one key head as lines of one product.
"""

# pyright: reportMissingImports=false, reportMissingParameterType=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

KEYS = 64
"""Keys of a step of the loop; a page is a multiple of it."""
FEW, MANY = 16, 64
"""Lines of a program, a line being a query's head: of decode steps, and of prompts."""
LOG2_E = 1.4426950408889634


@triton.jit
def _attend(  # noqa: PLR0913 - a kernel's arguments
    q_at,
    k_at,
    v_at,
    out_at,
    cuts_at,
    seen_at,
    table_at,
    scale,
    back,
    token_stride,
    head_stride,
    page_stride,
    place_stride,
    key_head_stride,
    table_stride,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
    WIDE: tl.constexpr,
    PAGE: tl.constexpr,
    WINDOWED: tl.constexpr,
    LINES: tl.constexpr,
    STEP: tl.constexpr,
):
    sequence, head = tl.program_id(1), tl.program_id(2)
    first = tl.load(cuts_at + sequence)
    count = tl.load(cuts_at + sequence + 1) - first
    start = tl.program_id(0) * LINES
    if start < count * GROUP:
        length = tl.load(seen_at + sequence)
        lines = start + tl.arange(0, LINES)
        query, member = lines // GROUP, lines % GROUP
        alive = query < count
        position = length - count + query
        dims = tl.arange(0, WIDE)
        real = dims < DIM
        token = (first + query).to(tl.int64)
        own = token * token_stride + (head * GROUP + member) * head_stride
        where = own[:, None] + dims[None, :]
        q = tl.load(q_at + where, mask=alive[:, None] & real[None, :], other=0.0)
        best = tl.full([LINES], float("-inf"), tl.float32)
        total = tl.zeros([LINES], tl.float32)
        mixed = tl.zeros([LINES, WIDE], tl.float32)
        latest = tl.minimum((start + LINES - 1) // GROUP, count - 1)
        stop = length - count + latest + 1
        begin = 0
        if WINDOWED:
            begin = tl.maximum(length - count + start // GROUP - back, 0) // STEP * STEP
        for at in range(begin, stop, STEP):
            page = tl.load(table_at + sequence * table_stride + at // PAGE).to(tl.int64)
            keys = at + tl.arange(0, STEP)
            places = page * page_stride + head * key_head_stride + (keys % PAGE) * place_stride
            there = keys < stop
            k = tl.load(
                k_at + places[None, :] + dims[:, None],
                mask=there[None, :] & real[:, None],
                other=0.0,
            )
            scores = tl.dot(q, k) * scale
            sees = (keys[None, :] <= position[:, None]) & alive[:, None]
            if WINDOWED:
                sees = sees & (keys[None, :] >= position[:, None] - back)
            scores = tl.where(sees, scores, float("-inf"))
            highest = tl.maximum(best, tl.max(scores, 1))
            level = tl.where(highest == float("-inf"), 0.0, highest)
            weights = tl.exp2(scores - level[:, None])
            keep = tl.exp2(best - level)
            total = total * keep + tl.sum(weights, 1)
            v = tl.load(
                v_at + places[:, None] + dims[None, :],
                mask=there[:, None] & real[None, :],
                other=0.0,
            )
            mixed = mixed * keep[:, None] + tl.dot(weights.to(v.dtype), v)
            best = highest
        total = tl.where(total > 0, total, 1.0)
        out = (mixed / total[:, None]).to(out_at.dtype.element_ty)
        tl.store(out_at + where, out, mask=alive[:, None] & real[None, :])


def attend_pages(  # noqa: PLR0913 - varlen_attn's signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,  # noqa: ARG001 - varlen_attn's signature
    max_q: int,
    max_k: int,  # noqa: ARG001
    *,
    scale: float,
    window_size: tuple[int, int],
    enable_gqa: bool,  # noqa: ARG001
    seqused_k: Tensor,
    block_table: Tensor,
) -> Tensor:
    """Return what ``varlen_attn`` does for a causal window over a paged cache.

    Args:
        query: Of all sequences, one after the other ``[total, heads, dim]``, contiguous.
        key: Pages of keys ``[pages, page, key heads, dim]``, of any strides but the last, which
            is 1.
        value: The same, with the same strides.
        cu_seq_q: Where each sequence's queries begin, and the end ``[n + 1]`` int32.
        cu_seq_k: Nothing; pages have none.
        max_q: Most queries of a sequence.
        max_k: Most keys of a sequence.
        scale: Of the scores.
        window_size: (keys before its own that a query sees, -1 for all; 0).
        enable_gqa: Whether several query heads share a key head; they may in any case.
        seqused_k: Keys of each sequence ``[n]`` int32; its last query sees all of them.
        block_table: Pages of each sequence ``[n, most pages]`` int32.

    Returns:
        ``[total, heads, dim]``.

    Raises:
        ValueError: A layout that the kernel does not read.
    """
    _, heads, dim = query.shape
    page, key_heads = key.shape[1], key.shape[2]
    if key.stride() != value.stride() or key.stride(-1) != 1 or not query.is_contiguous():
        raise ValueError(
            f"attend_pages: keys have strides {key.stride()}, values {value.stride()}, queries "
            f"{query.stride()}; expected the same of keys and values, with 1 as the last, and "
            "contiguous queries."
        )
    if page % KEYS or window_size[1] != 0:
        raise ValueError(
            f"attend_pages: pages of {page} keys and a window of {window_size}; expected a "
            f"multiple of {KEYS}, and no keys behind a query's own."
        )
    out, group = torch.empty_like(query), heads // key_heads
    lines = FEW if max_q == 1 and group <= FEW else MANY
    grid = triton.cdiv(max_q * group, lines), len(seqused_k), key_heads
    _attend[grid](
        query,
        key,
        value,
        out,
        cu_seq_q,
        seqused_k,
        block_table,
        scale * LOG2_E,
        window_size[0],
        query.stride(0),
        query.stride(1),
        key.stride(0),
        key.stride(1),
        key.stride(2),
        block_table.stride(0),
        GROUP=group,
        DIM=dim,
        WIDE=max(16, triton.next_power_of_2(dim)),
        PAGE=page,
        WINDOWED=window_size[0] >= 0,
        LINES=lines,
        STEP=KEYS,
        num_warps=4,
    )
    return out
