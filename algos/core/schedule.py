"""Learning rate: linear warm-up, then constant."""

from __future__ import annotations

from ...envs.core.errors import BadValueError


def warmup_steps(ratio: float, total_steps: int) -> int:
    """Return Search-R1's warm-up length, ``int(ratio * total_steps)`` optimiser steps."""
    if not 0 <= ratio <= 1:
        raise BadValueError(f"warmup_steps: ratio is {ratio}; expected a value in [0, 1].")
    return int(ratio * total_steps)


def warmup_factor(step: int, warmup: int) -> float:
    """Return the factor of the learning rate at ``step`` (from 0), ``min(1, step / warmup)``.

    The very first step of a warm-up therefore has rate 0, as in the papers' code.
    """
    return 1.0 if step >= warmup else step / warmup
