"""What a pass keeps for its backward pass, found by running a short one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from torch import Tensor, nn

from ..batching.micro_batch import MicroBatch
from ..batching.rows import Row
from .scoring import SHORT_ROW, TokenModel, attention_for, quick_cpu_maths

SHORT, LONG = 32, 96
"""Tokens of the two passes that are measured, or a few more where the model's weights have such a
dimension: what is kept could else be taken for a copy of them."""


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """Bytes that a token keeps: some of its own, and some for each token of its row.

    Attributes:
        base: Of every token.
        slope: For each token of its row: attention weights.
        blocked: Whether long padded rows on a CPU go through torch's blocked kernel, which keeps no
            weights; eager attention does.
    """

    base: float
    slope: float
    blocked: bool = True

    def of(self, tokens: int, longest: int) -> float:
        """Return the bytes of so many tokens in rows of at most ``longest``."""
        return tokens * (self.base + self.slope * longest)

    def of_batch(self, batch: MicroBatch) -> float:
        """Return the bytes of a micro batch on a CPU."""
        tokens, columns = batch.ids.numel(), batch.row_columns
        weights = 0 if self.blocked and columns > SHORT_ROW else tokens * columns
        if batch.layout is not None:
            weights = batch.layout.plan().entries
        return self.base * tokens + self.slope * weights

    @classmethod
    def measured(cls, tokens: TokenModel, device: torch.device) -> KeptMemory:
        """Measure passes of one padded row, without a backward pass."""
        taken = {size for p in tokens.model.parameters() for size in p.shape}
        few, many = (next(n for n in count(least) if n not in taken) for least in (SHORT, LONG))
        short, long = (_bytes_per_token(tokens, n, device) for n in (few, many))
        slope = max(0.0, (long - short) / (many - few))
        blocked = tokens.model.config._attn_implementation != "eager"
        return cls(max(1.0, short - slope * few), slope, blocked)

    @classmethod
    def by_layers(cls, tokens: TokenModel) -> KeptMemory:
        """Measure the first layer and the second, and count all others as the second.

        So a large model that waits in main memory to be cut up is not run as a whole.
        """
        decoder = tokens.model.get_decoder()
        layers = getattr(decoder, "layers", None)
        if not isinstance(layers, nn.ModuleList) or len(layers) <= 2:
            return cls.measured(tokens, tokens.device)
        try:
            decoder.layers = layers[:1]
            one = cls.measured(tokens, tokens.device)
            decoder.layers = layers[:2]
            two = cls.measured(tokens, tokens.device)
        finally:
            decoder.layers = layers
        others = len(layers) - 1
        return cls(
            one.base + others * (two.base - one.base), one.slope + others * (two.slope - one.slope)
        )


def _bytes_per_token(tokens: TokenModel, n: int, device: torch.device) -> float:
    weights = {p.untyped_storage().data_ptr() for p in tokens.model.parameters()}
    shapes = {tuple(p.shape) for p in tokens.model.parameters() if p.ndim > 1}
    kept: dict[int, int] = {}
    held: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        narrowed = {tuple(x.shape), tuple(reversed(x.shape))} & shapes  # a copy of weights
        if storage.data_ptr() not in weights and not narrowed:
            kept[storage.data_ptr()] = storage.nbytes()
            held.append(x.detach())  # so that no other tensor gets its address
        return x.detach()  # itself, it would hold the graph that holds it, for ever

    one = np.zeros(1, np.int64)
    row = Row(np.zeros(n, np.int64), one + n - 1, one, np.zeros(1, np.float32), np.arange(n))
    batch = MicroBatch.padded([row], 0, device)
    with (
        torch.enable_grad(),
        quick_cpu_maths(device),
        attention_for([tokens.model], batch),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x),
    ):
        tokens.hidden(batch)
    return sum(kept.values()) / n
