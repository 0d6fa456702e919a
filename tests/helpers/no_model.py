"""A model that costs nothing, to play the engine's own decisions at the sizes of real runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from turngym.agents.engines.local.forward import Piece
from turngym.agents.engines.local.kv_cache import CacheShape, KvPool


class NoModel:
    """Gives every token the same chance, end-of-text none; counts what it reads.

    Attributes:
        prompt_tokens: Context tokens that went through it.
        rows: Rows of each decode step.
    """

    wants_front = False
    mixes = False
    repeat = None
    captures = False
    vocabulary = 420
    shape = CacheShape(1, 1, 1, torch.float32, torch.device("cpu"))

    def __init__(self, never: Sequence[int]) -> None:
        self._logits = torch.zeros(1, 420)
        self._logits[:, list(never)] = -torch.inf
        self.prompt_tokens = 0
        self.rows: list[int] = []

    def load(self, model: Any) -> None:
        pass

    def feed(self, pool: KvPool, pieces: Sequence[Piece]) -> torch.Tensor:
        self.prompt_tokens += sum(len(piece.ids) for piece in pieces)
        return self._logits.repeat(len(pieces), 1)

    def decode(self, pool: KvPool, rows: Any, *_: Any) -> torch.Tensor:
        self.rows.append(len(rows))
        return self._logits.repeat(len(rows), 1)
