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
def _weigh(row: Any, mass: Any, n: int) -> Any:
    """Make weights of the first ``n`` scores of a row, 0 of the others; return its logsumexp."""
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
    return top + np.log(total)


@compiled
def _softmax(start: int, stop: int, scores: Any, logsumexp: Any, queries: Any) -> None:
    first, count, group = queries
    mass = np.empty(scores.shape[1], np.float32)
    for r in range(start, stop):
        logsumexp[r] = _weigh(scores[r], mass, first + r % (count * group) // group + 1)


@compiled
def _slopes(start: int, stop: int, both: Any, logsumexp: Any, queries: Any) -> None:
    scores, grad = both
    first, count, group = queries
    for r in range(start, stop):
        row, slope, n = scores[r], grad[r], first + r % (count * group) // group + 1
        log, mean = logsumexp[r], np.float32(0)
        for i in range(n):
            row[i] = narrow(exp_of_negative(widen(row[i]) - log), row[i])
            mean += widen(row[i]) * widen(slope[i])
        for i in range(n):
            slope[i] = narrow(widen(row[i]) * (widen(slope[i]) - mean), slope[i])
        row[n:] = 0
        slope[n:] = 0


def causal_softmax(
    scores: torch.Tensor, first: int, stop: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make attention weights of scores, in their place.

    Args:
        scores: Of queries at positions ``first`` to ``stop``, those of one position side by side,
            with the keys up to there ``[heads, (stop - first) * group, stop]``, contiguous.
        first: Position of the first query.
        stop: One past the last.

    Returns:
        The weights, and the logarithm of each row's sum of exponentials
        ``[heads, (stop - first) * group]`` float32.
    """
    count = stop - first
    rows, logsumexp = bits(scores.view(-1, stop)), torch.empty(scores.shape[:2])
    sums = logsumexp.view(-1).numpy()
    share_rows(_softmax, len(rows), rows, sums, (first, count, scores.shape[1] // count))
    return scores, logsumexp


def causal_slopes(
    scores: torch.Tensor,
    grad: torch.Tensor,
    logsumexp: torch.Tensor,
    first: int,
    stop: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make weights of scores, and of the weights' gradient that of the scores, in their places.

    A row's mean slope is that under the rounded weights: what is left of a key that has nearly all
    the weight is the difference of two numbers that are nearly equal.

    Args:
        scores: As in :func:`causal_softmax`.
        grad: The same shape.
        logsumexp: What :func:`causal_softmax` found of the same scores.
        first: As in :func:`causal_softmax`.
        stop: The same.
    """
    count = stop - first
    both = bits(scores.view(-1, stop)), bits(grad.view(-1, stop))
    sums = logsumexp.reshape(-1).numpy()
    queries = first, count, scores.shape[1] // count
    share_rows(_slopes, len(both[0]), both, sums, queries)
    return scores, grad
