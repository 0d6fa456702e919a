"""Attention of ragged queries over cached rows in one call, without mask, copy or padding.

The rows of the pool are handed to ``torch.nn.attention.varlen.varlen_attn`` as pages of a paged
cache, in place: a page is a stretch of a row, and the heads' stride does the rest. The call is
CUDA's alone; where torch has none that takes pages (as 2.11), a Triton kernel of our own stands
in for it, see :mod:`.paged_triton`. :func:`paged_reference` computes the same on any device; before
a kernel is used, :func:`prove_kernel` holds it to the reference on the device that it will run on,
and whoever gets a reason instead of a kernel keeps to masks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Kernel = Callable[..., Tensor]
"""Called as ``varlen_attn`` of torch is."""
Ids = npt.NDArray[np.int64]
PAGE = 256
"""Positions of a page: what FlashAttention 2 asks for at least."""
PROVED_WINDOW = 33
"""A sliding window that is shorter than what a kernel is proved with."""
TOLERANCE = 0.03
"""Largest difference from the reference for numbers of size 1 in half precision."""


@dataclass(frozen=True, slots=True)
class Sequences:
    """Which queries see which stretch of which row.

    Attributes:
        cuts: Where each sequence's queries begin, and the end ``[n + 1]`` int32.
        lengths: Keys of each sequence ``[n]`` int32; its last query sees all of them.
        rows: Row of the pool of each sequence ``[n]``.
        longest: Most queries of a sequence.
        reach: Most keys of a sequence.
    """

    cuts: Tensor
    lengths: Tensor
    rows: Tensor
    longest: int
    reach: int

    @classmethod
    def of(cls, sizes: Ids, lengths: Ids, rows: Ids, move: Callable[[Any], Tensor]) -> Sequences:
        """Lay sequences out.

        Args:
            sizes: Queries of each ``[n]``.
            lengths: Keys of each ``[n]``, its queries' own among them.
            rows: Row of the pool of each ``[n]``.
            move: Brings an array to the device.
        """
        cuts, ends, where = (move(array) for array in cls.arrays(sizes, lengths, rows))
        return cls(cuts, ends, where, int(sizes.max()), int(lengths.max()))

    @staticmethod
    def arrays(sizes: Ids, lengths: Ids, rows: Ids) -> tuple[npt.NDArray[Any], ...]:
        """Return what :meth:`of` brings to the device: cuts, lengths and rows."""
        cuts = np.concatenate([[0], sizes.cumsum()]).astype(np.int32)
        return cuts, lengths.astype(np.int32), rows

    def single(self) -> Sequences:
        """Return the same for the last query of each sequence."""
        n = len(self.lengths)
        cuts = torch.arange(n + 1, dtype=torch.int32, device=self.cuts.device)
        return Sequences(cuts, self.lengths, self.rows, 1, self.reach)


def attend_paged(
    kernel: Kernel,
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    where: Sequences,
    window: int | None = None,
) -> Tensor:
    """Return what the queries see, ``[total, heads * dim]``.

    Args:
        kernel: See :data:`Kernel`.
        q: Queries of all sequences, one after the other ``[total, heads, dim]``.
        keys: Of the pool, one layer ``[rows, key heads, positions, dim]``; positions are a
            multiple of :data:`PAGE`.
        values: The same.
        where: The sequences.
        window: How many keys a query sees, its own the last; None for all.
    """
    per_row = keys.shape[2] // PAGE
    pages = torch.arange(-(-where.reach // PAGE), dtype=torch.int32, device=q.device)
    # pages are counted through all heads of a row, as the heads lie between them
    table = (where.rows * (keys.shape[1] * per_row)).to(torch.int32)[:, None] + pages
    out = kernel(
        q.contiguous(),
        _pages(keys),
        _pages(values),
        where.cuts,
        None,
        where.longest,
        int(pages.shape[0]) * PAGE,
        scale=q.shape[-1] ** -0.5,
        window_size=(-1 if window is None else window - 1, 0),
        enable_gqa=True,
        seqused_k=where.lengths,
        block_table=table,
    )
    return out.flatten(1)


def _pages(x: Tensor) -> Tensor:
    """Return rows ``[rows, heads, positions, dim]`` as pages ``[pages, PAGE, heads, dim]``.

    Page ``row * heads * (positions / PAGE) + j`` is stretch j of that row; the numbers between
    those of two rows are no pages of their own.
    """
    rows, heads, positions, dim = x.shape
    row, head, position, number = x.stride()
    assert row == heads * head
    assert head == positions * position
    count = rows * heads * (positions // PAGE) - (heads - 1) * (positions // PAGE)
    size, stride = (count, PAGE, heads, dim), (PAGE * position, position, head, number)
    return x.as_strided(size, stride, x.storage_offset())


def paged_reference(  # noqa: PLR0913 - the kernel's signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,  # noqa: ARG001 - the kernel's signature
    max_q: int,  # noqa: ARG001
    max_k: int,  # noqa: ARG001
    *,
    scale: float,
    window_size: tuple[int, int],
    enable_gqa: bool,  # noqa: ARG001
    seqused_k: Tensor,
    block_table: Tensor,
    num_splits: int | None = None,  # noqa: ARG001
) -> Tensor:
    """Compute in float32 what ``varlen_attn`` does for a causal window over a paged cache."""
    assert window_size[1] == 0
    out = torch.empty_like(query)
    cuts = cu_seq_q.tolist()
    for i, length in enumerate(seqused_k.tolist()):
        own = query[cuts[i] : cuts[i + 1]].float()
        k, v = (x[block_table[i].long()].flatten(0, 1)[:length].float() for x in (key, value))
        group = own.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", own, k) * scale
        n = len(own)
        later = torch.ones(n, length, dtype=torch.bool, device=own.device)
        scores.masked_fill_(later.triu(length - n + 1), float("-inf"))
        if window_size[0] >= 0:
            scores.masked_fill_(later.tril_(length - n - window_size[0] - 1), float("-inf"))
        out[cuts[i] : cuts[i + 1]] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
    return out


def find_kernel(
    device: torch.device,
    dtype: torch.dtype,
    heads: tuple[int, int],
    dim: int,
    *,
    windowed: bool = False,
) -> Kernel | str:
    """Return the kernel for a device, proved there, or the reason why there is none.

    Args:
        device: Where the model is.
        dtype: Of queries and cache.
        heads: Query heads and key heads.
        dim: Width of a head.
        windowed: Whether layers have a sliding window, which is proved as well.
    """
    if device.type != "cuda":
        return f"varlen_attn is CUDA's alone, and the device is {device.type}"
    if dtype not in (torch.float16, torch.bfloat16):
        return f"varlen_attn computes in half precision, and the engine's format is {dtype}"
    reasons = []
    for name, kernel in _kernels():
        windows = (None, PROVED_WINDOW) if windowed else (None,)
        proofs = (prove_kernel(kernel, device, dtype, heads, dim, window) for window in windows)
        reason = next((why for why in proofs if why is not None), None)
        if reason is None:
            return kernel
        reasons.append(f"{name} {reason}")
    return "; ".join(dict.fromkeys(reasons)) or "this torch has no varlen_attn, and no triton"


def _kernels() -> list[tuple[str, Kernel]]:
    """Return the kernels that there are by name, in the order in which they are tried."""
    found: list[tuple[str, Kernel]] = []
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        pass
    else:
        # one split gives a row the same numbers whatever else is in the batch
        found += [("varlen_attn", partial(varlen_attn, num_splits=1)), ("varlen_attn", varlen_attn)]
    try:
        from .paged_triton import attend_pages
    except ImportError:
        pass
    else:
        found.append(("the Triton kernel", attend_pages))
    return found


@torch.inference_mode()
def prove_kernel(
    kernel: Kernel,
    device: torch.device,
    dtype: torch.dtype,
    heads: tuple[int, int],
    dim: int,
    window: int | None = None,
) -> str | None:
    """Return why a kernel may not be used; None if it gives the reference's numbers."""
    draws = torch.Generator().manual_seed(0)
    sizes, lengths = np.array([1, 40, 3, 1]), np.array([300, 40, 259, 1])
    q = torch.randn(int(sizes.sum()), heads[0], dim, generator=draws).to(device, dtype)
    shape = (2, 5, heads[1], 2 * PAGE, dim)
    keys, values = torch.randn(shape, generator=draws).to(device, dtype).unbind(0)
    move = lambda array: torch.from_numpy(array).to(device)  # noqa: E731
    where = Sequences.of(sizes, lengths, np.array([4, 0, 2, 1]), move)
    ends = q[where.cuts[1:].long() - 1]
    for queries, of in ((q, where), (ends, where.single())):  # prompts, and a decode step
        try:
            got = attend_paged(kernel, queries, keys, values, of, window)
        except Exception as fault:  # noqa: BLE001 - whatever a compiler raises; masks do as well
            return f"refused: {(str(fault).strip().splitlines() or ['?'])[0][:200]}"
        wanted = attend_paged(paged_reference, queries, keys, values, of, window)
        off = (got.float() - wanted.float()).abs()
        if not bool(off.max() <= TOLERANCE):
            return f"is {float(off.max()):.3g} off its reference over a paged cache"
    return None
