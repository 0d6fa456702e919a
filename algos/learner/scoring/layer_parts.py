"""What stands between the products of a layer, forward and backward, by torch's own operations.

:mod:`.layer_kernels` has the same functions as compiled loops, a third of the time; this is what
runs without numba, and what those are held to.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from .token_scores import measure_into, slopes_into


@cache
def layer_parts() -> ModuleType:
    """Return the module that computes: the compiled loops where numba is there."""
    try:
        from . import layer_kernels
    except ImportError:
        return sys.modules[__name__]
    return layer_kernels


def norm(
    x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype, added: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return ``x + added``, and its root mean square norm in the products' number format.

    Args:
        x: float32 ``[tokens, n]``.
        weight: float32 ``[n]``.
        eps: Added to the mean square.
        dtype: Of the norm and of ``added``.
        added: ``[tokens, n]``; None for nothing.
    """
    total = x if added is None else x + added
    return total, (total * _shrink(total, eps)).mul_(weight).to(dtype)


def norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor, eps: float, beside: Tensor
) -> tuple[Tensor, Tensor]:
    """Return ``beside`` plus the gradient of a norm's input, and the gradient of its weight.

    Args:
        grad: Of the norm's output, ``[tokens, n]``.
        x: float32 ``[tokens, n]``.
        weight: float32 ``[n]``.
        eps: Added to the mean square.
        beside: float32 ``[tokens, n]``.
    """
    shrink = _shrink(x, eps)
    unit, of_x = x * shrink, grad.float()
    of_weight = torch.linalg.vecdot(of_x, unit, dim=0)
    of_x = of_x * weight
    along = torch.linalg.vecdot(of_x, unit).mul_(-1.0 / x.shape[-1])[:, None]
    return of_x.addcmul_(unit, along).mul_(shrink).add_(beside), of_weight


def _shrink(x: Tensor, eps: float) -> Tensor:
    square = torch.linalg.vecdot(x, x).mul_(1.0 / x.shape[-1])
    return square.add_(eps).rsqrt_()[..., None]


def plus(x: Tensor, added: Tensor) -> Tensor:
    """Return ``x + added`` in float32 of a float32 table and another."""
    return x + added


def gate(gated: Tensor) -> Tensor:
    """Return ``silu(a) * b`` of ``[a, b]``, ``[tokens, 2 n]``."""
    opened, inner = gated.chunk(2, -1)
    return F.silu(opened) * inner


def gate_backward(grad: Tensor, gated: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of ``gated``, and what :func:`gate` returned."""
    opened, inner = gated.chunk(2, -1)
    active, out = F.silu(opened), torch.empty_like(gated)
    torch.mul(grad, active, out=out[:, inner.shape[1] :])
    out[:, : inner.shape[1]] = torch.ops.aten.silu_backward(grad * inner, opened)
    return out, active * inner


def turn(
    qkv: Tensor, cos: Tensor, sin: Tensor, scale: float, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values with rotary angles.

    Args:
        qkv: ``[tokens, (query heads + 2 heads) * width]``.
        cos: float32 ``[tokens, width / 2]``.
        sin: The same.
        scale: Multiplies the queries.
        heads: Of the keys.

    Returns:
        ``[heads, tokens, group * width]`` and twice ``[heads, tokens, width]``.
    """
    tokens, width = len(qkv), 2 * cos.shape[1]
    n_k = heads * width
    n_q = qkv.shape[1] - 2 * n_k
    turning = qkv[:, : n_q + n_k].to(torch.float32, copy=True).view(tokens, -1, 2, width // 2)
    turned = torch.empty(tokens, n_q + n_k, dtype=qkv.dtype)
    _rotate(turning, cos, sin, turned.view(turning.shape), n_q // width, scale)
    parts = turned[:, :n_q], turned[:, n_q:], qkv[:, n_q + n_k :]
    q, k, v = (x.view(tokens, heads, -1).transpose(0, 1).contiguous() for x in parts)
    return q, k, v


def turn_backward(
    grads: tuple[Tensor, Tensor, Tensor], cos: Tensor, sin: Tensor, scale: float
) -> Tensor:
    """Return the gradient of ``qkv`` from those of what :func:`turn` returned.

    Args:
        grads: Of queries in the format of ``qkv``, of keys and values in float32.
        cos: As in :func:`turn`.
        sin: The same.
        scale: The same.
    """
    of_q, of_k, of_v = (g.transpose(0, 1).flatten(1) for g in grads)
    n_q, width = of_q.shape[1], 2 * cos.shape[1]
    turned = torch.cat([of_q.float(), of_k], 1).view(len(of_q), -1, 2, width // 2)
    out = torch.empty(len(of_q), n_q + of_k.shape[1] + of_v.shape[1], dtype=of_q.dtype)
    turning = out[:, : n_q + of_k.shape[1]].view(turned.shape)
    _rotate(turned, cos, -sin, turning, n_q // width, scale)
    out[:, n_q + of_k.shape[1] :] = of_v
    return out


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, out: Tensor, queries: int, scale: float) -> None:
    """Write ``[tokens, heads, 2, width / 2]`` rotated to ``out``, the first heads scaled too."""
    x[:, :queries] *= scale
    a, b = x.unbind(2)
    cos, sin = cos[:, None], sin[:, None]
    out[:, :, 0] = (a * cos).addcmul_(b, sin, value=-1.0)
    out[:, :, 1] = (b * cos).addcmul_(a, sin)


def head_norm(qkv: Tensor, weights: Tensor, queries: int, eps: float) -> Tensor:
    """Return ``qkv`` with a root mean square norm of each head of its queries and keys.

    Args:
        qkv: ``[tokens, (queries + 2 keys) * width]``.
        weights: For queries and for keys, float32 ``[2, width]``.
        queries: Their heads.
        eps: Added to the mean squares.
    """
    heads, weight = _normed_heads(qkv, weights, queries)
    wide = heads.float()
    out = qkv.clone()
    normed, _ = _normed_heads(out, weights, queries)
    normed.copy_(wide * _shrink(wide, eps) * weight)
    return out


def head_norm_backward(
    grad: Tensor, qkv: Tensor, weights: Tensor, queries: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Return the gradient of :func:`head_norm`'s input, and that of its weights ``[2, width]``.

    Args:
        grad: Of its output; changed.
        qkv: As given to it.
        weights: The same.
        queries: The same.
        eps: The same.
    """
    heads, weight = _normed_heads(qkv, weights, queries)
    slopes, _ = _normed_heads(grad, weights, queries)
    shrink = _shrink(heads.float(), eps)
    unit, wide = heads.float() * shrink, slopes.float()
    each = (wide * unit).sum(0)
    of_x = wide * weight
    along = torch.linalg.vecdot(of_x, unit).mul_(-1.0 / unit.shape[-1])[..., None]
    slopes.copy_(of_x.addcmul_(unit, along).mul_(shrink))
    return grad, torch.stack([each[:queries].sum(0), each[queries:].sum(0)])


def _normed_heads(qkv: Tensor, weights: Tensor, queries: int) -> tuple[Tensor, Tensor]:
    """Return the heads that are normed ``[tokens, heads, width]``, and each one's weights."""
    heads = qkv.view(len(qkv), -1, weights.shape[1])
    keys = (heads.shape[1] - queries) // 2
    repeats = torch.tensor([queries, keys])
    return heads[:, : queries + keys], weights.repeat_interleave(repeats, 0)


def measure(logits: Tensor, targets: Tensor, temperature: float, out: Tensor) -> None:
    """Write log-probabilities, entropies and logarithms of the sums of exponentials.

    Args:
        logits: ``[n, vocabulary]``.
        targets: ``[n]``.
        temperature: Divides the logits.
        out: float32 ``[3, n]``.
    """
    measure_into(logits, targets, temperature, (out[0], out[1], out[2]))


def slopes(
    logits: Tensor,
    targets: Tensor,
    temperature: float,
    found: tuple[Tensor, Tensor],
    grads: tuple[Tensor, Tensor | None],
) -> None:
    """Write the gradient of logits in their place.

    Args:
        logits: ``[n, vocabulary]``.
        targets: ``[n]``.
        temperature: Divides the logits.
        found: Logarithms of the sums of exponentials, and entropies ``[n]``.
        grads: Of log-probabilities and of entropies ``[n]``; None for no gradient of entropies.
    """
    slopes_into(logits, targets, temperature, found, grads, logits)
