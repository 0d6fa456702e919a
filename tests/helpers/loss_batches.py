"""Ragged numbers as padded loss batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from turngym.algos.core.protocols import LossBatch, Norm

Rows = Sequence[Sequence[float]]


def pad(rows: Rows, fill: float = 0.0) -> torch.Tensor:
    width = max(len(r) for r in rows)
    return torch.tensor([[*r, *[fill] * (width - len(r))] for r in rows], dtype=torch.float64)


def batch(
    log_ratios: Rows,
    advantages: Rows,
    *,
    turns: Sequence[Sequence[int]] | None = None,
    norm: Norm | None = None,
    entropies: Rows | None = None,
    **extra: Rows,
) -> LossBatch:
    """Rows of log ratios (old log-probabilities are -1), with rubbish on the padding."""
    mask = pad([[1.0] * len(r) for r in log_ratios])
    rubbish = 5.0 * (1 - mask)
    old = pad([[-1.0] * len(r) for r in log_ratios])
    logprobs = (old + pad(log_ratios) + rubbish).requires_grad_()
    streams: dict[str, Any] = {k: pad(v) + rubbish for k, v in extra.items()}
    if "values" in streams:
        streams["values"].requires_grad_()
    return LossBatch(
        logprobs=logprobs,
        old_logprobs=old,
        entropies=(pad(entropies) if entropies else torch.ones_like(mask)).requires_grad_(),
        advantages=pad(advantages) + rubbish,
        mask=mask,
        turns=(pad(turns, -1.0).long() if turns else torch.where(mask > 0, 0, -1)),
        norm=norm or Norm.of([len(r) for r in log_ratios]),
        extra=streams,
    )
