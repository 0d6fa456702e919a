"""What a learner will take of a device's memory beyond what it has when it is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from .scoring.fused_head import TABLES

FLOAT = 4
MOMENTS = {"adamw": 2 * FLOAT, "adamw8bit": 2}
"""Bytes per trained weight; weights in half precision have a float32 copy beside them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryNeeds:
    """Bytes that are not there yet, by what they will be for.

    Attributes:
        gradients: Of the trained weights.
        moments: Of the optimiser, with its float32 copies.
        activations: What a micro batch keeps for its backward pass.
        narrowed: Copies of float32 weights in the products' format.
        head: Pieces of logits, and the gradient of the output layer on its way.
    """

    gradients: int
    moments: int
    activations: int
    narrowed: int
    head: int

    @property
    def total(self) -> int:
        """All together: what the update takes at its peak."""
        return sum(asdict(self).values())


def gradient_bytes(trained: Sequence[Tensor]) -> int:
    """Return the bytes of the gradients that are not there yet."""
    return sum(_bytes(p) for p in trained if p.grad is None)


def moment_bytes(trained: Sequence[Tensor], state: Mapping[Tensor, Any], kind: str) -> int:
    """Return the bytes of the moments that are not there yet.

    Args:
        trained: Weights.
        state: The optimiser's, by weight.
        kind: Of optimiser, see :data:`MOMENTS`.
    """
    total = 0
    for p in trained:
        if not state.get(p):
            copy = FLOAT if p.dtype != torch.float32 else 0
            total += _here(p).numel() * (MOMENTS[kind] + copy)
    return total


def head_bytes(weight: Tensor, entries: int, *, half: bool) -> int:
    """Return the bytes that the output layer takes in an update.

    Args:
        weight: Of the layer ``[vocabulary, hidden]``.
        entries: Most logits of a piece.
        half: Whether products are in half precision.
    """
    narrow = 2 if half and weight.dtype == torch.float32 else 0
    return TABLES * FLOAT * entries + weight.numel() * (weight.dtype.itemsize + narrow)


def _bytes(p: Tensor) -> int:
    return _here(p).numel() * p.dtype.itemsize


def _here(p: Any) -> Tensor:
    """Return this process's part of a weight."""
    return p.to_local() if hasattr(p, "to_local") else p
