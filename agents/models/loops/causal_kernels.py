"""Attention weights that see no later key, as one compiled loop over the scores.

A row's scores become weights, and in a backward pass slopes as well, while the processor's cache
holds it; torch makes a mask, adds it, and writes every step down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .parts import bits, compiled, exp_of_negative, highest, narrow, part, widen
from .row_threads import share_rows


@part
def _weigh(row: Any, mass: Any, n: int) -> None:
    """Make weights of the first ``n`` scores of a row, and 0 of the others."""
    for i in range(n):
        mass[i] = widen(row[i])
    top = highest(mass, n)
    total = np.float32(0)
    for i in range(n):
        mass[i] = exp_of_negative(mass[i] - top)
        total += mass[i]
    share = np.float32(1) / total
    for i in range(n):
        row[i] = narrow(mass[i] * share, row[i])
    row[n:] = 0


@compiled
def _softmax(start: int, stop: int, scores: Any, first: int, count: int, group: int) -> None:
    mass = np.empty(scores.shape[1], np.float32)
    for r in range(start, stop):
        _weigh(scores[r], mass, first + r % (count * group) // group + 1)


@compiled
def _slopes(start: int, stop: int, both: Any, first: int, count: int, group: int) -> None:
    scores, grad = both
    mass = np.empty(scores.shape[1], np.float32)
    for r in range(start, stop):
        row, slope, n = scores[r], grad[r], first + r % (count * group) // group + 1
        _weigh(row, mass, n)
        mean = np.float32(0)
        for i in range(n):
            mean += widen(row[i]) * widen(slope[i])
        for i in range(n):
            slope[i] = narrow(widen(row[i]) * (widen(slope[i]) - mean), slope[i])
        slope[n:] = 0


def causal_softmax(scores: torch.Tensor, first: int, stop: int) -> torch.Tensor:
    """Make attention weights of scores, in their place.

    Args:
        scores: Of queries at positions ``first`` to ``stop``, those of one position side by side,
            with the keys up to there ``[heads, (stop - first) * group, stop]``, contiguous.
        first: Position of the first query.
        stop: One past the last.
    """
    count = stop - first
    rows = bits(scores.view(-1, stop))
    share_rows(_softmax, len(rows), rows, first, count, scores.shape[1] // count)
    return scores


def causal_slopes(
    scores: torch.Tensor, grad: torch.Tensor, first: int, stop: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make weights of scores, and of the weights' gradient that of the scores, in their places.

    Args:
        scores: As in :func:`causal_softmax`.
        grad: The same shape.
        first: As in :func:`causal_softmax`.
        stop: The same.
    """
    count = stop - first
    both = bits(scores.view(-1, stop)), bits(grad.view(-1, stop))
    share_rows(_slopes, len(both[0]), both, first, count, scores.shape[1] // count)
    return scores, grad
