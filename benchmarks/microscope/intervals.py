"""Intervals of the microscope's measures, by resampling units or leaving each out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...envs.utils.statistics import SAME
from .metrics import resampled_weights
from .report import Value

Doubles = npt.NDArray[np.float64]
LEAST_SAMPLES = 0.9
"""Share of the bootstrap samples in which a measure must have a value."""
FEW = 10
"""Units below which each is left out in turn, in place of resampling them: the 95 % bootstrap
interval of three holds the truth in 70 %, and one of nine samples is one unit alone."""


def drawn_weights(units: int, samples: int) -> Doubles:
    """Return bootstrap weights ``[samples, units]``, of few units those that leave one out."""
    return 1.0 - np.eye(units) if units < FEW else resampled_weights(units, samples)


def values_of(found: Mapping[str, Doubles]) -> dict[str, Value]:
    """Return the measures that have a value, with their intervals.

    What has no value in many samples of the bootstrap is noise in the others too, and left out.
    Where units are few, the interval is Student's by the error that leaving each out gives. There
    is none where it makes no difference which units there are, as where all have their signs right.
    """
    out = {}
    for name, drawn in found.items():
        samples = drawn[1:][np.isfinite(drawn[1:])]
        if not np.isfinite(drawn[0]) or len(samples) < LEAST_SAMPLES * (len(drawn) - 1):
            continue
        low = high = None
        if len(samples) and not _agree(drawn[np.isfinite(drawn)]):
            if len(drawn) - 1 < FEW:
                reach = _reach(samples)
                low, high = float(drawn[0]) - reach, float(drawn[0]) + reach
            else:
                low, high = (float(x) for x in np.percentile(samples, [2.5, 97.5]))
        out[name] = Value(value=float(drawn[0]), low95=low, high95=high)
    return out


def _agree(drawn: Doubles) -> bool:
    """Return whether all values are the same but for rounding."""
    return bool(np.allclose(drawn, drawn[0], rtol=SAME, atol=SAME))


def _reach(without: Doubles) -> float:
    """Return half of Student's 95 % interval by values that leave a unit out ``[units]``."""
    from scipy.special import stdtrit  # slow to import

    n = len(without)
    return float(stdtrit(n - 1, 0.975) * np.std(without) * np.sqrt(n - 1))


def differences_of(ours: Mapping[str, Doubles], theirs: Mapping[str, Doubles]) -> dict[str, Value]:
    """Return the measures that both have, ours less theirs, with their intervals.

    Drawn alike they are paired; else, where one side has few units, both intervals are combined as
    those of independent samples (Zou and Donner 2008).
    """
    both = ours.keys() & theirs.keys()
    paired = {n for n in both if len(ours[n]) == len(theirs[n])}
    found = values_of({name: ours[name] - theirs[name] for name in paired})
    for name in paired & found.keys():  # the same with every unit left out, though units differ
        if np.array_equal(ours[name], theirs[name]) and not _agree(ours[name]):
            found[name] = Value(value=0.0, low95=0.0, high95=0.0)
    one, other = ({n: side[n] for n in both - paired} for side in (ours, theirs))
    mine, others = values_of(one), values_of(other)
    return found | {name: _apart(mine[name], others[name]) for name in mine.keys() & others.keys()}


def _apart(ours: Value, theirs: Value) -> Value:
    """Return the difference of independent measures."""
    value = ours.value - theirs.value
    ends = (ours.low95, ours.high95, theirs.low95, theirs.high95)
    if any(end is None for end in ends):
        return Value(value=value)
    low, high, other_low, other_high = (float(end) for end in ends if end is not None)
    below = np.hypot(ours.value - low, other_high - theirs.value)
    above = np.hypot(high - ours.value, theirs.value - other_low)
    return Value(value=value, low95=value - float(below), high95=value + float(above))
