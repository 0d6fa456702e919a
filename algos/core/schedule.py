"""Learning rate: linear warm-up, then constant."""

from __future__ import annotations

from ...envs.core.errors import BadValueError


def warmup_steps(ratio: float, total_steps: int) -> int:
    """Warm-up length as Search-R1 counts it: ``int(ratio * total_steps)`` optimiser steps."""
    if not 0 <= ratio <= 1:
        raise BadValueError(f"warmup_steps: ratio is {ratio}; expected a value in [0, 1].")
    return int(ratio * total_steps)


def warmup_factor(step: int, warmup: int) -> float:
    """What the rate of optimiser step ``step`` (from 0) is multiplied by: ``min(1, step/warmup)``.

    The very first step of a warm-up therefore has rate 0, as in the papers' code.
    """
    return 1.0 if step >= warmup else step / warmup
