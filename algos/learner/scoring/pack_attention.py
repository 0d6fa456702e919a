"""How packed layers attend: by products, span by span or block by block, or by compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..attention.block_attention import attend_blocks, attend_blocks_backward
from ..attention.span_attention import SpanAttention, spans_of
from ..attention.tree_attention import TreeLayout

BLOCK_ENTRIES, PADDED_SHARE = 4700, 0.27
"""What a block costs by products, in scores that loops make in that time: itself, and each of its
scores, padding included (measured with four heads of 32, one thread)."""
MOST_KEYS = 512
"""Keys that a token of a small model sees in the mean, beyond which it attends span by span."""


class Attention(Protocol):
    """What sees what in a pack, and how it is computed.

    Queries, keys and values are ``[key heads, tokens, group * width]`` and twice
    ``[key heads, tokens, width]``; results have the queries' shape, tokens outermost.

    Attributes:
        of_queries: What queries are multiplied by before.
    """

    of_queries: float

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return what every token sees, and what the backward pass needs besides."""
        ...

    def backward(
        self, grad: Tensor, inputs: tuple[Tensor, Tensor, Tensor], made: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of queries, in their number format, and of keys and values."""
        ...


class _BySpans:
    """Span by span, by products that keep no weights: for large heads and long contexts.

    Of a layout with an opening, keys and values hold it too and queries do not.
    """

    def __init__(self, layout: TreeLayout, scale: float) -> None:
        self.of_queries = scale
        self._attend = SpanAttention(spans_of(layout.blocks, layout.opening), layout.opening)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        out, logsumexp = self._attend(q, k, v)
        return out, (logsumexp,)

    def backward(
        self, grad: Tensor, inputs: tuple[Tensor, Tensor, Tensor], made: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self._attend.backward(grad, inputs, made[0])


class _ByBlocks:
    """Block by block, by products that keep their weights: for many spans after one context."""

    of_queries = 1.0

    def __init__(self, layout: TreeLayout, scale: float) -> None:
        self._plan, self._scale = layout.plan(), scale

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        width = k.shape[2]
        apart = q.unflatten(2, (-1, width)).transpose(1, 2).flatten(0, 1)
        out, made = attend_blocks(apart, k, v, self._scale, self._plan)
        return out.view(q.shape[1], len(q), -1).transpose(0, 1), made

    def backward(
        self, grad: Tensor, inputs: tuple[Tensor, Tensor, Tensor], made: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, _ = inputs
        group, width = q.shape[2] // k.shape[2], k.shape[2]
        apart = grad.transpose(0, 1).reshape(q.shape[1], -1, width)
        of_q, of_k, of_v = attend_blocks_backward(apart, made, self._scale, self._plan, group)
        together = of_q.unflatten(0, (-1, group)).transpose(1, 2).flatten(2)
        return together.to(q.dtype).contiguous(), of_k, of_v


class _ByLoops:
    """Query by query, by compiled loops that keep nothing: for short contexts of all kinds.

    Args:
        layout: The relation.
        scale: Multiplies the scores.
        wanted: Whose results are read ``[tokens]``; the others' are 0.
    """

    of_queries = 1.0

    def __init__(self, layout: TreeLayout, scale: float, wanted: npt.NDArray[np.bool_]) -> None:
        self._flat, self._scale, self._wanted = layout.flat(), scale, wanted

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        return _loops().attend(q, k, v, self._flat, self._wanted, self._scale), ()

    def backward(
        self, grad: Tensor, inputs: tuple[Tensor, Tensor, Tensor], made: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        del made
        return _loops().attend_backward(grad, inputs, self._flat, self._wanted, self._scale)


@cache
def _loops() -> ModuleType:
    from ..attention import block_kernels

    return block_kernels


@cache
def has_loops() -> bool:
    """Return whether the compiled loops are there, which need numba."""
    try:
        _loops()
    except ImportError:
        return False
    return True


def choose_attention(
    layout: TreeLayout, scale: float, wanted: npt.NDArray[np.bool_], *, loops: bool
) -> Attention:
    """Return the quickest way to compute a pack's attention.

    Args:
        layout: The relation.
        scale: Multiplies the scores.
        wanted: Whose results are read ``[tokens]``.
        loops: Whether there is another way than span by span.
    """
    if not loops or layout.opening:
        return _BySpans(layout, scale)
    flat = layout.flat()
    if flat.entries > MOST_KEYS * flat.tokens:
        return _BySpans(layout, scale)
    if flat.entries < BLOCK_ENTRIES * len(flat.bounds) + PADDED_SHARE * flat.padded:
        return _ByLoops(layout, scale, wanted)
    return _ByBlocks(layout, scale)
