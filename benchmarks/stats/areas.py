"""Learning curves as numbers: the value at a budget, and the mean value on the way there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...envs.errors import BadValueError

Floats = npt.NDArray[np.float64]


def value_at(spent: Sequence[float], values: Sequence[float], at: float) -> float:
    """The curve's value when ``at`` is spent: straight lines between points, flat outside.

    Args:
        spent: Tokens or calls at each point, never falling; of equal ones the last counts.
        values: The curve there.
        at: Where to read it.

    Raises:
        BadValueError: Not a curve.
    """
    xs, ys = _curve(spent, values)
    return float(np.interp(at, xs, ys))


def area_under(spent: Sequence[float], values: Sequence[float], limit: float) -> float:
    """Mean value of the curve over the budget ``0 .. limit``; in the unit of the values.

    What lies beyond the limit does not count, so that runs which overshoot by a step gain nothing.
    A curve that ends early keeps its last value: training was over.

    Raises:
        BadValueError: Not a curve, or a limit of 0 or less.
    """
    if not limit > 0:
        raise BadValueError(f"area under a curve: the limit is {limit}; expected above 0.")
    xs, ys = _curve(spent, values)
    inner = (xs > 0) & (xs < limit)
    grid = np.concatenate([[0.0], xs[inner], [limit]])
    heights = np.concatenate([[np.interp(0.0, xs, ys)], ys[inner], [np.interp(limit, xs, ys)]])
    return float(np.trapezoid(heights, grid) / limit)


def _curve(spent: Sequence[float], values: Sequence[float]) -> tuple[Floats, Floats]:
    xs, ys = np.asarray(spent, dtype=np.float64), np.asarray(values, dtype=np.float64)
    good = xs.ndim == ys.ndim == 1 and len(xs) == len(ys) > 0
    if not (good and bool(np.isfinite(xs).all() and np.isfinite(ys).all())):
        raise BadValueError(
            f"curve: {len(xs)} places and {len(ys)} values; expected as many finite ones of each, "
            "at least one."
        )
    if bool((np.diff(xs) < 0).any()):
        raise BadValueError("curve: what was spent falls from one point to the next.")
    last = np.append(np.diff(xs) > 0, True)
    return xs[last], ys[last]
