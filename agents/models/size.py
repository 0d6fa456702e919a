"""From which size on a model is large for a CPU."""

from __future__ import annotations

from typing import Any

LARGE = 2**25
"""Weights, 34 million. Below, a CPU is bound by memory and calls, not by products; contexts and
activations cost little beside everything else; and half precision moves log-probabilities by a
thousandth of a nat. A model of 135 million is on the other side in all of this."""


def count_weights(model: Any) -> int:
    """Return the number of a torch module's weights, tied ones once."""
    return sum(p.numel() for p in model.parameters())


def is_large(model: Any) -> bool:
    """Return whether a torch module has at least :data:`LARGE` weights."""
    return count_weights(model) >= LARGE
