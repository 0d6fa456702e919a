"""Attention weights of some neighbouring queries, by plain products: quick in bfloat16 on a CPU.

The fused kernels of torch are made for float32 there, or for a mask that is as large as the
scores of a whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

QUERIES = 128
"""Queries at a time: keys that come later than these are not computed for them."""


def causal_weights(queries: Tensor, keys: Tensor, first: int, stop: int) -> Tensor:
    """Return attention weights ``[key heads, (stop - first) * group, stop]``.

    Args:
        queries: Of positions ``first`` to ``stop``, scaled; those of the heads that share a key
            head follow each other ``[key heads, (stop - first) * group, width]``.
        keys: Of all positions ``[key heads, at least stop, width]``.
        first: Position of the first query.
        stop: One past the last.
    """
    n = stop - first
    scores = torch.bmm(queries, keys[:, :stop].mT)
    latest = scores.view(len(queries), n, -1, stop)[..., first:]
    later = torch.full((n, n), float("-inf"), dtype=scores.dtype, device=scores.device)
    latest += later.triu_(1)[:, None]
    return scores.softmax(-1)


def attend_row(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Return what the last tokens of a row see ``[tokens, heads * width]``.

    Args:
        q: Their queries ``[tokens, heads, width]``.
        keys: Of the whole row ``[key heads, positions, width]``.
        values: The same.
        scale: Multiplies the scores.
    """
    tokens, width, before = len(q), q.shape[-1], keys.shape[1] - len(q)
    grouped = (q * scale).view(tokens, len(keys), -1, width).transpose(0, 1)
    out = torch.empty_like(q).view(tokens, len(keys), -1)
    for a in range(0, tokens, QUERIES):
        b = min(a + QUERIES, tokens)
        some = grouped[:, a:b].reshape(len(keys), -1, width)
        weights = causal_weights(some, keys, before + a, before + b)
        seen = torch.bmm(weights, values[:, : before + b])
        out[a:b] = seen.view(len(keys), b - a, -1).transpose(0, 1)
    return out.view(tokens, -1)
