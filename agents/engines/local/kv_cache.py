"""The key-value cache: rows that grow at the end, shared by all turns that have a common past.

A row holds the keys and values of one token sequence, position after position without gaps. A
handle is a row and a length: the first tokens of a row stay what they are however far the row
grows, so a chain of turns never copies anything, and only a second branch copies a row's prefix.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import torch

from ....envs.core.errors import EpisodeError

Ids = npt.NDArray[np.int64]
_GRAIN = 64
_AMPLE = 512
"""Positions that rows begin with on a CPU, where memory is taken only when it is written."""
_LARGE_TOKEN = 1 << 13
"""Bytes of a token from which contexts fill large pages of memory: those of some ten million
weights. Of a smaller model's cache a tenth is ever written, a little in each large page."""
_GROWTH = 4
"""How many times as long as the first prompts the first layout of a pool that plans is."""


@dataclass(slots=True, eq=False)
class Row:
    """One sequence in the pool.

    Attributes:
        index: Its place in the pool's arrays; changes when the pool is rebuilt or compacted.
        busy: A request is being sampled in it.
        handles: Length that each live handle stands for.
        used: When it was last used, for eviction.
    """

    index: int
    busy: bool = False
    handles: dict[int, int] = field(default_factory=dict)
    used: int = 0


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What one token costs: ``[layers, 2, heads, head_dim]`` numbers of ``dtype``.

    Attributes:
        block: Positions that lie together, in an order that is the decoder's own.
        grain: Positions are added in such steps, so that growing is rare; a multiple of ``block``.
    """

    layers: int
    heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device
    block: int = 1
    grain: int = _GRAIN

    @property
    def bytes_per_token(self) -> int:
        """Keys and values of all layers."""
        return self.layers * 2 * self.heads * self.head_dim * self.dtype.itemsize


class KvPool:
    """Rows of keys and values under a budget; the longest unused row is evicted first.

    Attributes:
        data: ``[layers, 2, rows, heads, positions / block, block * head_dim]``; index 0 of the
            second axis holds the keys, 1 the values. The last position of a row is never counted
            on: rows that ride along in a batch write their rubbish behind their end.
        tokens: The ids that the rows stand for, ``[rows, positions]``.
        lengths: Tokens of each row whose keys and values are in the cache, ``[rows]``.

    Args:
        shape: What one token costs.
        max_rows: Maximum number of rows.
        max_bytes: Maximum memory.
        fixed: Whether all of the memory is taken at the first use and kept: rows then change
            number and length inside it, and a new layout never lies beside the old one. A pool on
            a device that others fill too is of this kind; else memory is taken as it is needed.
        least_rows: Rows that a longer layout leaves room for if it can. Above 0 the pool plans:
            its first layout is for contexts that have grown, and :meth:`clear` forgets it, so that
            what fits does not depend on what was played before.
    """

    def __init__(
        self,
        shape: CacheShape,
        max_rows: int,
        max_bytes: int,
        *,
        fixed: bool = False,
        least_rows: int = 0,
    ) -> None:
        self.shape = shape
        self._fixed = fixed
        self._least_rows = least_rows
        self._room: torch.Tensor | None = None  # [layers, entries] of a fixed pool
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self._lazy = shape.device.type == "cpu"
        self._by_handle: dict[int, Row] = {}
        self._next_handle = 1
        self._clock = 0
        self._before = 0  # positions of the rows when the memory was given back
        self._allocate(0, 0)

    # ------------------------------------------------------------------ looking

    @property
    def rows(self) -> int:
        """Rows that are allocated."""
        return len(self._slots)

    @property
    def positions(self) -> int:
        """Tokens that a row can hold."""
        return max(self._held - 1, 0)

    def alive(self, handle: int | None) -> bool:
        """True where the handle's row is still there."""
        return handle in self._by_handle

    def reach(self, end: int, grain: int) -> int:
        """Return ``end`` rounded up to a multiple of ``grain``, as far as rows have positions."""
        return min(-(-end // grain) * grain, self._held)

    def reusable(self, handle: int | None, ids: Ids) -> tuple[Row | None, int]:
        """Return the handle's row and how many first tokens of ``ids`` its cache covers.

        At least one token is always left to feed, since its logits are what is wanted.
        """
        row = self._by_handle.get(handle) if handle is not None else None
        if row is None or handle is None:
            return None, 0
        n = min(row.handles[handle], len(ids) - 1)
        differs = np.flatnonzero(self.tokens[row.index, :n] != ids[:n])
        n = int(differs[0]) if len(differs) else n
        return (row, n) if n else (None, 0)

    def extendable(self, row: Row, length: int) -> bool:
        """True if the row may be cut to ``length`` and grown there without hurting anyone."""
        return not row.busy and all(n <= length for n in row.handles.values())

    def longest_shared(self, ids: Ids) -> tuple[Row | None, int]:
        """Return the row that covers most first tokens of ``ids``, whosesoever it is, and how many.

        As in :meth:`reusable` at least one token is left to feed.
        """
        n = min(len(ids) - 1, self._held)
        if not self.rows or n < 1:
            return None, 0
        same = np.column_stack([self.tokens[:, :n] == ids[:n], np.zeros(self.rows, dtype=bool)])
        covered = np.minimum(same.argmin(axis=1), self.lengths)  # rows that are free have length 0
        best = int(covered.argmax())
        return self._slots[best], int(covered[best])

    def spares(self, length: int) -> bool:
        """True if a row for ``length`` tokens takes none that an open episode will come back to.

        A row that nobody asked for while those that run took two turns each counts as given up.
        """
        taken = [row for row in self._slots if row is not None]
        busy = sum(row.busy for row in taken)
        since = self._clock - 4 * max(1, busy)  # a turn is two ticks: taken, and parked
        kept = busy + sum(not row.busy and row.used > since for row in taken)
        return kept < self._rows_allowed(self._positions_for(length))

    def fits(self, length: int) -> bool:
        """True if one row of ``length`` tokens fits into the memory budget."""
        return self._rows_allowed(self._rounded(length)) >= 1

    # ------------------------------------------------------------------ changing

    def lay_out(self, length: int) -> None:
        """Plan the first layout for contexts that begin with up to ``length`` tokens."""
        if self._least_rows and not self._held:
            self._make_room(length, None, wanted=0)

    def acquire(self, length: int, keep: Row | None = None) -> Row | None:
        """Return a free row that can hold ``length`` tokens, or None while the budget is in use.

        Unused rows are evicted for it, the longest unused first, but never ``keep``.
        """
        if not self._make_room(length, keep, wanted=1):
            return None
        index = self._taken.find(0)
        row = Row(index, busy=True, used=self._tick())
        self._slots[index], self._taken[index] = row, 1
        return row

    def extend(self, row: Row, length: int, cut: int) -> bool:
        """Take an unused row over at its first ``cut`` tokens; False while the budget is in use."""
        if not self._make_room(length, row, wanted=0):
            return False
        row.busy, row.used = True, self._tick()
        self.lengths[row.index] = cut
        return True

    def copy(self, source: Row, targets: Sequence[Row], length: int) -> None:
        """Copy the first ``length`` tokens of a row into others."""
        if not targets or not length:
            return
        prefix = self._start(source.index, length)
        for row in targets:  # one by one: indices in a list take many times as long
            self._start(row.index, length).copy_(prefix)
        at = [row.index for row in targets]
        self.tokens[at, :length] = self.tokens[source.index, :length]
        self.lengths[at] = length

    def park(self, row: Row) -> int:
        """Keep the tokens of a finished request under a new handle, and return that."""
        handle = self._next_handle
        self._next_handle += 1
        row.busy, row.used = False, self._tick()
        row.handles[handle] = int(self.lengths[row.index])
        self._by_handle[handle] = row
        return handle

    def drop(self, row: Row) -> None:
        """The request was given up; earlier handles on the row stay good."""
        row.busy = False
        self.lengths[row.index] = max(row.handles.values(), default=0)
        self._free_if_unused(row)

    def release(self, handle: int | None) -> None:
        """The handle will not be used again; unknown and evicted ones are ignored."""
        row = self._by_handle.pop(handle, None) if handle is not None else None
        if row is not None and handle is not None:
            del row.handles[handle]
            self._free_if_unused(row)

    def clear(self) -> None:
        """Forget everything; the memory is written again as rows grow."""
        self._by_handle.clear()
        self._slots = [None] * len(self._slots)
        self._taken = bytearray(len(self._slots))
        self.lengths[:] = 0
        if self._least_rows:
            self._allocate(0, 0)

    def wipe(self) -> None:
        """Forget everything, and cure numbers that are no longer finite.

        What stands behind a row's end has no weight in attention, but nan times nothing is nan.
        """
        data = self.data if self._room is None else self._room
        self.clear()
        with torch.inference_mode():  # the tensor was made in that mode
            data.zero_()

    def give_back(self, max_bytes: int | None = None) -> None:
        """Forget everything and take no memory until the next use.

        Args:
            max_bytes: Maximum memory from now on; None for as much as before.

        Raises:
            EpisodeError: A row is in use.
        """
        if any(row is not None and row.busy for row in self._slots):
            raise EpisodeError("engine: the cache's memory is asked for while requests use it.")
        self.max_bytes = self.max_bytes if max_bytes is None else max_bytes
        self._by_handle.clear()
        self._room = None
        # so that the next layout is the last one from the start
        again = self._fixed and max_bytes is None and not self._least_rows
        self._before = self._held if again else 0
        self._allocate(0, 0)

    def compact(self, slack: int) -> bool:
        """Bring busy rows to the front if more than ``slack`` others stand between them.

        Returns:
            True if rows changed places.
        """
        busy = [i for i, row in enumerate(self._slots) if row is not None and row.busy]
        if not busy or busy[-1] + 1 - len(busy) <= slack:
            return False
        holes = sorted(set(range(len(busy))) - set(busy))
        for hole, last in zip(holes, reversed(busy), strict=False):
            self._swap(hole, last)
        return True

    # ------------------------------------------------------------------ inside

    def _start(self, row: int, n: int) -> torch.Tensor:
        """Return a window onto the first ``n`` positions of a row, or a few more."""
        return self.data[:, :, row, :, : -(-n // self.shape.block)]

    def _swap(self, a: int, b: int) -> None:
        n = int(max(self.lengths[a], self.lengths[b])) + 1
        pair, flipped = [a, b], [b, a]
        held = self._start(a, n).clone()
        self._start(a, n).copy_(self._start(b, n))
        self._start(b, n).copy_(held)
        self.tokens[pair] = self.tokens[flipped]
        self.lengths[pair] = self.lengths[flipped]
        first, second = self._slots[a], self._slots[b]
        self._slots[a], self._slots[b] = second, first
        self._taken[a], self._taken[b] = self._taken[b], self._taken[a]
        if first is not None:
            first.index = b
        if second is not None:
            second.index = a

    def _make_room(self, length: int, keep: Row | None, wanted: int) -> bool:
        """Grow, then evict, until ``wanted`` rows are free and rows hold ``length`` tokens."""
        positions = self._positions_for(length)
        if positions == self._held and self._taken.count(0) >= wanted:
            return True
        allowed = self._rows_allowed(positions)
        idle = [r for r in self._slots if r is not None and not r.busy and r is not keep]
        taken = self._taken.count(1)
        if taken - len(idle) + wanted > allowed:
            return False
        while taken + wanted > allowed:
            oldest = min(idle, key=attrgetter("used"))
            idle.remove(oldest)
            self._evict(oldest)
            taken -= 1
        rows = self.rows
        if rows > allowed:
            rows = allowed
        elif taken + wanted > rows:
            all_at_once = self._lazy or self._fixed  # its memory is there in any case
            rows = allowed if all_at_once else min(allowed, max(2 * rows, 8))
        if rows != self.rows or positions != self._held:
            self._rebuild(rows, positions)
        return True

    def _positions_for(self, length: int) -> int:
        """What rows hold now, or half as much again where that is too little and affordable."""
        held = self._held
        if self._rounded(length) <= held:
            return held
        if self._rounded(length) <= self._before:
            return self._before
        if self._least_rows:
            return self._planned(length)
        ample = self._rounded(max(length, 3 * held // 2, _AMPLE - 1 if self._lazy else 0))
        return ample if self._rows_allowed(ample) >= self.max_rows else self._rounded(length)

    def _planned(self, length: int) -> int:
        """Ample positions for contexts of which one has ``length`` tokens, if rows are left."""
        ample = 3 * length // 2 if self._held else _GROWTH * length
        row = self.max_bytes // (self._least_rows * self.shape.bytes_per_token)
        ample = max(9 * length // 8, min(ample, row - self.shape.grain))
        wide = self._rounded(ample)
        return wide if self._rows_allowed(wide) else self._rounded(length)

    def _rounded(self, length: int) -> int:
        return _rounded(length, self.shape.grain)

    def _rows_allowed(self, positions: int) -> int:
        return min(self.max_rows, self.max_bytes // (positions * self.shape.bytes_per_token))

    def _evict(self, row: Row) -> None:
        for handle in row.handles:
            del self._by_handle[handle]
        row.handles.clear()
        self._free_if_unused(row)

    def _free_if_unused(self, row: Row) -> None:
        if not row.busy and not row.handles:
            self._slots[row.index], self._taken[row.index] = None, 0
            self.lengths[row.index] = 0

    def _rebuild(self, rows: int, positions: int) -> None:
        """Reallocate; rows keep their order, so that those in front stay in front.

        Keys and values are copied as far as a row has any: what is not touched costs no memory.
        """
        live = [row for row in self._slots if row is not None]
        old, old_tokens, old_lengths = self.data, self.tokens, self.lengths
        n = min(self._held, positions)
        self._allocate(rows, positions)
        if not live:
            return
        source = [row.index for row in live]
        if self._fixed:  # both lie in the same memory
            parts = n // self.shape.block
            for before, now in zip(old, self.data, strict=True):
                now[:, : len(live), :, :parts] = before[:, source, :, :parts]  # by way of a copy
        else:
            for index, row in enumerate(live):
                parts = -(-int(old_lengths[row.index]) // self.shape.block)
                self.data[:, :, index, :, :parts] = old[:, :, row.index, :, :parts]
        self.tokens[: len(live), :n] = old_tokens[source, :n]
        self.lengths[: len(live)] = old_lengths[source]
        for index, row in enumerate(live):
            row.index = index
            self._slots[index], self._taken[index] = row, 1

    def _allocate(self, rows: int, positions: int) -> None:
        s = self.shape
        shape = (s.layers, 2, rows, s.heads, positions // s.block, s.block * s.head_dim)
        if self._fixed and rows:
            self.data = self._window(shape)
        elif self._lazy and s.bytes_per_token < _LARGE_TOKEN:
            self.data = _in_small_pages(shape, s.dtype)
        else:
            self.data = _zeros(shape, s.dtype, s.device)
        self._held = positions
        self.tokens = np.zeros((rows, positions), dtype=np.int64)
        self.lengths = np.zeros(rows, dtype=np.int64)
        self._slots: list[Row | None] = [None] * rows
        self._taken = bytearray(rows)  # 1 where a slot holds a row: found sooner than None is

    def _window(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Return a tensor of this shape that lies in the fixed memory, layer by layer."""
        layers, entries = shape[0], math.prod(shape[1:])
        if self._room is None:
            room = self.max_bytes // (layers * self.shape.dtype.itemsize)
            room -= room % _GRAIN  # every layer begins where kernels want it to
            self._room = _zeros((layers, room), self.shape.dtype, self.shape.device)
        return self._room[:, :entries].unflatten(1, shape[1:])

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros; on a CPU from numpy, which takes memory that the system hands out when it is used."""
    size = math.prod(shape)
    if device.type != "cpu" or not size:
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(size * dtype.itemsize, np.uint8)).view(dtype).view(shape)


def _in_small_pages(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros whose memory comes in the system's small pages where it lets one ask for them.

    numpy asks for large ones, 2 MiB on most machines, each cleared at the first touch of any of it.
    """
    size = math.prod(shape) * dtype.itemsize
    if not size or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return _zeros(shape, dtype, torch.device("cpu"))
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # not so much at once: numpy may still get it, or says that memory is full
        return _zeros(shape, dtype, torch.device("cpu"))
    with suppress(OSError):  # a kernel that has no others
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.from_numpy(np.frombuffer(memory, np.uint8)).view(dtype).view(shape)


def row_bytes(shape: CacheShape, length: int) -> int:
    """Return the memory of a row that can hold so many tokens."""
    return _rounded(length, shape.grain) * shape.bytes_per_token


def _rounded(length: int, grain: int) -> int:
    return -(-(length + 1) // grain) * grain


def common_length(a: Ids, b: Ids) -> int:
    """Return how many first tokens two contexts have in common."""
    n = min(len(a), len(b))
    differs = np.flatnonzero(a[:n] != b[:n])
    return int(differs[0]) if len(differs) else n
