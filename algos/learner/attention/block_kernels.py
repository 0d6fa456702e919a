"""Attention over a pack as compiled loops, for the short contexts of small models on a CPU.

A block of some dozen tokens is computed in less time than torch takes to call its thirty products.
Scores of a query stay in the processor's cache: nothing is kept for the backward pass, which makes
them again, and nothing is padded, masked or copied for heads that share keys. The same relation as
:mod:`.block_attention`, which is the reference that the loops are held to; arithmetic is float32
whatever the tensors are, sums are taken in the same order with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....agents.models.loops.parts import (
    bits,
    compiled,
    exp_of_negative,
    highest,
    narrow,
    part,
    subroutine,
    widen,
)
from ....agents.models.loops.row_threads import share_rows
from .packing import FlatBlocks

TILE = 32
"""Keys that a loop takes at a time: loops of a length that is known when they are compiled have no
rest, and are long enough for what has to be asked before each (whether arrays overlap)."""
QUERIES = 32
"""Queries of a span whose weights a backward pass has in memory at a time."""
HIDDEN = np.float32(-3e38)
"""Score of a key that is not seen."""


@subroutine
def _turn_over(row: Any, at: int, lines: Any) -> None:
    """Write a row to column ``at`` of ``lines``, ``[width, tiles, TILE]``."""
    tile, place = at // TILE, at % TILE
    for d in range(len(row)):
        lines[d, tile, place] = widen(row[d])


@subroutine
def _copy(row: Any, factor: Any, out: Any, n: int) -> None:
    for d in range(n):
        out[d] = widen(row[d]) * factor


@part
def _scores(row: Any, lines: Any, tiles: int, out: Any) -> None:
    """``out[j] = row . lines[:, j]`` for the keys of the first ``tiles``, ``[tiles, TILE]``."""
    for tile in range(tiles):
        some = out[tile]
        for i in range(TILE):
            some[i] = np.float32(0)
        for d in range(0, len(row), 4):
            a, b, c, e = row[d], row[d + 1], row[d + 2], row[d + 3]
            one, two, three, four = (
                lines[d, tile],
                lines[d + 1, tile],
                lines[d + 2, tile],
                lines[d + 3, tile],
            )
            for i in range(TILE):
                some[i] += a * one[i] + b * two[i] + c * three[i] + e * four[i]


@part
def _add_up(shares: Any, rows: Any, start: int, stop: int, out: Any, n: int) -> None:
    """``out += sum of shares[k] * rows[k]`` for k from ``start`` up to ``stop``, ``[n]``."""
    k = start
    while k + 4 <= stop:
        a, b, c, e = shares[k], shares[k + 1], shares[k + 2], shares[k + 3]
        one, two, three, four = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for d in range(n):
            out[d] += a * one[d] + b * two[d] + c * three[d] + e * four[d]
        k += 4
    while k < stop:
        a, one = shares[k], rows[k]
        for d in range(n):
            out[d] += a * one[d]
        k += 1


@part
def _weigh(scores: Any, start: int, stop: int, tiles: int) -> Any:
    """Make exponentials of the scores from ``start`` to ``stop``, in their place, 0 elsewhere.

    Returns:
        One over their sum.
    """
    flat = scores.reshape(-1)
    flat[:start] = HIDDEN
    flat[stop : tiles * TILE] = HIDDEN
    top = highest(flat, tiles * TILE)
    total = np.float32(0)
    for tile in range(tiles):
        some = scores[tile]
        for i in range(TILE):
            e = exp_of_negative(some[i] - top)
            some[i] = e
            total += e
    return np.float32(1) / total


@part
def _change(scores: Any, share: Any, changes: Any, tiles: int) -> None:
    """Make weights of exponentials, and from the gradient of weights that of the scores."""
    weights, slopes = scores.reshape(-1), changes.reshape(-1)
    mean = np.float32(0)
    for j in range(tiles * TILE):
        mean += weights[j] * slopes[j]
    mean *= share
    for j in range(tiles * TILE):
        weights[j] *= share
        slopes[j] = weights[j] * (slopes[j] - mean)


@subroutine
def _read_context(x: Any, ranges: Any, lines: Any) -> None:
    """Write the rows of some ranges of tokens to the first columns of ``lines``."""
    p = 0
    for r in range(len(ranges)):
        for t in range(ranges[r, 0], ranges[r, 1]):
            _turn_over(x[t], p, lines)
            p += 1


@subroutine
def _copy_context(x: Any, ranges: Any, out: Any, n: int) -> int:
    """Copy the rows of some ranges of tokens; return how many there are."""
    p = 0
    for r in range(len(ranges)):
        for t in range(ranges[r, 0], ranges[r, 1]):
            _copy(x[t], np.float32(1), out[p], n)
            p += 1
    return p


@subroutine
def _read_span(x: Any, begin: int, count: int, p: int, lines: Any) -> None:
    """Write the rows of a span to the columns of ``lines`` from ``p`` on."""
    for i in range(count):
        _turn_over(x[begin + i], p + i, lines)


@subroutine
def _copy_span(x: Any, begin: int, count: int, p: int, out: Any, n: int) -> None:
    for i in range(count):
        _copy(x[begin + i], np.float32(1), out[p + i], n)


@subroutine
def _add_rows(sums: Any, ranges: Any, out: Any, n: int) -> None:
    """Add what was summed up for the tokens of some ranges to their rows."""
    at = 0
    for r in range(len(ranges)):
        for t in range(ranges[r, 0], ranges[r, 1]):
            for d in range(n):
                out[t, d] += sums[at, d]
            at += 1


@part
def _look(  # noqa: PLR0913 - arrays of a loop
    row: Any, keys: Any, values: Any, scores: Any, start: int, stop: int, seen: Any, n: int
) -> Any:
    """Write what a query sees, times the sum of its weights; return one over that."""
    tiles = (stop + TILE - 1) // TILE
    _scores(row, keys, tiles, scores)
    share = _weigh(scores, start, stop, tiles)
    seen[:] = 0
    _add_up(scores.reshape(-1), values, start, stop, seen, n)
    return share


@dataclass(frozen=True, slots=True)
class AttentionKernels:
    """What is compiled for one width of heads."""

    forward: Callable[..., None]
    backward: Callable[..., None]


@lru_cache
def attention_kernels(width: int) -> AttentionKernels:
    """Compiled for heads of ``width`` numbers, a multiple of 4: fixed lengths unroll."""
    return AttentionKernels(_make_forward(width), _make_backward(width))


def _make_forward(width: int) -> Callable[..., None]:
    @compiled
    def forward(  # noqa: PLR0913 - one loop nest over arrays
        head: int,
        last: int,
        inputs: Any,
        scale: Any,
        flat: Any,
        limits: tuple[int, int],
        wanted: Any,
        out: Any,
    ) -> None:
        """Fill what the queries of the key heads from ``head`` up to ``last`` see."""
        q, k, v = inputs
        bounds, ranges, spans = flat
        longest, window = limits
        group, most = q.shape[2] // width, (longest + TILE - 1) // TILE
        keys = np.zeros((width, most, TILE), np.float32)
        values = np.zeros((most * TILE, width), np.float32)
        scores = np.zeros((most, TILE), np.float32)
        row, seen = np.zeros(width, np.float32), np.zeros(width, np.float32)
        while head < last:
            for block in range(len(bounds)):
                context = ranges[bounds[block, 0] : bounds[block, 1]]
                _read_context(k[head], context, keys)
                p = _copy_context(v[head], context, values, width)
                for s in range(bounds[block, 2], bounds[block, 3]):
                    begin, count = spans[s]
                    _read_span(k[head], begin, count, p, keys)
                    _copy_span(v[head], begin, count, p, values, width)
                    for i in range(count):
                        if not wanted[begin + i]:
                            out[begin + i, head, :] = 0
                            continue
                        stop = p + i + 1
                        start = max(0, stop - window)
                        for member in range(group):
                            _copy(q[head, begin + i, member * width :], scale, row, width)
                            share = _look(row, keys, values, scores, start, stop, seen, width)
                            target = out[begin + i, head, member * width :]
                            for d in range(width):
                                target[d] = narrow(seen[d] * share, target[d])
            head += 1

    return forward


def _make_backward(width: int) -> Callable[..., None]:  # noqa: C901, PLR0915 - one loop nest
    @compiled
    def backward(  # noqa: PLR0913, PLR0915 - one loop nest over arrays
        head: int,
        last: int,
        inputs: Any,
        grad: Any,
        scale: Any,
        flat: Any,
        limits: tuple[int, int],
        wanted: Any,
        grads: Any,
    ) -> None:
        """Write the gradients of queries, and add those of keys and values, float32."""
        q, k, v = inputs
        of_q, of_k, of_v = grads
        bounds, ranges, spans = flat
        longest, window = limits
        group, most = q.shape[2] // width, (longest + TILE - 1) // TILE
        keys = np.zeros((width, most, TILE), np.float32)
        values = np.zeros((width, most, TILE), np.float32)
        rows = np.zeros((most * TILE, width), np.float32)
        sums_k = np.zeros((most * TILE, width), np.float32)
        sums_v = np.zeros((most * TILE, width), np.float32)
        scores, changes = np.zeros((most, TILE), np.float32), np.zeros((most, TILE), np.float32)
        asked = np.zeros((QUERIES * group, width), np.float32)
        towards = np.zeros((QUERIES * group, width), np.float32)
        of_keys = np.zeros((most * TILE, QUERIES * group), np.float32)
        of_values = np.zeros((most * TILE, QUERIES * group), np.float32)
        own, mine = np.zeros((1, 2), np.int64), np.zeros(width, np.float32)
        while head < last:
            for block in range(len(bounds)):
                context = ranges[bounds[block, 0] : bounds[block, 1]]
                _read_context(k[head], context, keys)
                _read_context(v[head], context, values)
                p = _copy_context(k[head], context, rows, width)
                sums_k[:p] = 0
                sums_v[:p] = 0
                for s in range(bounds[block, 2], bounds[block, 3]):
                    begin, count = spans[s]
                    _read_span(k[head], begin, count, p, keys)
                    _read_span(v[head], begin, count, p, values)
                    _copy_span(k[head], begin, count, p, rows, width)
                    sums_k[p : p + count] = 0
                    sums_v[p : p + count] = 0
                    for first in range(0, count, QUERIES):
                        some = min(QUERIES, count - first)
                        for n in range(some * group):
                            at, member = begin + first + n // group, n % group * width
                            stop = p + first + n // group + 1
                            start, tiles = max(0, stop - window), (stop + TILE - 1) // TILE
                            if not wanted[at]:
                                of_q[head, at, member : member + width] = 0
                                of_values[: tiles * TILE, n] = 0
                                of_keys[: tiles * TILE, n] = 0
                                continue
                            _copy(q[head, at, member:], scale, asked[n], width)
                            _copy(grad[head, at, member:], np.float32(1), towards[n], width)
                            _scores(asked[n], keys, tiles, scores)
                            share = _weigh(scores, start, stop, tiles)
                            _scores(towards[n], values, tiles, changes)
                            _change(scores, share, changes, tiles)
                            weights, slopes = scores.reshape(-1), changes.reshape(-1)
                            for j in range(tiles * TILE):
                                of_values[j, n] = weights[j]
                                of_keys[j, n] = slopes[j]
                            mine[:] = 0
                            _add_up(slopes, rows, start, stop, mine, width)
                            target = of_q[head, at, member:]
                            for d in range(width):
                                target[d] = narrow(mine[d] * scale, target[d])
                        for j in range(p + first + some):
                            # queries before a key do not see it
                            n = max(0, j - p - first) * group
                            _add_up(of_values[j], towards, n, some * group, sums_v[j], width)
                            _add_up(of_keys[j], asked, n, some * group, sums_k[j], width)
                    own[0, 0], own[0, 1] = begin, begin + count
                    _add_rows(sums_k[p:], own, of_k[head], width)
                    _add_rows(sums_v[p:], own, of_v[head], width)
                _add_rows(sums_k, context, of_k[head], width)
                _add_rows(sums_v, context, of_v[head], width)
            head += 1

    return backward


def attend(
    q: Tensor, k: Tensor, v: Tensor, flat: FlatBlocks, wanted: npt.NDArray[np.bool_], scale: float
) -> Tensor:
    """Return what every token sees, ``[key heads, tokens, group * width]``, tokens outermost.

    Args:
        q: Queries; those of the heads that share a key head side by side
            ``[key heads, tokens, group * width]``.
        k: Keys ``[key heads, tokens, width]``.
        v: Values, the same.
        flat: What sees what; a token in no span sees nothing, and lies behind all that are in one.
        wanted: Whose results are read ``[tokens]``; the others' are 0.
        scale: Multiplies the scores.
    """
    out = torch.empty(q.shape[1], len(q), q.shape[2], dtype=q.dtype)
    out[flat.tokens :] = 0
    kernel = attention_kernels(k.shape[2]).forward
    inputs, tables = (bits(q), bits(k), bits(v)), (flat.bounds, flat.ranges, flat.spans)
    more = (np.float32(scale), tables, (flat.longest, flat.window), wanted, bits(out))
    share_rows(kernel, len(k), inputs, *more, piece=1)
    return out.transpose(0, 1)


def attend_backward(
    grad: Tensor,
    inputs: tuple[Tensor, Tensor, Tensor],
    flat: FlatBlocks,
    wanted: npt.NDArray[np.bool_],
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values of :func:`attend`.

    Args:
        grad: Of the output, in its shape; where it is not wanted it is not read.
        inputs: Queries, keys and values as given to :func:`attend`.
        flat: The same.
        wanted: The same.
        scale: The same.

    Returns:
        Queries' in their number format; keys' and values' in float32: they are sums over many.
    """
    q, k, v = inputs
    of_q = torch.empty_like(q)
    of_q[:, flat.tokens :] = 0
    of_k, of_v = torch.zeros(k.shape), torch.zeros(k.shape)
    kernel = attention_kernels(k.shape[2]).backward
    arrays, tables = (bits(q), bits(k), bits(v)), (flat.bounds, flat.ranges, flat.spans)
    more = (np.float32(scale), tables, (flat.longest, flat.window), wanted)
    grads = (bits(of_q), bits(of_k), bits(of_v))
    share_rows(kernel, len(k), arrays, bits(grad), *more, grads, piece=1)
    return of_q, of_k, of_v
