"""The packed decoder on few cores of a CPU: torch multiplies, compiled loops do the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...models.loops.parts import bits
from ..sampling import Draws
from .forward import Ids
from .kv_cache import CacheShape, KvPool
from .numba_kernels import BLOCK, add_unit, head_kernels
from .packed_decoder import Attend, FastDecoder

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
        self._nothing = bits(torch.zeros((0, 0), dtype=dtype))

    @property
    def wants_front(self) -> bool:
        """Whether a decode step costs as much as if all rows up to the last one took part."""
        return False

    @property
    def shape(self) -> CacheShape:
        """What one cached token costs."""
        return replace(super().shape, block=BLOCK)

    @torch.no_grad()
    def load(self, model: Any) -> None:
        """Pack the weights of ``model``; later changes of the model do not reach this copy."""
        super().load(model)
        self._angles: Floats = torch.view_as_real(self._turns).numpy()
        self._norms = [_norms(x.norm_q, x.norm_k) for x in self._layers]

    def decode(
        self,
        pool: KvPool,
        rows: Ids,
        tokens: Ids,
        draws: Draws | None = None,  # noqa: ARG002 - nothing goes anywhere
    ) -> torch.Tensor:
        """Feed one token to each of some rows of the pool, see :class:`Forward`."""
        slots = np.stack([rows, pool.lengths[rows]])  # C order, as the loops are compiled for
        cache, scale = bits(pool.data), np.float32(self._scale)

        def attend(q: torch.Tensor, layer: int) -> torch.Tensor:
            out = torch.empty((len(rows), self._n_q * self._dim), dtype=self._dtype)
            self._kernels.look(bits(q), cache[layer], slots, scale, bits(out))
            return out

        return self._run(pool, torch.from_numpy(tokens), torch.from_numpy(slots), attend)

    def _past(
        self, pool: KvPool, layer: int, rows: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As in :class:`FastDecoder`."""
        shape = (2, len(rows), self._n_kv, end, self._dim)
        found = torch.empty(shape, dtype=self._dtype)
        self._kernels.fetch(bits(pool.data)[layer], rows.numpy(), bits(found))
        return found[0], found[1]

    def _run(
        self,
        pool: KvPool,
        ids: torch.Tensor,
        slots: torch.Tensor,
        attend: Attend,
        last: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As in :class:`FastDecoder`."""
        cache, floor = bits(pool.data), np.float32(self._floor.item())
        hidden = self._embedded(ids)
        q = torch.empty((len(ids), self._n_q, self._dim), dtype=self._dtype)
        unit = torch.empty(hidden.shape, dtype=self._dtype)
        add_unit(bits(hidden), self._nothing, floor, bits(unit))
        for number, (layer, norms) in enumerate(zip(self._layers, self._norms, strict=True)):
            qkv = bits(layer.qkv(unit))
            self._kernels.enter(qkv, self._angles, slots.numpy(), norms, cache[number], bits(q))
            if last is not None and number == len(self._layers) - 1:
                q, hidden, unit = q[last], hidden[last], unit[last]
            seen = bits(layer.out(attend(q, number)))
            add_unit(bits(hidden), seen, floor, bits(unit))
            inner = layer.up.times(unit, layer.gate.silu(unit))
            add_unit(bits(hidden), bits(layer.down(inner)), floor, bits(unit))
        return self._head.wide(unit)


def _norms(q: torch.Tensor | None, k: torch.Tensor | None) -> Floats:
    """Weights ``[2, dim]`` of the heads' norms, ``[2, 0]`` without."""
    if q is None or k is None:
        return np.zeros((2, 0), dtype=np.float32)
    return torch.stack([q, k]).numpy()
