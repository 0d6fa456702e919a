"""A minimal decoder for pure-attention models of the Llama and Gemma-3 families.

Small batches on a CPU are bound by the number of operations and by memory, so there are few and
large ones: q, k and v are one product, the norms' weights are folded into the products behind them,
and activations run inside them (:mod:`.packed_weights`). Products and the cache are in the asked
number format; what flows between the blocks, rotary angles and softmax are float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ...models.causal_attention import attend_row
from ...models.size import is_large
from ..sampling import Draws
from ..transfers import Parcel, to_device
from .decode_graphs import DecodeGraphs
from .forward import Front, Ids, Piece, Ragged, Repeat, grain_for, visible
from .grouped_attention import GroupedAttention
from .kv_cache import CacheShape, KvPool
from .packed_weights import PackedWeights
from .paged_attention import PAGE, Kernel, Sequences, attend_paged, find_kernel

Attend = Callable[[torch.Tensor, int], torch.Tensor]
"""Queries ``[total, heads, dim]`` and a layer to what they see, ``[total, heads * dim]``."""


class FastDecoder:
    """See the module's text.

    Args:
        model: One that :func:`~.packed_weights.why_not_fast` has no objection to.
        dtype: Of the matrix products and of the cached keys and values.
        max_context: Positions for which rotary angles are tabled.
        graphs: Captures decode steps where attention goes over pages; None captures nothing.
        device: Where it computes; None is where the model is.
    """

    def __init__(
        self,
        model: Any,
        dtype: torch.dtype,
        max_context: int,
        graphs: DecodeGraphs | None = None,
        device: torch.device | None = None,
    ) -> None:
        self._device = device or next(model.parameters()).device
        self._dtype = dtype
        self._weights = PackedWeights(model, dtype, self._device, max_context)
        self._blocks, self._dim = self._weights.blocks, self._weights.dim
        self._n_q, self._n_kv = self._weights.heads
        self._windows = {block.window for block in self._blocks}
        self._grouped = self._n_q != self._n_kv
        self._grain = grain_for(self._device)
        self._as_rows = self._device.type != "cpu"  # see GroupedAttention
        windowed = self._windows != {None}
        found = find_kernel(self._device, dtype, self._weights.heads, self._dim, windowed=windowed)
        self._kernel: Kernel | None = None if isinstance(found, str) else found
        self.unpaged_because = found if isinstance(found, str) else None
        if isinstance(found, str) and self._as_rows and dtype != torch.float32:
            warnings.warn(
                f"the engine's attention goes by masks, and no decode step is captured as a CUDA "
                f"graph: {found}",
                stacklevel=2,
            )
        self._graphs = graphs
        self._eps = self._weights.eps
        # x / sqrt(mean(x^2) + eps) = sqrt(n) * x / hypot(|x|, sqrt(n eps)); the factor is folded
        self._floor = torch.tensor((self._weights.width * self._eps) ** 0.5, device=self._device)
        self._scale = self._dim**-0.5
        self._max_context = max_context
        # a fused kernel with a mask takes longer than all products of a large model
        on_cpu = self._device.type == "cpu"
        self._by_row = on_cpu and dtype == torch.bfloat16 and is_large(model)

    @property
    def shape(self) -> CacheShape:
        """What one cached token costs."""
        size = len(self._blocks), self._n_kv, self._dim
        if self._kernel is not None:
            return CacheShape(*size, self._dtype, self._device, grain=PAGE)
        return CacheShape(*size, self._dtype, self._device)

    @property
    def wants_front(self) -> bool:
        """Whether a decode step costs as much as if all rows up to the last one took part."""
        return self._kernel is None

    @property
    def repeat(self) -> Repeat | None:
        """None: a step costs much the same for fewer rows."""
        return None

    @property
    def mixes(self) -> bool:
        """Whether single tokens may be fed beside prompts at no more cost than their own."""
        return self._kernel is not None

    @property
    def captures(self) -> bool:
        """Whether decode steps are captured, so that a pass with prompts costs many of them."""
        return self._kernel is not None and self._graphs is not None and self._graphs.off is None

    @property
    def vocabulary(self) -> int:
        """Number of logits."""
        return self._weights.head.out_features

    def load(self, model: Any) -> None:
        """Pack the weights of ``model``; later changes of the model do not reach this copy.

        Layer after layer takes the place of the one from before: there are never two sets.
        """
        self._weights.load(model)

    def feed(self, pool: KvPool, pieces: Sequence[Piece]) -> torch.Tensor:
        """Run the pieces; float32 logits ``[pieces, vocabulary]`` after the last token of each."""
        if self._kernel is not None:
            return self._feed_paged(pool, pieces, self._kernel)
        ragged = Ragged.of(pieces, self._grain)
        if self._by_row:
            return self._feed_rows(pool, ragged, pieces)
        if self._as_rows:
            return self._feed_grouped(pool, ragged)
        move = self._move
        positions, square = move(ragged.positions), move(ragged.square)
        places = move(ragged.places)
        slots = torch.stack([move(ragged.rows), positions])
        width = ragged.square.shape[1]
        at = move(ragged.starts)[:, None] + torch.arange(width, device=self._device)
        masks = {w: visible(at, ragged.end, w)[:, None] for w in self._windows}
        rows, last = move(ragged.rows[ragged.last]), move(ragged.last)
        window = self._blocks[-1].window
        mask_last = visible(positions[last][:, None], ragged.end, window)[:, None]

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            keys, values = self._past(pool, layer, rows, ragged.end)
            if layer == len(self._blocks) - 1:
                return self._sdpa(q, keys, values, mask_last)
            mask = masks[self._blocks[layer].window]
            seen = F.scaled_dot_product_attention(
                q[square].transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=self._grouped
            )
            return seen.transpose(1, 2).reshape(-1, self._n_q * self._dim)[places]

        return self._run(pool, move(ragged.ids), slots, attend, last)

    def _feed_grouped(self, pool: KvPool, ragged: Ragged) -> torch.Tensor:
        """:meth:`feed` in shapes that repeat, by :class:`GroupedAttention`."""
        group, end = self._n_q // self._n_kv, pool.reach(ragged.end, self._grain)
        rows, positions, last, square, places, first, ids, starts = Parcel(
            self._device,
            ragged.rows,
            ragged.positions,
            ragged.last,
            ragged.square,
            ragged.places,
            ragged.rows[ragged.last],
            ragged.ids,
            ragged.starts,
        ).send()
        slots, rows = torch.stack([rows, positions]), first
        at = starts[:, None] + torch.arange(square.shape[1], device=self._device)
        attention = {w: GroupedAttention(at, end, group, window=w) for w in self._windows}
        window = self._blocks[-1].window
        final = GroupedAttention(positions[last][:, None], end, group, window=window)

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            keys, values = self._past(pool, layer, rows, end)
            if layer == len(self._blocks) - 1:
                return final(q[:, None], keys, values)[:, 0]
            own = attention[self._blocks[layer].window]
            return own(q[square], keys, values).flatten(0, 1)[places]

        return self._run(pool, ids, slots, attend, last)

    def _feed_paged(self, pool: KvPool, pieces: Sequence[Piece], kernel: Kernel) -> torch.Tensor:
        """:meth:`feed` by one call for all pieces, see :mod:`.paged_attention`."""
        sizes, starts, rows = np.array([(len(p.ids), p.start, p.row) for p in pieces]).T
        ends = sizes.cumsum()
        positions = np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)
        cuts, seen, owners, flat, slots, last = Parcel(
            self._device,
            *Sequences.arrays(sizes, starts + sizes, rows.copy()),
            np.concatenate([p.ids for p in pieces]).astype(np.int64, copy=False),
            np.stack([np.repeat(rows, sizes), positions]),
            ends - 1,
        ).send()
        reach = int((starts + sizes).max())
        where = Sequences(cuts, seen, owners, int(sizes.max()), reach)
        single = where.single()

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            own = single if layer == len(self._blocks) - 1 else where
            return self._paged(kernel, pool, q, layer, own)

        return self._run(pool, flat, slots, attend, last)

    def _paged(
        self, kernel: Kernel, pool: KvPool, q: torch.Tensor, layer: int, where: Sequences
    ) -> torch.Tensor:
        keys, values = pool.data[layer, 0], pool.data[layer, 1]
        return attend_paged(kernel, q, keys, values, where, self._blocks[layer].window)

    def _feed_rows(self, pool: KvPool, ragged: Ragged, pieces: Sequence[Piece]) -> torch.Tensor:
        """:meth:`feed` with attention row by row: nothing is padded, and there is no mask."""
        slots = torch.stack([self._move(ragged.rows), self._move(ragged.positions)])
        rows = [self._move(np.array([p.row])) for p in pieces]
        ends = [p.start + len(p.ids) for p in pieces]
        final = len(self._blocks) - 1

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            sizes = [1 if layer == final else len(p.ids) for p in pieces]
            seen, window = [], self._blocks[layer].window
            for own, row, end in zip(q.split(sizes), rows, ends, strict=True):
                first = 0 if window is None else max(0, end - len(own) + 1 - window)
                keys, values = self._past(pool, layer, row, end, first)
                seen.append(attend_row(own, keys[0], values[0], self._scale, window))
            return torch.cat(seen)

        return self._run(pool, self._move(ragged.ids), slots, attend, self._move(ragged.last))

    def _past(
        self, pool: KvPool, layer: int, rows: torch.Tensor, end: int, first: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of some rows, each a copy ``[rows, heads, end - first, dim]``."""
        return pool.data[layer, 0, rows, :, first:end], pool.data[layer, 1, rows, :, first:end]

    def decode(
        self, pool: KvPool, rows: Ids, tokens: Ids, draws: Draws | None = None
    ) -> torch.Tensor:
        """Feed one token to each of some rows of the pool, see :class:`Forward`."""
        if self._kernel is not None:
            return self._decode_paged(pool, rows, tokens, draws, self._kernel)
        front = Front.of(pool, rows, tokens)
        count, n = len(front.tokens), pool.reach(front.end, self._grain)
        asked = [] if front.asked is None else [front.asked]
        parcel = Parcel(self._device, pool.lengths[:count], front.tokens, *asked)
        if draws is not None:
            draws.ride(parcel)
        positions, ids, *picked = parcel.send()
        slots = torch.stack([torch.arange(count, device=self._device), positions])
        at = positions.clamp(max=n - 1)
        window = pool.data[:, :, :count, :, :n]
        attend = (self._one_grouped if self._as_rows else self._one_query)(window, at)
        logits = self._run(pool, ids, slots, attend)
        return logits[picked[0]] if asked else logits

    def _decode_paged(
        self, pool: KvPool, rows: Ids, tokens: Ids, draws: Draws | None, kernel: Kernel
    ) -> torch.Tensor:
        """:meth:`decode` by one kernel for all rows, captured where there are graphs for it.

        Rows that pad a step write to a position that no context reaches, and see one key.
        """
        count, lengths = len(rows), pool.lengths[rows]
        graphs, width = self._graphs, pool.data.shape[-2]
        size = count if graphs is None else graphs.padded(count)
        idle = min(width - 1, self._max_context)
        ids, seen = np.zeros(size, np.int64), np.ones(size, np.int32)
        slots = np.empty((2, size), np.int64)
        slots[0], slots[1] = rows[0], idle
        ids[:count], slots[0, :count], slots[1, :count] = tokens, rows, lengths
        seen[:count] = lengths + 1
        parcel = Parcel(self._device, ids, slots, seen)
        if draws is not None:
            draws.ride(parcel)
        # a captured step serves rows of any length: it reads where they end from the device
        reach = width if graphs is not None else int(lengths.max()) + 1

        def step(ids: torch.Tensor, slots: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
            cuts = torch.arange(size + 1, dtype=torch.int32, device=self._device)
            where = Sequences(cuts, seen, slots[0], 1, reach)

            def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
                return self._paged(kernel, pool, q, layer, where)

            return self._run(pool, ids, slots, attend)

        if graphs is None:
            return step(*parcel.send()[:3])
        return graphs.run(size, self._place(pool), parcel, 3, step)[:count]

    def _place(self, pool: KvPool) -> tuple[object, ...]:
        """Return where cache and embedding are; all other weights never move."""
        table = self._weights.embed.data_ptr(), self._weights.embed.dtype
        return pool.data.data_ptr(), tuple(pool.data.shape), *table

    def _one_query(self, window: torch.Tensor, at: torch.Tensor) -> Attend:
        """One query per row as two batched products: half the time of the fused kernel on a CPU."""

        def bias_of(back: int | None) -> torch.Tensor:
            seen = visible(at, window.shape[-2], back)
            return torch.where(seen, 0.0, float("-inf")).repeat_interleave(self._n_kv, 0)[:, None]

        biases = {back: bias_of(back) for back in self._windows}
        by_layer = [layer.unbind(0) for layer in window.flatten(2, 3).unbind(0)]
        # oneDNN, which multiplies bfloat16, is slow on keys with gaps between the rows
        dense = self._dtype != torch.float32

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            (k, v), bias = by_layer[layer], biases[self._blocks[layer].window]
            grouped = q.reshape(k.shape[0], -1, self._dim)
            if dense:
                scores = torch.bmm(grouped, k.contiguous().transpose(1, 2))
                scores = torch.add(bias, scores, alpha=self._scale)
            else:
                scores = torch.baddbmm(bias, grouped, k.transpose(1, 2), alpha=self._scale)
            return torch.bmm(scores.softmax(-1).to(v.dtype), v).view(-1, self._n_q * self._dim)

        return attend

    def _one_grouped(self, window: torch.Tensor, at: torch.Tensor) -> Attend:
        """One query per row by a fused kernel, see :class:`GroupedAttention`."""
        shape = at[:, None], window.shape[-2], self._n_q // self._n_kv
        ones = {back: GroupedAttention(*shape, window=back) for back in self._windows}

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            one = ones[self._blocks[layer].window]
            return one(q[:, None], window[layer, 0], window[layer, 1])[:, 0]

        return attend

    def _sdpa(
        self, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """One query per row ``[rows, heads, dim]`` by the fused kernel."""
        seen = F.scaled_dot_product_attention(
            q[:, :, None], keys, values, attn_mask=mask, enable_gqa=self._grouped
        )
        return seen.reshape(-1, self._n_q * self._dim)

    def _run(
        self,
        pool: KvPool,
        ids: torch.Tensor,
        slots: torch.Tensor,
        attend: Attend,
        last: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run all blocks over flat tokens ``[total]``, which write keys and values, then attend.

        ``slots`` ``[2, total]`` are their rows in the pool and their positions. With ``last``, the
        final block goes on with those tokens alone: nobody needs the others.

        Returns:
            Float32 logits ``[total or last, vocabulary]``.
        """
        total, kv = len(ids), self._n_q + self._n_kv
        where = self._addresses(pool, *slots)
        flat = pool.data.view(len(self._blocks), -1, self._dim).unbind(0)
        turns = [table.index_select(0, slots[1])[:, None] for table in self._weights.turns]
        hidden = self._weights.embedded(ids)
        for number, layer in enumerate(self._blocks):
            y = layer.qkv(self._unit(hidden)).float().view(total, -1, self._dim)
            if layer.norm_q is not None and layer.norm_k is not None:
                y[:, : self._n_q] = self._rms(y[:, : self._n_q], layer.norm_q)
                y[:, self._n_q : kv] = self._rms(y[:, self._n_q : kv], layer.norm_k)
            self._turn(y[:, :kv], turns[layer.angles])
            y = y.to(self._dtype)
            flat[number].index_copy_(0, where, y[:, self._n_q :].reshape(-1, self._dim))
            if last is not None and number == len(flat) - 1:
                y, hidden = y[last], hidden[last]
            hidden.add_(self._behind(layer.out(attend(y[:, : self._n_q], number)), layer.norm_out))
            hidden.add_(self._behind(layer.mlp(self._unit(hidden)), layer.norm_down))
        return self._weights.head.wide(self._unit(hidden))

    def _addresses(self, pool: KvPool, row: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Where the vectors ``[total, keys then values of all heads]`` lie in one layer, flat."""
        _, two, rows, heads, length, _ = pool.data.shape
        block = torch.arange(two, device=row.device)[:, None] * rows * heads
        block = block + torch.arange(heads, device=row.device)
        first = (row * heads)[:, None] + block.view(-1)
        return (first * length + position[:, None]).view(-1)

    @staticmethod
    def _turn(x: torch.Tensor, turns: torch.Tensor) -> None:
        """Rotary embedding in place: a complex product, as the weights hold pairs side by side."""
        torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(turns)

    def _unit(self, x: torch.Tensor) -> torch.Tensor:
        """RMS norm without its weight and a factor, which are in the product that follows."""
        length = torch.hypot(torch.linalg.vector_norm(x, dim=-1, keepdim=True), self._floor)
        return (x / length).to(self._dtype)

    def _behind(self, x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        """Norm what is about to be added where there is such a norm."""
        return x if weight is None else self._rms(x.float(), weight)

    def _rms(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self._eps)

    def _move(self, array: Ids) -> torch.Tensor:
        return to_device(array, self._device)
