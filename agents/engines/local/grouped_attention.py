"""Masked attention where several query heads share a key head, in the form that fused kernels take.

On CUDA a mask together with ``enable_gqa`` leaves torch the slowest of its kernels, or one that
plans anew for every shape. Here the queries of one key head are rows of one table, so nothing is
repeated and any fused kernel that takes a mask will do; long prompts go through in tiles of
queries, so that no mask outgrows the memory that it is worth.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .forward import visible

TILE_ENTRIES = 2**27
"""Most entries of the mask of one tile, counted for all query heads of a key head."""


class GroupedAttention:
    """What the queries of one pass see; the mask is made once and serves all layers.

    Args:
        at: Position of each query in its row ``[rows, width]``.
        n: Keys of each row; the query at position p sees the keys 0 to p.
        group: Query heads for each key head.
        entries: Most entries of a mask, see :data:`TILE_ENTRIES`.
        window: How many keys a query sees, its own the last; None for all.
    """

    def __init__(
        self,
        at: Tensor,
        n: int,
        group: int,
        entries: int | None = None,
        window: int | None = None,
    ) -> None:
        self._at, self._n, self._group, self._window = at, n, group, window
        rows, width = at.shape
        limit = TILE_ENTRIES if entries is None else entries
        self._step = max(1, min(width, limit // (rows * group * n)))
        self._mask = self._seen(0, width) if self._step == width else None

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return what the queries see, ``[rows, width, heads * dim]``.

        Args:
            q: ``[rows, width, heads, dim]``; heads that share a key head follow each other.
            keys: ``[rows, key heads, n, dim]``, with gaps between rows or without.
            values: The same.
        """
        width = q.shape[1]
        if self._mask is not None:
            return self._attend(q, keys, values, self._mask)
        cuts = range(0, width, self._step)
        parts = ((a, min(a + self._step, width)) for a in cuts)
        seen = [self._attend(q[:, a:b], keys, values, self._seen(a, b)) for a, b in parts]
        return torch.cat(seen, dim=1)

    def _attend(self, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        width, group = q.shape[1], self._group
        # [rows, width, key heads, group, dim] -> [rows, key heads, group * width, dim]
        packed = q.unflatten(2, (-1, group)).permute(0, 2, 3, 1, 4).flatten(2, 3)
        out = F.scaled_dot_product_attention(packed, keys, values, attn_mask=mask)
        return out.unflatten(2, (group, width)).permute(0, 3, 1, 2, 4).flatten(2)

    def _seen(self, first: int, stop: int) -> Tensor:
        """Return the mask of these queries, ``[rows, 1, group * queries (or 1), n]``."""
        seen = visible(self._at[:, first:stop], self._n, self._window)[:, None]
        if stop - first == 1:
            return seen  # one query each: all heads see the same
        return seen[:, :, None].expand(-1, -1, self._group, -1, -1).flatten(2, 3)
