"""Loops of a decode step on a CPU, compiled by numba: one call where torch needs twenty.

A small model's step is bound by the number of operations and by what each of them writes down for
the next. These kernels hold a head's scores, or a row's probabilities, in the processor's cache
from beginning to end. They run on one thread and are for few of them.

Arrays are float32 or the bits of bfloat16 in uint16 (numpy has no such format); arithmetic is
float32 throughout. The cache holds blocks of positions, ``[2, rows, heads, blocks, BLOCK * dim]``:
one block after the other in memory, and in a block the keys as ``[dim, BLOCK]``, over whose last
axis a loop makes scores, the values as ``[BLOCK, dim]``, over whose last axis a loop adds them up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...models.loops.parts import (
    LOWEST,
    compiled,
    exp_of_negative,
    highest,
    narrow,
    part,
    widen,
)
from ..sampling import BELOW_ONE

BLOCK = 64
"""Positions that lie together in the cache."""
TOGETHER = 3
"""Query heads of one key head that attention takes at once: each key is then widened once."""
WIDE = 64
"""Sums that a vocabulary's masses are added up to side by side."""
AT_ONCE = 32
"""Masses that are passed over together where a number lies beyond all of them."""
_BELOW_ONE = np.float32(BELOW_ONE)


@compiled
def add_unit(hidden: Any, delta: Any, floor: Any, out: Any) -> None:
    """``hidden += delta``, then ``out = hidden / hypot(|hidden|, floor)``, row by row.

    Args:
        hidden: float32 ``[rows, width]``, changed in place.
        delta: ``[rows, width]``, or no rows for nothing.
        floor: ``sqrt(width * eps)`` of the norm.
        out: ``[rows, width]``.
    """
    width = hidden.shape[1]
    for r in range(hidden.shape[0]):
        if delta.shape[0]:
            for i in range(width):
                hidden[r, i] += widen(delta[r, i])
        total = floor * floor
        for i in range(width):
            total += hidden[r, i] * hidden[r, i]
        scale = np.float32(1) / np.sqrt(total)
        for i in range(width):
            out[r, i] = narrow(hidden[r, i] * scale, out[r, i])


@compiled
def add_normed_unit(hidden: Any, delta: Any, weight: Any, eps: Any, floor: Any, out: Any) -> None:
    """As :func:`add_unit`, of ``weight * delta / sqrt(mean(delta^2) + eps)``.

    Args:
        hidden: float32 ``[rows, width]``, changed in place.
        delta: ``[rows, width]``.
        weight: float32 ``[width]``.
        eps: Of the norm of ``delta``.
        floor: ``sqrt(width * eps)`` of the norm of ``hidden``.
        out: ``[rows, width]``.
    """
    width = hidden.shape[1]
    for r in range(hidden.shape[0]):
        square = np.float32(0)
        for i in range(width):
            square += widen(delta[r, i]) * widen(delta[r, i])
        share = np.float32(1) / np.sqrt(square / np.float32(width) + eps)
        total = floor * floor
        for i in range(width):
            hidden[r, i] += widen(delta[r, i]) * share * weight[i]
            total += hidden[r, i] * hidden[r, i]
        scale = np.float32(1) / np.sqrt(total)
        for i in range(width):
            out[r, i] = narrow(hidden[r, i] * scale, out[r, i])


@compiled
def sample(logits: Any, settings: Any, columns: int, tokens: Any, measures: Any) -> None:
    """Draw a token per row as :func:`~turngym.agents.engines.sampling.draw` does.

    Args:
        logits: float32 ``[rows, vocabulary]``.
        settings: float32 ``[2, rows]``: temperatures, uniform numbers in [0, 1).
        columns: Of the vocabulary as a table, a divisor of it and of :data:`WIDE`.
        tokens: int64 ``[rows]``, written.
        measures: float32 ``[2, rows]``, written: log-probabilities, entropies.
    """
    heat, uniform = settings
    size = logits.shape[1]
    lines, whole = size // columns, size // WIDE * WIDE
    mass = np.empty(size, np.float32)
    parts = np.empty(WIDE, np.float32)
    sums = np.empty(columns, np.float32)
    for r in range(logits.shape[0]):
        row = logits[r]
        inverse = np.float32(1) if heat[r] == 0 else np.float32(1) / heat[r]
        top = highest(row, size)
        total, expected = np.float32(0), np.float32(0)
        for i in range(size):
            x = (row[i] - top) * inverse
            e = exp_of_negative(x)
            mass[i] = e
            total += e
            expected += e * (x if x > LOWEST else LOWEST)
        log_total = np.log(total)
        measures[1, r] = max(log_total - expected / total, np.float32(0))
        if heat[r] == 0:
            token = 0
            while token < size - 1 and row[token] != top:
                token += 1
        else:
            parts[:] = 0
            for first in range(0, whole, WIDE):
                for c in range(WIDE):
                    parts[c] += mass[first + c]
            for i in range(whole, size):
                parts[i - whole] += mass[i]
            sums[:] = 0
            for c in range(WIDE):
                sums[c % columns] += parts[c]
            column, rest = _first_above(sums, 0, 1, columns, uniform[r])
            line, _ = _first_above(mass, column, columns, lines, rest)
            token = line * columns + column
        tokens[r] = token
        measures[0, r] = (row[token] - top) * inverse - log_total


@part
def _first_above(masses: Any, start: int, step: int, n: int, u: Any) -> Any:
    """The first of ``n`` masses, ``step`` apart, at which their sum so far exceeds ``u`` of all."""
    total = np.float32(0)
    for i in range(n):
        total += masses[start + i * step]
    goal = u * total
    above, index = np.float32(0), 0
    while index + AT_ONCE < n:
        some = np.float32(0)
        for i in range(index, index + AT_ONCE):
            some += masses[start + i * step]
        if above + some > goal:
            break
        above += some
        index += AT_ONCE
    above += masses[start + index * step]
    while index < n - 1 and not above > goal:
        index += 1
        above += masses[start + index * step]
    while index > 0 and masses[start + index * step] == 0:  # u of all was rounded up to all
        index -= 1
    mass = masses[start + index * step]
    rest = (goal - above + mass) / mass
    return index, min(max(rest, np.float32(0)), _BELOW_ONE)


@dataclass(frozen=True, slots=True)
class HeadKernels:
    """What is compiled for one size of head."""

    enter: Callable[..., None]
    look: Callable[..., None]
    look_together: Callable[..., None]
    look_back: Callable[..., None]
    fetch: Callable[..., None]
    repeat: Callable[..., None]


@lru_cache
def head_kernels(dim: int, eps: float) -> HeadKernels:
    """Compiled for heads of ``dim`` numbers, a multiple of 4: fixed lengths unroll.

    Args:
        dim: Size of a head.
        eps: Of the norms of queries and keys.
    """
    looks = _make_look(dim), _make_look_together(dim), _make_look_back(dim)
    return HeadKernels(_make_enter(dim, eps), *looks, _make_fetch(dim), _make_repeat(dim))


@part
def _copy(line: Any, first: int, out: Any, at: int, dim: int) -> None:
    for d in range(dim):
        out[at + d] = narrow(widen(line[first + d]), out[0])


@part
def _narrow(x: Any, out: Any, first: int, apart: int, dim: int) -> None:
    """Write numbers ``apart`` from each other; inlined, ``apart`` is known when it is compiled."""
    for d in range(dim):
        out[first + d * apart] = narrow(x[d], out[0])


@part
def _norm_heads(x: Any, norms: Any, queries: int, eps: Any, share: Any, dim: int) -> None:
    """Norm the heads of ``x`` ``[heads, dim]``; ``share`` ``[heads]`` is overwritten.

    One kind of work after the other: a head's root and quotient need not wait for its sum.
    """
    for h in range(len(x)):
        total = np.float32(0)
        for d in range(dim):
            total += x[h, d] * x[h, d]
        share[h] = total
    for h in range(len(x)):
        share[h] = np.float32(1) / np.sqrt(share[h] * np.float32(1 / dim) + eps)
    for h in range(len(x)):
        line, weight, factor = x[h], norms[0 if h < queries else 1], share[h]
        for d in range(dim):
            line[d] *= factor * weight[d]


@part
def _turn(x: Any, cos: Any, sin: Any, out: Any, dim: int) -> None:
    """Turn the pairs of a head ``[dim]``; ``cos`` and ``sin`` are of pairs, ``[dim]``."""
    for i in range(0, dim, 2):
        out[i] = x[i] * cos[i] - x[i + 1] * sin[i]
        out[i + 1] = x[i + 1] * cos[i] + x[i] * sin[i]


def _make_enter(dim: int, epsilon: float) -> Callable[..., None]:
    eps = np.float32(epsilon)

    @compiled
    def enter(qkv: Any, turns: Any, slots: Any, norms: Any, cache: Any, q: Any) -> None:
        """Norm and turn queries and keys, put keys and values into the cache.

        Args:
            qkv: ``[tokens, (heads of q + 2 heads) * dim]``; pairs turn together.
            turns: float32 ``[positions, dim / 2, 2]``, cosine and sine.
            slots: int64 ``[2, tokens]``: rows in the cache, positions.
            norms: float32 ``[2, dim]``, weights for queries and keys, or ``[2, 0]``.
            cache: One layer.
            q: ``[tokens, heads of q, dim]``, written.
        """
        heads, queries = cache.shape[2], q.shape[1]
        turning = queries + heads
        x = np.empty((turning, dim), np.float32)
        share = np.empty(turning, np.float32)
        cos, sin, turned = np.empty((3, dim), np.float32)
        for t in range(qkv.shape[0]):
            row, at, line = slots[0, t], slots[1, t], qkv[t]
            block, inside = at // BLOCK, at % BLOCK
            for h in range(turning):
                _copy(line, h * dim, x[h], 0, dim)
            if norms.shape[1]:
                _norm_heads(x, norms, queries, eps, share, dim)
            for i in range(dim // 2):
                cos[2 * i], sin[2 * i] = turns[at, i, 0], turns[at, i, 1]
            for h in range(turning):
                _turn(x[h], cos, sin, turned, dim)
                if h < queries:
                    _narrow(turned, q[t, h], 0, 1, dim)
                else:
                    _narrow(turned, cache[0, row, h - queries, block], inside, BLOCK, dim)
            for h in range(heads):
                _copy(line, (turning + h) * dim, cache[1, row, h, block], inside * dim, dim)

    return enter


def _make_look(dim: int) -> Callable[..., None]:
    @compiled
    def look(q: Any, cache: Any, slots: Any, scale: Any, out: Any) -> None:
        """Attention of one query per row over its own and all earlier positions.

        Args:
            q: ``[rows, heads of q, dim]``.
            cache: One layer.
            slots: int64 ``[2, rows]``: rows in the cache, positions of the queries.
            scale: float32, of the scores.
            out: ``[rows, heads of q * dim]``, written.
        """
        group = q.shape[1] // cache.shape[2]
        score = np.empty((TOGETHER, cache.shape[3] * BLOCK), np.float32)
        seen = np.empty((TOGETHER, dim), np.float32)
        share = np.empty(TOGETHER, np.float32)
        widens = cache.itemsize == 2
        for r in range(q.shape[0]):
            row, n = slots[0, r], slots[1, r] + 1
            blocks = (n + BLOCK - 1) // BLOCK
            head = 0
            while head < q.shape[1]:
                keys, values = cache[0, row, head // group], cache[1, row, head // group]
                count = TOGETHER if widens and group - head % group >= TOGETHER else 1
                _score_blocks(q[r, head:], scale, keys[:blocks], score, 0, count, dim)
                for i in range(count):
                    share[i] = np.float32(1) / _softmax(score[i], n, blocks * BLOCK)
                seen[:] = 0
                _add_up_blocks(score, 0, values[:blocks], seen, count, dim)
                for i in range(count):
                    for d in range(dim):
                        place = (head + i) * dim + d
                        out[r, place] = narrow(seen[i, d] * share[i], out[r, place])
                head += count

    return look


def _make_look_together(dim: int) -> Callable[..., None]:  # noqa: C901 - one loop nest
    @compiled
    def look_together(  # noqa: PLR0913 - one loop nest over arrays
        q: Any,
        cache: Any,
        slots: Any,
        order: Any,
        depth: Any,
        source: Any,
        scale: Any,
        out: Any,
    ) -> None:
        """As ``look``, a block that rows have in common read once for all of them.

        Equal to the bit where rows hold the same numbers for it, copied from one another; where
        each came from a pass of its own, they differ by the rounding of those passes. Holds every
        row's scores at once, ``look`` one row's, which small models' caches prefer.

        Args:
            q: ``[rows, heads of q, dim]``.
            cache: One layer.
            slots: int64 ``[2, rows]``: rows in the cache, positions of the queries.
            order: int64 ``[rows]``, see :class:`~.shared_blocks.SharedBlocks`.
            depth: int64 ``[rows]``.
            source: int64 ``[rows, blocks]``.
            scale: float32, of the scores.
            out: ``[rows, heads of q * dim]``, written.
        """
        rows, group = q.shape[0], q.shape[1] // cache.shape[2]
        longest = (slots[1].max() // BLOCK + 1) * BLOCK
        score = np.empty((rows, TOGETHER, longest), np.float32)
        seen = np.empty((rows, TOGETHER, dim), np.float32)
        share = np.empty((rows, TOGETHER), np.float32)
        widens = cache.itemsize == 2
        head = 0
        while head < q.shape[1]:
            mine = head // group
            count = TOGETHER if widens and group - head % group >= TOGETHER else 1
            for b, i in np.ndindex(source.shape[1], rows):
                if b < depth[i]:
                    r, block = order[i], cache[0, source[i, b], mine][b : b + 1]
                    _score_blocks(q[r, head:], scale, block, score[r], b, count, dim)
            for i in range(rows):
                r, known = order[i], depth[i]
                n, blocks = slots[1, r] + 1, slots[1, r] // BLOCK + 1
                own = cache[0, slots[0, r], mine][known:blocks]
                _score_blocks(q[r, head:], scale, own, score[r], known, count, dim)
                for k in range(count):
                    share[r, k] = np.float32(1) / _softmax(score[r, k], n, blocks * BLOCK)
            seen[:] = 0
            for b, i in np.ndindex(source.shape[1], rows):
                if b < depth[i]:
                    r, block = order[i], cache[1, source[i, b], mine][b : b + 1]
                    _add_up_blocks(score[r], b, block, seen[r], count, dim)
            for i in range(rows):
                r, known = order[i], depth[i]
                own = cache[1, slots[0, r], mine][known : slots[1, r] // BLOCK + 1]
                _add_up_blocks(score[r], known, own, seen[r], count, dim)
                for k, d in np.ndindex(count, dim):
                    place = (head + k) * dim + d
                    out[r, place] = narrow(seen[r, k, d] * share[r, k], out[r, place])
            head += count

    return look_together


def _make_look_back(dim: int) -> Callable[..., None]:
    @compiled
    def look_back(q: Any, cache: Any, slots: Any, scale: Any, window: int, out: Any) -> None:
        """As ``look``, over the last ``window`` positions alone, blocks before them untouched."""
        group = q.shape[1] // cache.shape[2]
        score = np.empty(window + 2 * BLOCK, np.float32)
        seen = np.empty(dim, np.float32)
        for r in range(q.shape[0]):
            row, n = slots[0, r], slots[1, r] + 1
            start, stop = max(0, n - window) // BLOCK, (n + BLOCK - 1) // BLOCK
            before, width = max(0, n - window) - start * BLOCK, (stop - start) * BLOCK
            for head in range(q.shape[1]):
                keys, values = cache[0, row, head // group], cache[1, row, head // group]
                for b in range(stop - start):
                    _scores(q[r, head], scale, keys[start + b], score[b * BLOCK :], dim)
                score[:before] = 0
                near = score[before:]
                used = n - start * BLOCK - before
                share = np.float32(1) / _softmax(near, used, width - before)
                seen[:] = 0
                for b in range(stop - start):
                    _add_up(score[b * BLOCK :], values[start + b], seen, dim)
                for d in range(dim):
                    out[r, head * dim + d] = narrow(seen[d] * share, out[r, head * dim + d])

    return look_back


@part
def _scores(q: Any, scale: Any, keys: Any, score: Any, dim: int) -> None:
    """Products of a query with the keys of a block, ``[BLOCK]``."""
    for t in range(BLOCK):
        score[t] = 0
    for d in range(0, dim, 4):
        a = widen(q[d]) * scale
        b = widen(q[d + 1]) * scale
        c = widen(q[d + 2]) * scale
        e = widen(q[d + 3]) * scale
        for t in range(BLOCK):
            score[t] += (
                a * widen(keys[d * BLOCK + t])
                + b * widen(keys[(d + 1) * BLOCK + t])
                + c * widen(keys[(d + 2) * BLOCK + t])
                + e * widen(keys[(d + 3) * BLOCK + t])
            )


@part
def _add_up(share: Any, values: Any, seen: Any, dim: int) -> None:
    """Add the values of a block, each times its share, to ``seen`` ``[dim]``."""
    for t in range(0, BLOCK, 4):
        a, b, c, e = share[t], share[t + 1], share[t + 2], share[t + 3]
        for d in range(dim):
            seen[d] += (
                a * widen(values[t * dim + d])
                + b * widen(values[(t + 1) * dim + d])
                + c * widen(values[(t + 2) * dim + d])
                + e * widen(values[(t + 3) * dim + d])
            )


@part
def _score_blocks(  # noqa: PLR0913 - arrays of a loop
    q: Any, scale: Any, keys: Any, score: Any, first: int, count: int, dim: int
) -> None:
    """Products of ``count`` queries, 1 or 3, with all keys of some blocks, ``first`` the first."""
    one, two, three = score[0], score[1], score[2]
    for block in range(len(keys)):
        at = (first + block) * BLOCK
        if count == 1:
            _scores(q[0], scale, keys[block], one[at:], dim)
        else:
            _scores_of_three(q, scale, keys[block], one[at:], two[at:], three[at:], dim)


@part
def _add_up_blocks(share: Any, first: int, values: Any, seen: Any, count: int, dim: int) -> None:
    """Add the values of some blocks, from ``first`` on, for 1 or 3 queries to ``seen``."""
    one, two, three = share[0], share[1], share[2]
    one_seen = seen[0]
    for block in range(len(values)):
        at = (first + block) * BLOCK
        if count == 1:
            _add_up(one[at:], values[block], one_seen, dim)
        else:
            _add_up_for_three(one[at:], two[at:], three[at:], values[block], seen, dim)


@part
def _scores_of_three(  # noqa: PLR0913 - arrays of a loop
    q: Any, scale: Any, keys: Any, one: Any, two: Any, three: Any, dim: int
) -> None:
    """Products of three queries ``[3, dim]`` with the keys of a block, ``[BLOCK]`` each."""
    for t in range(BLOCK):
        one[t] = 0
        two[t] = 0
        three[t] = 0
    for d in range(0, dim, 4):
        a, b = widen(q[0, d]) * scale, widen(q[0, d + 1]) * scale
        c, e = widen(q[0, d + 2]) * scale, widen(q[0, d + 3]) * scale
        f, g = widen(q[1, d]) * scale, widen(q[1, d + 1]) * scale
        h, i = widen(q[1, d + 2]) * scale, widen(q[1, d + 3]) * scale
        j, k = widen(q[2, d]) * scale, widen(q[2, d + 1]) * scale
        m, n = widen(q[2, d + 2]) * scale, widen(q[2, d + 3]) * scale
        for t in range(BLOCK):
            u, v = widen(keys[d * BLOCK + t]), widen(keys[(d + 1) * BLOCK + t])
            w, x = widen(keys[(d + 2) * BLOCK + t]), widen(keys[(d + 3) * BLOCK + t])
            one[t] += a * u + b * v + c * w + e * x
            two[t] += f * u + g * v + h * w + i * x
            three[t] += j * u + k * v + m * w + n * x


@part
def _add_up_for_three(one: Any, two: Any, three: Any, values: Any, seen: Any, dim: int) -> None:
    """Add the values of a block to ``seen`` ``[3, dim]``, each times its share ``[BLOCK]``."""
    for t in range(0, BLOCK, 4):
        a, b, c, e = one[t], one[t + 1], one[t + 2], one[t + 3]
        f, g, h, i = two[t], two[t + 1], two[t + 2], two[t + 3]
        j, k, m, n = three[t], three[t + 1], three[t + 2], three[t + 3]
        for d in range(dim):
            u, v = widen(values[t * dim + d]), widen(values[(t + 1) * dim + d])
            w, x = widen(values[(t + 2) * dim + d]), widen(values[(t + 3) * dim + d])
            seen[0, d] += a * u + b * v + c * w + e * x
            seen[1, d] += f * u + g * v + h * w + i * x
            seen[2, d] += j * u + k * v + m * w + n * x


@part
def _softmax(score: Any, n: int, padded: int) -> Any:
    """Exponentials of the first ``n`` scores in place, 0 behind them; returns their sum."""
    top = highest(score, n)
    total = np.float32(0)
    for t in range(padded):
        score[t] = exp_of_negative(score[t] - top) if t < n else np.float32(0)
        total += score[t]
    return total


def _make_fetch(dim: int) -> Callable[..., None]:
    @compiled
    def fetch(cache: Any, rows: Any, first: int, out: Any) -> None:
        """Copy rows of one layer's cache.

        Args:
            cache: One layer.
            rows: int64 ``[n]``.
            first: First position that is copied.
            out: ``[2, n, heads, end - first, dim]``, written.
        """
        for which in range(2):
            for i in range(out.shape[1]):
                for head in range(out.shape[2]):
                    source, target = cache[which, rows[i], head], out[which, i, head]
                    for t in range(target.shape[0]):
                        block, at = source[(first + t) // BLOCK], (first + t) % BLOCK
                        for d in range(dim):
                            place = at * dim + d if which else d * BLOCK + at
                            target[t, d] = block[place]

    return fetch


def _make_repeat(dim: int) -> Callable[..., None]:
    @compiled
    def repeat(cache: Any, places: Any) -> None:
        """Copy a position of some rows to others, where they are not the same.

        Args:
            cache: All layers.
            places: int64 ``[3, rows]``: from which row, to which, and the position in both.
        """
        for layer in range(cache.shape[0]):
            keys, values = cache[layer, 0], cache[layer, 1]
            for i in range(places.shape[1]):
                source, row, at = places[0, i], places[1, i], places[2, i]
                if source == row:
                    continue
                block, inside = at // BLOCK, at % BLOCK
                for head in range(cache.shape[3]):
                    key, value = keys[source, head, block], values[source, head, block]
                    new_key, new_value = keys[row, head, block], values[row, head, block]
                    for d in range(dim):
                        new_key[d * BLOCK + inside] = key[d * BLOCK + inside]
                        new_value[inside * dim + d] = value[inside * dim + d]

    return repeat
