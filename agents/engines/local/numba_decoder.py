"""The packed decoder on few cores of a CPU: torch multiplies, compiled loops do the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from ...models.loops.parts import bits
from ...models.size import is_large
from ..sampling import Draws
from .forward import Ids, Repeat, round_up
from .kv_cache import CacheShape, KvPool
from .numba_kernels import BLOCK, add_normed_unit, add_unit, head_kernels
from .packed_decoder import Attend, FastDecoder
from .shared_blocks import find_shared_blocks

Floats = npt.NDArray[np.float32]


def why_not_native(model: Any, dtype: torch.dtype) -> str | None:
    """The reason why a model that :class:`FastDecoder` knows does not run here, None if it does."""
    config = model.config
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if next(model.parameters()).device.type != "cpu":
        return "its loops are for a CPU"
    if dtype not in (torch.float32, torch.bfloat16):
        return f"{dtype}"
    if dim % 4:
        return f"heads of {dim} numbers, no multiple of 4"
    return None


class NativeDecoder(FastDecoder):
    """:class:`FastDecoder` with the loops of :mod:`~turngym.agents.engines.local.numba_kernels`.

    Args:
        model: One for which :func:`why_not_native` has no objection either.
        dtype: float32 or bfloat16.
        max_context: Positions for which rotary angles are tabled.
    """

    def __init__(self, model: Any, dtype: torch.dtype, max_context: int) -> None:
        super().__init__(model, dtype, max_context)
        self._kernels = head_kernels(self._dim, self._eps)
        self._least = np.float32(self._floor.item())
        self._angles: list[Floats] = [
            torch.view_as_real(turns).numpy() for turns in self._weights.turns
        ]
        self._take_norms()
        self._pads = not is_large(model)
        self._reads_once = is_large(model)  # what others hold stays in the processor's cache
        self._nothing = bits(torch.zeros((0, 0), dtype=dtype))

    @property
    def wants_front(self) -> bool:
        """Whether a decode step costs as much as if all rows up to the last one took part."""
        return False

    @property
    def repeat(self) -> Repeat:
        """Copies the token that was just decoded: a step costs what its rows cost."""
        return self._repeat

    @property
    def shape(self) -> CacheShape:
        """What one cached token costs."""
        return replace(super().shape, block=BLOCK)

    @torch.no_grad()
    def load(self, model: Any) -> None:
        """Pack the weights of ``model``; later changes of the model do not reach this copy."""
        super().load(model)
        self._take_norms()

    def _take_norms(self) -> None:
        """Read the norms of the heads, and those behind the blocks, as the loops take them."""
        self._norms = [_norms(x.norm_q, x.norm_k) for x in self._blocks]
        self._behind_of = [(_floats(x.norm_out), _floats(x.norm_down)) for x in self._blocks]

    def decode(
        self,
        pool: KvPool,
        rows: Ids,
        tokens: Ids,
        draws: Draws | None = None,  # noqa: ARG002 - nothing goes anywhere
    ) -> torch.Tensor:
        """Feed one token to each of some rows of the pool, see :class:`Forward`.

        With a large model keys and values that rows have in common are read once for all of them.
        """
        slots = np.stack([rows, pool.lengths[rows]])  # C order, as the loops are compiled for
        cache, scale = bits(pool.data), np.float32(self._scale)
        out, out_bits = self._zeros(len(rows), self._n_q * self._dim)
        look = self._together(pool, rows) if self._reads_once else self._kernels.look

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            given, window = (bits(q), cache[layer], slots, scale), self._blocks[layer].window
            if window is None:
                look(*given, out_bits)
            else:
                self._kernels.look_back(*given, window, out_bits)
            return out

        return self._run(pool, torch.from_numpy(tokens), torch.from_numpy(slots), attend)

    def _repeat(self, pool: KvPool, sources: Ids, rows: Ids) -> None:
        self._kernels.repeat(bits(pool.data), np.stack([sources, rows, pool.lengths[rows]]))

    def _together(self, pool: KvPool, rows: Ids) -> Callable[..., None]:
        """Return the loop ``look`` that reads what these rows have in common once."""
        shared = find_shared_blocks(pool.tokens, pool.lengths, rows, BLOCK)
        if not shared.source.size:
            return self._kernels.look

        def look(q: Any, cache: Any, slots: Any, scale: Any, out: Any) -> None:
            self._kernels.look_together(q, cache, slots, *shared, scale, out)

        return look

    def _past(
        self, pool: KvPool, layer: int, rows: torch.Tensor, end: int, first: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As in :class:`FastDecoder`."""
        shape = (2, len(rows), self._n_kv, end - first, self._dim)
        found = torch.empty(shape, dtype=self._dtype)
        self._kernels.fetch(bits(pool.data)[layer], rows.numpy(), first, bits(found))
        return found[0], found[1]

    def _run(
        self,
        pool: KvPool,
        ids: torch.Tensor,
        slots: torch.Tensor,
        attend: Attend,
        last: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As in :class:`FastDecoder`, the products with rows of zeros behind the tokens.

        oneDNN compiles a product anew for each number of rows, which takes longer than to multiply
        with a small model; padded numbers come again.
        """
        cache, where, rows = bits(pool.data), slots.numpy(), len(ids)
        hidden = self._weights.embedded(ids)
        q = torch.empty((rows, self._n_q, self._dim), dtype=self._dtype)
        q_bits = bits(q)
        unit, unit_bits = self._zeros(rows, self._weights.width)
        add_unit(hidden.numpy(), self._nothing, self._least, unit_bits)
        for number, (layer, norms) in enumerate(zip(self._blocks, self._norms, strict=True)):
            qkv, angles = bits(layer.qkv(unit))[:rows], self._angles[layer.angles]
            self._kernels.enter(qkv, angles, where, norms, cache[number], q_bits)
            if last is not None and number == len(self._blocks) - 1:
                rows, q, hidden = len(last), q[last], hidden[last]
                unit, unit_bits = self._zeros(rows, self._weights.width)
            seen = attend(q, number)
            if len(seen) < len(unit):
                seen = F.pad(seen, (0, 0, 0, len(unit) - len(seen)))
            norm_out, norm_down = self._behind_of[number]
            self._add(hidden, layer.out(seen), norm_out, unit_bits)
            self._add(hidden, layer.mlp(unit), norm_down, unit_bits)
        return self._weights.head.wide(unit)[:rows]

    def _zeros(self, rows: int, width: int) -> tuple[torch.Tensor, npt.NDArray[Any]]:
        """Return zeros ``[rows and padding, width]``, as a tensor and as the kernels take it."""
        padded = padded_rows(rows) if self._pads else rows
        out = torch.zeros((padded, width), dtype=self._dtype)
        return out, bits(out)

    def _add(
        self,
        hidden: torch.Tensor,
        delta: torch.Tensor,
        norm: Floats | None,
        unit: npt.NDArray[Any],
    ) -> None:
        """Add what a block gives, normed where it has a norm behind it; ``unit`` is the norm."""
        if norm is None:
            add_unit(hidden.numpy(), bits(delta), self._least, unit)
        else:
            eps = np.float32(self._eps)
            add_normed_unit(hidden.numpy(), bits(delta), norm, eps, self._least, unit)


def padded_rows(n: int) -> int:
    """Return ``n`` rounded up by at most an eighth, or to a multiple of 8: few numbers of rows."""
    return round_up(n, max(8, 1 << n.bit_length() >> 4))


def _floats(weight: torch.Tensor | None) -> Floats | None:
    return None if weight is None else weight.numpy()


def _norms(q: torch.Tensor | None, k: torch.Tensor | None) -> Floats:
    """Weights ``[2, dim]`` of the heads' norms, ``[2, 0]`` without."""
    if q is None or k is None:
        return np.zeros((2, 0), dtype=np.float32)
    return torch.stack([q, k]).numpy()
