"""Attention weights of some neighbouring queries, by plain products: quick in bfloat16 on a CPU.

The fused kernels of torch are made for float32 there, or for a mask that is as large as the
scores of a whole batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

QUERIES = 128
"""Queries at a time: keys that come later than these are not computed for them."""


Softmax = Callable[[Tensor, int, int], tuple[Tensor, Tensor]]
"""As :func:`masked_softmax`; the scores' memory may become that of the weights."""
Slopes = Callable[[Tensor, Tensor, Tensor, int, int], tuple[Tensor, Tensor]]
"""As :func:`masked_slopes`."""


def masked_softmax(scores: Tensor, first: int, stop: int) -> tuple[Tensor, Tensor]:
    """Return attention weights of scores; keys behind a query's position get none.

    Args:
        scores: ``[key heads, (stop - first) * group, stop]``, changed.
        first: Position of the first query.
        stop: One past the last.

    Returns:
        The weights, and the logarithm of each row's sum of exponentials
        ``[key heads, (stop - first) * group]`` float32.
    """
    _hide_later(scores, first, stop)
    return scores.softmax(-1), scores.float().logsumexp(-1)


def masked_slopes(
    scores: Tensor, grad: Tensor, logsumexp: Tensor, first: int, stop: int
) -> tuple[Tensor, Tensor]:
    """Return weights of scores, and from the weights' gradient that of the scores.

    Args:
        scores: As in :func:`masked_softmax`.
        grad: The same shape.
        logsumexp: What :func:`masked_softmax` found of the same scores.
        first: As in :func:`masked_softmax`.
        stop: The same.
    """
    _hide_later(scores, first, stop)
    weights = (scores.float() - logsumexp[..., None]).exp().to(grad.dtype)
    return weights, torch.ops.aten._softmax_backward_data(grad, weights, -1, weights.dtype)


def _hide_later(scores: Tensor, first: int, stop: int) -> None:
    """Hide from every query the keys behind its position."""
    n = stop - first
    latest = scores.view(len(scores), n, -1, stop)[..., first:]
    later = torch.full((n, n), float("-inf"), dtype=scores.dtype, device=scores.device)
    latest += later.triu_(1)[:, None]


@cache
def softmax_kernels() -> tuple[Softmax, Slopes]:
    """Return :func:`masked_softmax` and :func:`masked_slopes`, compiled where numba is there."""
    try:
        from .loops.causal_kernels import causal_slopes, causal_softmax
    except ImportError:
        return masked_softmax, masked_slopes
    return causal_softmax, causal_slopes


def attend_row(
    q: Tensor, keys: Tensor, values: Tensor, scale: float, window: int | None = None
) -> Tensor:
    """Return what the last tokens of a row see ``[tokens, heads * width]``.

    Args:
        q: Their queries ``[tokens, heads, width]``.
        keys: Of the whole row, or of what the first token sees and later ones
            ``[key heads, positions, width]``.
        values: The same.
        scale: Multiplies the scores.
        window: How many tokens a token sees, itself the last; None for all.
    """
    tokens, width, before = len(q), q.shape[-1], keys.shape[1] - len(q)
    grouped = (q * scale).view(tokens, len(keys), -1, width).transpose(0, 1)
    out = torch.empty_like(q).view(tokens, len(keys), -1)
    softmax, _ = softmax_kernels()
    for a in range(0, tokens, QUERIES):
        b = min(a + QUERIES, tokens)
        some = grouped[:, a:b].reshape(len(keys), -1, width)
        first = 0 if window is None else max(0, before + a + 1 - window)
        scores = torch.bmm(some, keys[:, first : before + b].mT)
        if window is not None and before + b - first > window:
            _hide_far(scores, b - a, before + a - first - window)
        weights, _ = softmax(scores, before + a - first, before + b - first)
        seen = torch.bmm(weights, values[:, first : before + b])
        out[a:b] = seen.view(len(keys), b - a, -1).transpose(0, 1)
    return out.view(tokens, -1)


def _hide_far(scores: Tensor, n: int, last: int) -> None:
    """Hide from ``n`` queries the keys up to ``last`` of the first one, one more of each next."""
    nearest = scores.view(len(scores), n, -1, scores.shape[-1])[..., :n]
    far = torch.full((n, n), float("-inf"), dtype=scores.dtype, device=scores.device)
    nearest += far.tril_(last)[:, None]
