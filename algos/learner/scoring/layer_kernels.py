"""Loops of a model's update on a CPU, compiled by numba: one pass over memory for each.

What stands between the products of a layer (norms, rotary angles, gates, their gradients, and
what the output layer's logits become) is bound by memory: torch writes down every intermediate
result, here a row stays in the processor's cache from beginning to end. Where products are made in
bfloat16, roundings are where :mod:`.packed_layers` has them. Rows are shared out over torch's
threads; sums over rows are made of pieces of :data:`ROWS`, so that the number of threads changes no
bit.

Arrays are float32, or the bits of bfloat16 in uint16. The same functions by torch alone:
:mod:`.layer_parts`.
"""

# ruff: noqa: PLR0913 - a compiled loop takes each of its arrays
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....agents.models.loops.parts import (
    LOWEST,
    bits,
    compiled,
    exp_of_negative,
    narrow,
    widen,
)
from ....agents.models.loops.row_threads import ROWS, share_rows

_ONE = np.float32(1)


@compiled
def _norm(
    first: int, stop: int, x: Any, added: Any, weight: Any, eps: Any, total: Any, out: Any
) -> None:
    """``total = x + added``, then ``out = weight * total / sqrt(mean(total**2) + eps)``."""
    width = x.shape[1]
    for t in range(first, stop):
        row, target = total[t], out[t]
        if added.shape[0]:
            old, more = x[t], added[t]
            for i in range(width):
                row[i] = old[i] + widen(more[i])
        square = np.float32(0)
        for i in range(width):
            square += row[i] * row[i]
        scale = _ONE / np.sqrt(square / np.float32(width) + eps)
        for i in range(width):
            target[i] = narrow(row[i] * scale * weight[i], target[i])


@compiled
def _norm_backward(
    first: int,
    stop: int,
    grad: Any,
    x: Any,
    weight: Any,
    eps: Any,
    beside: Any,
    total: Any,
    of_weight: Any,
) -> None:
    """``total = beside +`` the gradient of a norm's input."""
    width = x.shape[1]
    for t in range(first, stop):
        row, slope, old, new = x[t], grad[t], beside[t], total[t]
        sums = of_weight[t // ROWS]
        square, along = np.float32(0), np.float32(0)
        for i in range(width):
            square += row[i] * row[i]
            along += widen(slope[i]) * weight[i] * row[i]
        scale = _ONE / np.sqrt(square / np.float32(width) + eps)
        along *= scale * scale / np.float32(width)
        for i in range(width):
            g = widen(slope[i])
            sums[i] += g * row[i] * scale
            new[i] = old[i] + (g * weight[i] - row[i] * along) * scale


@compiled
def _plus(first: int, stop: int, x: Any, added: Any, out: Any) -> None:
    for t in range(first, stop):
        row, more, target = x[t], added[t], out[t]
        for i in range(len(row)):
            target[i] = row[i] + widen(more[i])


@compiled
def _gate(first: int, stop: int, gated: Any, out: Any) -> None:
    """``silu(gated[:, :n]) * gated[:, n:]``."""
    n = out.shape[1]
    for t in range(first, stop):
        opened, inner, row = gated[t, :n], gated[t, n:], out[t]
        for i in range(n):
            a = widen(opened[i])
            e = exp_of_negative(-abs(a))
            active = widen(narrow(a * ((_ONE if a >= 0 else e) / (_ONE + e)), row[i]))
            row[i] = narrow(active * widen(inner[i]), row[i])


@compiled
def _gate_backward(first: int, stop: int, grad: Any, gated: Any, out: Any, product: Any) -> None:
    """Write the gradient of ``gated``, and once more what :func:`_gate` wrote."""
    n = grad.shape[1]
    for t in range(first, stop):
        opened, inner, row, made = gated[t, :n], gated[t, n:], grad[t], product[t]
        of_opened, of_inner = out[t, :n], out[t, n:]
        for i in range(n):
            a, b, g = widen(opened[i]), widen(inner[i]), widen(row[i])
            e = exp_of_negative(-abs(a))
            share = (_ONE if a >= 0 else e) / (_ONE + e)
            active = widen(narrow(a * share, made[i]))
            made[i] = narrow(active * b, made[i])
            slope = widen(narrow(g * b, made[i]))
            of_opened[i] = narrow(slope * share * (_ONE + a * (_ONE - share)), made[i])
            of_inner[i] = narrow(g * active, made[i])


@compiled
def _turn(
    first: int, stop: int, qkv: Any, cos: Any, sin: Any, scale: Any, q: Any, k: Any, v: Any
) -> None:
    """Rotate queries, which are scaled too, and keys; heads come first."""
    heads, _, width = k.shape
    group, half = q.shape[2] // width, width // 2
    for t in range(first, stop):
        c, s = cos[t], sin[t]
        for place in range(heads * (group + 1)):
            row = qkv[t, place * width : (place + 1) * width]
            if place < heads * group:
                at = place % group * width
                out, heat = q[place // group, t, at : at + width], scale
            else:
                out, heat = k[place - heads * group, t], _ONE
            left, right = out[:half], out[half:]
            before, behind = row[:half], row[half:]
            for i in range(half):
                a, b = widen(before[i]) * heat, widen(behind[i]) * heat
                left[i] = narrow(a * c[i] - b * s[i], left[i])
                right[i] = narrow(b * c[i] + a * s[i], right[i])
        for head in range(heads):
            at = (heads * (group + 1) + head) * width
            v[head, t] = qkv[t, at : at + width]


@compiled
def _turn_backward(
    first: int, stop: int, q: Any, k: Any, v: Any, cos: Any, sin: Any, scale: Any, out: Any
) -> None:
    """Write the gradient ``out`` of ``qkv`` from those of what :func:`_turn` made of it."""
    heads, _, width = k.shape
    group, half = q.shape[2] // width, width // 2
    some = np.empty(width, np.float32)
    for t in range(first, stop):
        c, s = cos[t], sin[t]
        for place in range(heads * (group + 1)):
            if place < heads * group:
                at = place % group * width
                row = q[place // group, t, at : at + width]
                for i in range(width):
                    some[i] = widen(row[i]) * scale
            else:
                some[:] = k[place - heads * group, t]
            target = out[t, place * width : (place + 1) * width]
            left, right = target[:half], target[half:]
            for i in range(half):
                a, b = some[i], some[half + i]
                left[i] = narrow(a * c[i] + b * s[i], left[i])
                right[i] = narrow(b * c[i] - a * s[i], right[i])
        for head in range(heads):
            at = (heads * (group + 1) + head) * width
            target, row = out[t, at : at + width], v[head, t]
            for i in range(width):
                target[i] = narrow(row[i], target[i])


@compiled
def _head_norm(
    first: int, stop: int, qkv: Any, weights: Any, queries: int, eps: Any, out: Any
) -> None:
    """Norm queries and keys, head by head; values are copied."""
    heads, width = out.shape[1] // weights.shape[1], weights.shape[1]
    keys = (heads - queries) // 2
    for t in range(first, stop):
        for head in range(queries + keys):
            row = qkv[t, head * width : (head + 1) * width]
            target = out[t, head * width : (head + 1) * width]
            weight = weights[0 if head < queries else 1]
            square = np.float32(0)
            for i in range(width):
                square += widen(row[i]) * widen(row[i])
            scale = _ONE / np.sqrt(square / np.float32(width) + eps)
            for i in range(width):
                target[i] = narrow(widen(row[i]) * scale * weight[i], target[i])
        for i in range((queries + keys) * width, out.shape[1]):
            out[t, i] = qkv[t, i]


@compiled
def _head_norm_backward(
    first: int,
    stop: int,
    grad: Any,
    qkv: Any,
    weights: Any,
    queries: int,
    eps: Any,
    of_weights: Any,
) -> None:
    """Make the gradient of :func:`_head_norm`'s input of that of its output, in its place."""
    heads, width = grad.shape[1] // weights.shape[1], weights.shape[1]
    keys = (heads - queries) // 2
    for t in range(first, stop):
        for head in range(queries + keys):
            row = qkv[t, head * width : (head + 1) * width]
            slope = grad[t, head * width : (head + 1) * width]
            which = 0 if head < queries else 1
            weight, sums = weights[which], of_weights[t // ROWS, which]
            square, along = np.float32(0), np.float32(0)
            for i in range(width):
                square += widen(row[i]) * widen(row[i])
                along += widen(slope[i]) * weight[i] * widen(row[i])
            scale = _ONE / np.sqrt(square / np.float32(width) + eps)
            along *= scale * scale / np.float32(width)
            for i in range(width):
                g, x = widen(slope[i]), widen(row[i])
                sums[i] += g * x * scale
                slope[i] = narrow((g * weight[i] - x * along) * scale, slope[i])


@compiled
def _measure(
    first: int, stop: int, logits: Any, tops: Any, targets: Any, heat: Any, out: Any
) -> None:
    """Write log-probabilities, entropies and logarithms of the sums of exponentials."""
    for t in range(first, stop):
        top = tops[t]
        total, expected = np.float32(0), np.float32(0)
        for i in range(logits.shape[1]):
            x = (widen(logits[t, i]) - top) * heat
            e = exp_of_negative(x)
            total += e
            expected += e * (x if x > LOWEST else LOWEST)
        log_total = np.log(total)
        out[0, t] = (widen(logits[t, targets[t]]) - top) * heat - log_total
        entropy = log_total - expected / total
        out[1, t] = np.float32(0) if entropy < 0 else entropy
        out[2, t] = top * heat + log_total


@compiled
def _slopes(
    first: int,
    stop: int,
    logits: Any,
    targets: Any,
    totals: Any,
    entropies: Any,
    of_logprobs: Any,
    of_entropies: Any,
    heat: Any,
) -> None:
    """Write the gradient of logits in their place."""
    for t in range(first, stop):
        total, spread = totals[t], of_entropies[t]
        base = of_logprobs[t] + spread * entropies[t]
        at = targets[t]
        chosen = min(widen(logits[t, at]) * heat - total, np.float32(0))
        for i in range(logits.shape[1]):
            logp = min(widen(logits[t, i]) * heat - total, np.float32(0))
            held = logp if logp > LOWEST else LOWEST
            slope = exp_of_negative(logp) * (base + spread * held)
            logits[t, i] = narrow(-slope * heat, logits[t, i])
        slope = exp_of_negative(chosen) * (base + spread * max(chosen, LOWEST))
        logits[t, at] = narrow((of_logprobs[t] - slope) * heat, logits[t, at])


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
    out = torch.empty(x.shape, dtype=dtype)
    total = x if added is None else torch.empty_like(x)
    more = torch.empty((0, 0), dtype=dtype) if added is None else added
    arrays = (bits(t) for t in (x, more, weight))
    share_rows(_norm, len(x), *arrays, np.float32(eps), bits(total), bits(out))
    return total, out


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
    total = torch.empty_like(x)
    parts = torch.zeros(-(-len(x) // ROWS), x.shape[1])
    arrays = (bits(t) for t in (grad, x, weight))
    more = (bits(t) for t in (beside.contiguous(), total, parts))
    share_rows(_norm_backward, len(x), *arrays, np.float32(eps), *more)
    return total, parts.sum(0)


def plus(x: Tensor, added: Tensor) -> Tensor:
    """Return ``x + added`` in float32 of a float32 table and another."""
    out = torch.empty_like(x)
    share_rows(_plus, len(x), bits(x), bits(added), bits(out))
    return out


def gate(gated: Tensor) -> Tensor:
    """Return ``silu(a) * b`` of ``[a, b]``, ``[tokens, 2 n]``."""
    out = torch.empty(len(gated), gated.shape[1] // 2, dtype=gated.dtype)
    share_rows(_gate, len(gated), bits(gated), bits(out))
    return out


def gate_backward(grad: Tensor, gated: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of ``gated``, and what :func:`gate` returned."""
    out, product = torch.empty_like(gated), torch.empty_like(grad)
    share_rows(_gate_backward, len(grad), *(bits(t) for t in (grad, gated, out, product)))
    return out, product


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
    width = 2 * cos.shape[1]
    q = torch.empty(heads, len(qkv), qkv.shape[1] // heads - 2 * width, dtype=qkv.dtype)
    k, v = torch.empty(2, heads, len(qkv), width, dtype=qkv.dtype)
    arrays = (bits(t) for t in (qkv, cos, sin))
    share_rows(_turn, len(qkv), *arrays, np.float32(scale), bits(q), bits(k), bits(v))
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
    q, k, v = grads
    heads, tokens, width = k.shape
    out = torch.empty(tokens, heads * (q.shape[2] + 2 * width), dtype=q.dtype)
    arrays = (bits(t) for t in (q, k, v, cos, sin))
    share_rows(_turn_backward, tokens, *arrays, np.float32(scale), bits(out))
    return out


def head_norm(qkv: Tensor, weights: Tensor, queries: int, eps: float) -> Tensor:
    """Return ``qkv`` with a root mean square norm of each head of its queries and keys.

    Args:
        qkv: ``[tokens, (queries + 2 keys) * width]``.
        weights: For queries and for keys, float32 ``[2, width]``.
        queries: Their heads.
        eps: Added to the mean squares.
    """
    out = torch.empty_like(qkv)
    arrays = bits(qkv), bits(weights), queries, np.float32(eps), bits(out)
    share_rows(_head_norm, len(qkv), *arrays)
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
    parts = torch.zeros(-(-len(qkv) // ROWS), *weights.shape)
    arrays = bits(grad), bits(qkv), bits(weights), queries, np.float32(eps), bits(parts)
    share_rows(_head_norm_backward, len(qkv), *arrays)
    return grad, parts.sum(0)


def measure(logits: Tensor, targets: Tensor, temperature: float, out: Tensor) -> None:
    """Write log-probabilities, entropies and logarithms of the sums of exponentials.

    Args:
        logits: ``[n, vocabulary]``.
        targets: ``[n]``.
        temperature: Divides the logits.
        out: float32 ``[3, n]``.
    """
    tops = logits.amax(-1).float()
    heat = np.float32(1 / temperature)
    arrays = (bits(t) for t in (logits, tops, targets))
    share_rows(_measure, len(targets), *arrays, heat, bits(out))


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
    of_logprobs, of_entropies = grads
    of_entropies = torch.zeros_like(of_logprobs) if of_entropies is None else of_entropies
    both = of_logprobs.contiguous(), of_entropies.contiguous()
    arrays = (bits(t) for t in (logits, targets, *found, *both))
    share_rows(_slopes, len(targets), *arrays, np.float32(1 / temperature))
