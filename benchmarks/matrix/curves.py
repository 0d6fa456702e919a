"""Learning curves over the budget: per environment, and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from .cell import CellResult
from .results import Results

Floats = npt.NDArray[np.float64]
Unit = Literal["tokens", "calls"]
RESAMPLES = 1000
GRID = 33
"""Number of points along the budget at which curves are sampled."""


@dataclass(frozen=True)
class Line:
    """A curve with its band, over shares of the budget from 0 to 1.

    Attributes:
        recipe: The recipe.
        spent: Shares of the budget.
        mean: The curve.
        low: Lower edge of its band.
        high: Upper edge.
    """

    recipe: str
    spent: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def env_lines(results: Results, column: str, unit: Unit) -> list[Line]:
    """Make the lines of an environment's returns over its budget, one per recipe.

    The band is a 95 % bootstrap interval over seeds; of one seed, the interval over tasks that its
    evaluations had.
    """
    limit = getattr(results.suite.column(column).limits, unit)
    lines = []
    for recipe in results.recipes:
        runs = [run for run in results.runs(recipe, column) if run.curve]
        if runs:
            lines.append(_line(recipe, runs, limit, unit))
    return lines


def budget_lines(
    results: Results, recipes: Sequence[str], envs: Sequence[str], unit: Unit
) -> list[Line]:
    """Make the lines of the mean normalised return over the used share of the budget.

    The band is a 95 % bootstrap interval over the runs' curves.
    """
    shares = np.linspace(0.0, 1.0, GRID)
    lines = []
    for recipe in recipes:
        curves = []
        for column in envs:
            scale = results.scale(column)
            runs = [run for run in results.runs(recipe, column) if run.curve]
            if scale is None or not runs:
                continue
            limit = getattr(results.suite.column(column).limits, unit)
            read = np.mean([_read(run, unit, shares * limit) for run in runs], axis=0)
            curves.append([scale.normalise(float(value)) for value in read])
        if curves:
            lines.append(_banded(recipe, shares.tolist(), np.asarray(curves)))
    return lines


def _line(recipe: str, runs: Sequence[CellResult], limit: float, unit: Unit) -> Line:
    shares = np.linspace(0.0, 1.0, GRID)
    if len(runs) > 1:
        return _banded(
            recipe, shares.tolist(), np.asarray([_read(r, unit, shares * limit) for r in runs])
        )
    run = runs[0]
    edges = [_read(run, unit, shares * limit, edge) for edge in ("return_low95", "return_high95")]
    return Line(
        recipe=recipe,
        spent=shares.tolist(),
        mean=_read(run, unit, shares * limit),
        low=edges[0],
        high=edges[1],
    )


def _banded(recipe: str, shares: list[float], curves: Floats) -> Line:
    drawn = np.random.default_rng(0).integers(len(curves), size=(RESAMPLES, len(curves)))
    # Whole curves are drawn, so that the band is of curves and not of places along them.
    low, high = np.percentile(curves[drawn].mean(axis=1), [2.5, 97.5], axis=0)
    return Line(
        recipe=recipe,
        spent=shares,
        mean=curves.mean(axis=0).tolist(),
        low=low.tolist(),
        high=high.tolist(),
    )


def _read(run: CellResult, unit: Unit, places: Floats, what: str = "return_") -> list[float]:
    spent = [getattr(point, unit) for point in run.curve]
    values = [getattr(point, what) for point in run.curve]
    return [value_at(spent, values, float(at)) for at in places]


def value_at(spent: Sequence[float], values: Sequence[float], at: float) -> float:
    """Interpolate the curve linearly at ``at``; it is constant outside its points.

    Args:
        spent: Tokens or calls at each point, never falling; of equal ones the last counts.
        values: The curve there.
        at: Where to read it.

    Raises:
        BadValueError: The points are not a curve.
    """
    xs, ys = _curve(spent, values)
    return float(np.interp(at, xs, ys))


def area_under(spent: Sequence[float], values: Sequence[float], limit: float) -> float:
    """Return the mean value of the curve over the budget ``0 .. limit``.

    Points beyond the limit do not count, so runs that overshoot by a step gain nothing. A curve
    that ends early continues with its last value.

    Raises:
        BadValueError: The points are not a curve, or the limit is not positive.
    """
    if not limit > 0:
        raise BadValueError(f"area under a curve: the limit is {limit}; expected above 0.")
    xs, ys = _curve(spent, values)
    inner = (xs > 0) & (xs < limit)
    grid = np.concatenate([[0.0], xs[inner], [limit]])
    heights = np.concatenate([[np.interp(0.0, xs, ys)], ys[inner], [np.interp(limit, xs, ys)]])
    return float(np.trapezoid(heights, grid) / limit)


def _curve(
    spent: Sequence[float], values: Sequence[float]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    xs, ys = np.asarray(spent, dtype=np.float64), np.asarray(values, dtype=np.float64)
    good = xs.ndim == ys.ndim == 1 and len(xs) == len(ys) > 0
    if not (good and bool(np.isfinite(xs).all() and np.isfinite(ys).all())):
        raise BadValueError(
            f"curve: {len(xs)} places and {len(ys)} values; expected equally many finite "
            "ones, at least one."
        )
    if bool((np.diff(xs) < 0).any()):
        raise BadValueError("curve: the spent budget decreases; expected sorted points.")
    last = np.append(np.diff(xs) > 0, True)
    return xs[last], ys[last]
