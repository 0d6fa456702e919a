"""What a pass keeps for its backward pass, found by running a short one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..batching.micro_batch import MicroBatch
from ..batching.rows import Row
from .scoring import TokenModel, attention_for, quick_cpu_maths

SHORT, LONG = 32, 96
"""Tokens of the two passes that are measured."""


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """Bytes that a token keeps: some of its own, and some for each token of its row.

    Attributes:
        base: Of every token.
        slope: For each token of its row: attention weights.
    """

    base: float
    slope: float

    def of(self, tokens: int, longest: int) -> float:
        """Return the bytes of so many tokens in rows of at most ``longest``."""
        return tokens * (self.base + self.slope * longest)

    @classmethod
    def measured(cls, tokens: TokenModel, device: torch.device) -> KeptMemory:
        """Measure passes of one padded row, without a backward pass."""
        short, long = (_bytes_per_token(tokens, n, device) for n in (SHORT, LONG))
        slope = max(0.0, (long - short) / (LONG - SHORT))
        return cls(max(1.0, short - slope * SHORT), slope)


def _bytes_per_token(tokens: TokenModel, n: int, device: torch.device) -> float:
    weights = {p.untyped_storage().data_ptr() for p in tokens.model.parameters()}
    shapes = {tuple(p.shape) for p in tokens.model.parameters() if p.ndim > 1}
    kept: dict[int, int] = {}
    held: list[Tensor] = []

    def count(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        narrowed = {tuple(x.shape), tuple(reversed(x.shape))} & shapes  # a copy of weights
        if storage.data_ptr() not in weights and not narrowed:
            kept[storage.data_ptr()] = storage.nbytes()
            held.append(x)  # so that no other tensor gets its address
        return x

    one = np.zeros(1, np.int64)
    row = Row(np.zeros(n, np.int64), one + n - 1, one, np.zeros(1, np.float32), np.arange(n))
    batch = MicroBatch.padded([row], 0, device)
    with (
        torch.enable_grad(),
        quick_cpu_maths(device, batch.row_columns),
        attention_for([tokens.model], batch),
        torch.autograd.graph.saved_tensors_hooks(count, lambda x: x),
    ):
        states = tokens.hidden(batch)
    held.append(states)
    return sum(kept.values()) / n
