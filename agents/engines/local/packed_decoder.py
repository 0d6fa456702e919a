"""A minimal decoder for pure-attention models of the Llama family: few, large operations.

Small batches on a CPU are bound by the number of operations and by memory, so q, k and v are one
product, the norms' weights are folded into the products behind them, and activations run inside
them. Products and the cache are in the asked number format; what flows between the blocks, rotary
angles and softmax are float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ...models.causal_attention import attend_row
from ...models.products import wide_product
from ..sampling import Draws
from ..transfers import Parcel, to_device
from .decode_graphs import DecodeGraphs
from .forward import Front, Ids, Piece, Ragged, grain_for, visible
from .grouped_attention import GroupedAttention
from .kv_cache import CacheShape, KvPool
from .paged_attention import PAGE, Kernel, Sequences, attend_paged, find_kernel

_ROWS_HINT = 64  # batch size that the prepacked layout is chosen for
FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
LARGE = 2**25
"""Weights from which a CPU feeds rows of bfloat16 one by one to attention: a fused kernel with a
mask takes longer than all products of such a model."""
WRITE_ENTRIES = 2**24
"""Weights that are converted at a time: their float32 form stays small beside the largest layer."""
_STATIC_ROPE = ("default", "linear", "llama3", "yarn")
Attend = Callable[[torch.Tensor, int], torch.Tensor]
"""Queries ``[total, heads, dim]`` and a layer to what they see, ``[total, heads * dim]``."""


def why_not_fast(model: Any, max_context: int) -> str | None:
    """Return the reason why this decoder does not know a model, None if it does."""
    config = model.config
    name = type(model).__name__
    if name not in FAMILIES:
        return f"{name} is none of {', '.join(FAMILIES)}"
    if config.hidden_act != "silu":
        return f"activation {config.hidden_act!r}"
    if model.model.rotary_emb.rope_type not in _STATIC_ROPE:
        return f"rotary embedding of type {model.model.rotary_emb.rope_type!r}"
    window = getattr(config, "sliding_window", None)
    sliding = any(k != "full_attention" for k in getattr(config, "layer_types", None) or ())
    if (sliding or name == "MistralForCausalLM") and window is not None and window < max_context:
        return f"sliding window of {window} tokens, shorter than the context of {max_context}"
    if any(
        type(m).__name__ == "Linear" and not isinstance(m.weight, torch.nn.Parameter)
        for m in model.modules()
    ):
        return "weights that are not plain parameters"
    if any(
        "Linear" in type(m).__name__ and type(m) is not torch.nn.Linear for m in model.modules()
    ):
        return "linear layers of another kind (adapters or quantised weights)"
    return None


class PackedLinear:
    """A linear layer whose weight is laid out once for the device that multiplies with it.

    It computes ``x @ weight.T + bias`` in the weight's number format, alone or with what follows.

    On a CPU with oneDNN the weight is reordered ahead of time and the activation runs inside the
    product: small batches are bound by the number of operations.

    New weights take the place of the old ones in the same memory, so that there are never two sets.

    Args:
        shape: ``(out, in)``.
        dtype: Number format of the products.
        device: Where they are made.
    """

    def __init__(self, shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> None:
        self.out_features = shape[0]
        self._packed = device.type == "cpu" and can_prepack(dtype)
        self._shape, self._dtype, self._device = shape, dtype, device
        self._bias: torch.Tensor | None = None
        self._weight = torch.empty(0 if self._packed else shape, dtype=dtype, device=device)
        if self._packed:
            self._run = torch.ops.mkldnn._linear_pointwise.default
            self._run_binary = torch.ops.mkldnn._linear_pointwise.binary

    def load(
        self, write: Callable[[torch.Tensor], None], bias: torch.Tensor | None = None
    ) -> PackedLinear:
        """Take new weights, and return the layer.

        Args:
            write: Writes them into a tensor ``[out, in]`` on the layer's device.
            bias: ``[out]`` or None; the same as before in every call.
        """
        if self._packed:
            self._weight = torch.empty(0)  # the old ones go first
            plain = torch.empty(self._shape, dtype=self._dtype)
            write(plain)
            self._weight = torch.ops.mkldnn._reorder_linear_weight(plain, _ROWS_HINT)
        else:
            write(self._weight)
        if bias is not None:
            bias = bias.to(self._device, self._dtype)
            self._bias = bias if self._bias is None else self._bias.copy_(bias)
        return self

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """``[rows, in] -> [rows, out]``."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "none", [], "")
        return F.linear(x, self._weight, self._bias)

    def wide(self, x: torch.Tensor) -> torch.Tensor:
        """``self(x)`` in float32; on CUDA it never was anything else."""
        if self._packed or x.device.type == "cpu":
            return self(x).float()
        out = wide_product(x, self._weight)
        return out if self._bias is None else out.add_(self._bias)

    def silu(self, x: torch.Tensor) -> torch.Tensor:
        """``silu(self(x))``."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "swish", [], "")
        return F.silu(F.linear(x, self._weight, self._bias))

    def times(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """``self(x) * other``, ``other`` is ``[rows, out]``."""
        if self._packed:
            return self._run_binary(x, other, self._weight, self._bias, "mul")
        return F.linear(x, self._weight, self._bias) * other


def can_prepack(dtype: torch.dtype) -> bool:
    """True where oneDNN's prepacked product exists in this build of torch."""
    return (
        dtype in (torch.float32, torch.bfloat16)
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


@dataclass(slots=True)
class _Layer:
    """Weights of one block, packed; the norms in front of it are folded in."""

    qkv: PackedLinear
    norm_q: torch.Tensor | None
    norm_k: torch.Tensor | None
    out: PackedLinear
    gate: PackedLinear
    up: PackedLinear
    down: PackedLinear


class FastDecoder:
    """See the module's text.

    Args:
        model: One of :data:`FAMILIES` for which :func:`why_not_fast` has no objection.
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
        config = model.config
        self._device = device or next(model.parameters()).device
        self._dtype = dtype
        self._n_q = config.num_attention_heads
        self._n_kv = config.num_key_value_heads
        self._dim = getattr(config, "head_dim", None) or config.hidden_size // self._n_q
        self._grouped = self._n_q != self._n_kv
        self._grain = grain_for(self._device)
        self._as_rows = self._device.type != "cpu"  # see GroupedAttention
        found = find_kernel(self._device, dtype, (self._n_q, self._n_kv), self._dim)
        self._kernel: Kernel | None = None if isinstance(found, str) else found
        self.unpaged_because = found if isinstance(found, str) else None
        if isinstance(found, str) and self._as_rows and dtype != torch.float32:
            warnings.warn(
                f"the engine's attention goes by masks, and no decode step is captured as a CUDA "
                f"graph: {found}",
                stacklevel=2,
            )
        self._graphs = graphs
        self._eps = config.rms_norm_eps
        # x / sqrt(mean(x^2) + eps) = sqrt(n) * x / hypot(|x|, sqrt(n eps)); the factor is folded
        self._width = config.hidden_size
        self._floor = torch.tensor((self._width * self._eps) ** 0.5, device=self._device)
        self._scale = self._dim**-0.5
        self._max_context = max_context
        large = sum(p.numel() for p in model.parameters()) >= LARGE
        self._embed: torch.Tensor | None = None
        self._layers: list[_Layer] = []
        self._by_row = large and self._device.type == "cpu" and dtype == torch.bfloat16
        self.load(model)

    @property
    def shape(self) -> CacheShape:
        """What one cached token costs."""
        size = len(self._layers), self._n_kv, self._dim
        if self._kernel is not None:
            return CacheShape(*size, self._dtype, self._device, grain=PAGE)
        return CacheShape(*size, self._dtype, self._device)

    @property
    def wants_front(self) -> bool:
        """Whether a decode step costs as much as if all rows up to the last one took part."""
        return self._kernel is None

    @property
    def mixes(self) -> bool:
        """Whether single tokens may be fed beside prompts at no more cost than their own."""
        return self._kernel is not None

    @property
    def vocabulary(self) -> int:
        """Number of logits."""
        return self._head.out_features

    @torch.no_grad()
    def load(self, model: Any) -> None:
        """Pack the weights of ``model``; later changes of the model do not reach this copy.

        Layer after layer takes the place of the one from before: there are never two sets.
        """
        body = model.model
        self._embed = self._table(body.embed_tokens.weight)
        if not self._layers:
            at = torch.arange(self._max_context + 1, device=self._device)[None]
            cos, sin = body.rotary_emb(torch.zeros(1, device=self._device), at)
            half = self._dim // 2
            self._turns = torch.complex(cos[0, :, :half].float(), sin[0, :, :half].float())
            self._layers = [self._empty(block) for block in body.layers]
            self._head = self._linear(model.lm_head)
        for layer, block in zip(self._layers, body.layers, strict=True):
            self._pack(layer, block)
        self._load(self._head, model.lm_head, norm=body.norm)

    def _table(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the embedding ``[vocabulary, width]``, in half precision where it comes in it."""
        weight = weight.detach()
        dtype = weight.dtype if weight.dtype in (torch.bfloat16, torch.float16) else torch.float32
        if self._embed is None or self._embed.dtype != dtype:
            return weight.to(self._device, dtype, copy=True)
        return self._embed.copy_(weight)

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        assert self._embed is not None
        return F.embedding(ids, self._embed).float()

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
        mask = visible(at, ragged.end)[:, None]
        rows, last = move(ragged.rows[ragged.last]), move(ragged.last)
        mask_last = visible(positions[last][:, None], ragged.end)[:, None]

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            keys, values = self._past(pool, layer, rows, ragged.end)
            if layer == len(self._layers) - 1:
                return self._sdpa(q, keys, values, mask_last)
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
        attention = GroupedAttention(at, end, group)
        final = GroupedAttention(positions[last][:, None], end, group)

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            keys, values = self._past(pool, layer, rows, end)
            if layer == len(self._layers) - 1:
                return final(q[:, None], keys, values)[:, 0]
            return attention(q[square], keys, values).flatten(0, 1)[places]

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
            own = single if layer == len(self._layers) - 1 else where
            return attend_paged(kernel, q, pool.data[layer, 0], pool.data[layer, 1], own)

        return self._run(pool, flat, slots, attend, last)

    def _feed_rows(self, pool: KvPool, ragged: Ragged, pieces: Sequence[Piece]) -> torch.Tensor:
        """:meth:`feed` with attention row by row: nothing is padded, and there is no mask."""
        slots = torch.stack([self._move(ragged.rows), self._move(ragged.positions)])
        rows = [self._move(np.array([p.row])) for p in pieces]
        ends = [p.start + len(p.ids) for p in pieces]
        final = len(self._layers) - 1

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            sizes = [1 if layer == final else len(p.ids) for p in pieces]
            seen = []
            for own, row, end in zip(q.split(sizes), rows, ends, strict=True):
                keys, values = self._past(pool, layer, row, end)
                seen.append(attend_row(own, keys[0], values[0], self._scale))
            return torch.cat(seen)

        return self._run(pool, self._move(ragged.ids), slots, attend, self._move(ragged.last))

    def _past(
        self, pool: KvPool, layer: int, rows: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of some rows, each a copy ``[rows, heads, end, dim]``."""
        return pool.data[layer, 0, rows, :, :end], pool.data[layer, 1, rows, :, :end]

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
                return attend_paged(kernel, q, pool.data[layer, 0], pool.data[layer, 1], where)

            return self._run(pool, ids, slots, attend)

        if graphs is None:
            return step(*parcel.send()[:3])
        return graphs.run(size, self._place(pool), parcel, 3, step)[:count]

    def _place(self, pool: KvPool) -> tuple[object, ...]:
        """Return where cache and embedding are; all other weights never move."""
        assert self._embed is not None
        table = self._embed.data_ptr(), self._embed.dtype
        return pool.data.data_ptr(), tuple(pool.data.shape), *table

    def _one_query(self, window: torch.Tensor, at: torch.Tensor) -> Attend:
        """One query per row as two batched products: half the time of the fused kernel on a CPU."""
        seen = visible(at, window.shape[-2])
        bias = torch.where(seen, 0.0, float("-inf")).repeat_interleave(self._n_kv, 0)[:, None]
        by_layer = [layer.unbind(0) for layer in window.flatten(2, 3).unbind(0)]
        # oneDNN, which multiplies bfloat16, is slow on keys with gaps between the rows
        dense = self._dtype != torch.float32

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            k, v = by_layer[layer]
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
        one = GroupedAttention(at[:, None], window.shape[-2], self._n_q // self._n_kv)
        return lambda q, layer: one(q[:, None], window[layer, 0], window[layer, 1])[:, 0]

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
        flat = pool.data.view(len(self._layers), -1, self._dim).unbind(0)
        turns = self._turns.index_select(0, slots[1])[:, None]
        hidden = self._embedded(ids)
        for number, layer in enumerate(self._layers):
            y = layer.qkv(self._unit(hidden)).float().view(total, -1, self._dim)
            if layer.norm_q is not None and layer.norm_k is not None:
                y[:, : self._n_q] = self._rms(y[:, : self._n_q], layer.norm_q)
                y[:, self._n_q : kv] = self._rms(y[:, self._n_q : kv], layer.norm_k)
            self._turn(y[:, :kv], turns)
            y = y.to(self._dtype)
            flat[number].index_copy_(0, where, y[:, self._n_q :].reshape(-1, self._dim))
            if last is not None and number == len(flat) - 1:
                y, hidden = y[last], hidden[last]
            hidden.add_(layer.out(attend(y[:, : self._n_q], number)))
            normed = self._unit(hidden)
            hidden.add_(layer.down(layer.up.times(normed, layer.gate.silu(normed))))
        return self._head.wide(self._unit(hidden))

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

    def _rms(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self._eps)

    def _empty(self, block: Any) -> _Layer:
        """Return a layer of the shapes of ``block``."""
        a, m = block.self_attn, block.mlp
        return _Layer(
            qkv=self._linear(a.q_proj, a.k_proj, a.v_proj),
            norm_q=self._head_norm(a.q_norm.weight) if hasattr(a, "q_norm") else None,
            norm_k=self._head_norm(a.k_norm.weight) if hasattr(a, "k_norm") else None,
            out=self._linear(a.o_proj),
            gate=self._linear(m.gate_proj),
            up=self._linear(m.up_proj),
            down=self._linear(m.down_proj),
        )

    def _linear(self, *linears: Any) -> PackedLinear:
        """Several layers over one input as one."""
        shape = sum(x.weight.shape[0] for x in linears), linears[0].weight.shape[1]
        return PackedLinear(shape, self._dtype, self._device)

    def _pack(self, layer: _Layer, block: Any) -> None:
        """Take the weights of ``block``."""
        a, m = block.self_attn, block.mlp
        before, behind = block.input_layernorm, block.post_attention_layernorm
        together = a.q_proj, a.k_proj, a.v_proj
        self._load(layer.qkv, *together, norm=before, arrange=self._paired)
        if layer.norm_q is not None and layer.norm_k is not None:
            layer.norm_q.copy_(self._head_norm(a.q_norm.weight))
            layer.norm_k.copy_(self._head_norm(a.k_norm.weight))
        self._load(layer.out, a.o_proj)
        self._load(layer.gate, m.gate_proj, norm=behind)
        self._load(layer.up, m.up_proj, norm=behind)
        self._load(layer.down, m.down_proj)

    def _load(
        self,
        layer: PackedLinear,
        *linears: Any,
        norm: Any | None = None,
        arrange: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Several layers over one input as one, behind ``norm``; ``arrange`` reorders outputs."""
        scale = None if norm is None else self._here(norm.weight) * self._width**0.5
        bias = None
        biases = [None if x.bias is None else x.bias.detach() for x in linears]
        if (some := next((b for b in biases if b is not None), None)) is not None:
            each = zip(linears, biases, strict=True)
            parts = [some.new_zeros(x.out_features) if b is None else b for x, b in each]
            bias = torch.cat(parts) if arrange is None else arrange(torch.cat(parts))

        def folded(weight: torch.Tensor) -> torch.Tensor:
            wide = self._here(weight)
            return wide if scale is None else wide * scale

        def write(target: torch.Tensor) -> None:
            if arrange is not None:
                target.copy_(arrange(folded(torch.cat([x.weight.detach() for x in linears]))))
                return
            at, step = 0, max(1, WRITE_ENTRIES // target.shape[1])
            for rows in (part for x in linears for part in x.weight.split(step)):
                target[at : at + len(rows)].copy_(folded(rows))
                at += len(rows)

        layer.load(write, bias)

    def _paired(self, weight: torch.Tensor) -> torch.Tensor:
        """Reorder q and k so that what rotates together lies together; scores stay the same."""
        turned = (self._n_q + self._n_kv) * self._dim
        heads = weight[:turned].unflatten(0, (-1, 2, self._dim // 2)).transpose(1, 2)
        return torch.cat([heads.flatten(0, 2), weight[turned:]])

    def _head_norm(self, weight: torch.Tensor) -> torch.Tensor:
        pairs = weight.detach().view(2, -1).T.reshape(-1)
        return pairs.to(self._device, torch.float32)

    def _here(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.detach().to(self._device).float()

    def _move(self, array: Ids) -> torch.Tensor:
        return to_device(array, self._device)
