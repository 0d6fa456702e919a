"""Learning curves over the budget: per column, and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ...envs.utils.seed_tests import seed_interval
from .cell import CellResult
from .measure import WINDOW, running_means
from .results import SHARES, Results

Floats = npt.NDArray[np.float64]
Unit = Literal["tokens", "calls"]
GRID = 33
"""Number of points along a curve at which it is sampled."""


@dataclass(frozen=True)
class Line:
    """A curve with its band, over shares of the budget from 0 to 1.

    Attributes:
        recipe: The row.
        spent: Shares of the budget, as far as all of its runs went.
        mean: The curve.
        low: Lower edge of its band; empty of one seed, which has none.
        high: Upper edge.
    """

    recipe: str
    spent: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def env_lines(results: Results, column: str, unit: Unit) -> list[Line]:
    """Make the lines of a column's measure in training over its budget, one per row.

    A point is the mean of the training rollouts over the tenth of the line before it. The band is
    Student's 95 % interval over seeds at each point. A line ends where the first of its runs does.
    """
    lines = []
    for recipe in results.recipes:
        end = _end(results, recipe, [column], unit)
        curves = list(_by_seed(results, recipe, column, unit, end).values())
        if curves:
            lines.append(_banded(recipe, np.asarray(curves), end))
    return lines


def budget_lines(
    results: Results, recipes: Sequence[str], envs: Sequence[str], unit: Unit
) -> list[Line]:
    """Make the lines of the mean normalised measure over the used share of the budget.

    A seed's curve is the mean over the columns; the band is Student's over the seeds. A line ends
    at the share of the budget at which the first of its runs does.
    """
    lines = []
    for recipe in recipes:
        found = []
        end = _end(results, recipe, envs, unit)
        for column in envs:
            curves = _by_seed(results, recipe, column, unit, end)
            found += [curves] if curves else []
        seeds = set.intersection(*(set(curves) for curves in found)) if found else set()
        if seeds:
            means = [np.mean([curves[seed] for curves in found], axis=0) for seed in sorted(seeds)]
            lines.append(_banded(recipe, np.asarray(means), end))
    return lines


def _end(results: Results, recipe: str, columns: Sequence[str], unit: Unit) -> float:
    """Return the share of the budget at which the first run of a row ends, at most 1."""
    spent = [
        getattr(run.training, unit)[-1] / getattr(results.suite.column(column).limits, unit)
        for column in columns
        for run in _with_curve(results, recipe, column)
    ]
    return min([1.0, *spent])


def _with_curve(results: Results, recipe: str, column: str) -> list[CellResult]:
    return [run for run in results.runs(recipe, column) if run.training.values]


def _by_seed(
    results: Results, recipe: str, column: str, unit: Unit, end: float
) -> dict[int, list[float]]:
    """Return the curve of each seed's run, up to a share of the budget."""
    limit = getattr(results.suite.column(column).limits, unit)
    scale = results.measure_scale(column) or SHARES
    places = (np.linspace(0.0, end, GRID) * limit).tolist()
    return {
        run.cell.seed: [scale.normalise(v) for v in _read(run, unit, places)]
        for run in _with_curve(results, recipe, column)
    }


def _read(run: CellResult, unit: Unit, places: Sequence[float]) -> list[float]:
    spent = getattr(run.training, unit)
    return running_means(spent, run.training.values, places, WINDOW * places[-1])


def _banded(recipe: str, curves: Floats, end: float) -> Line:
    mean = curves.mean(axis=0)
    bands = [seed_interval(at) for at in curves.T] if len(curves) > 1 else []
    return Line(
        recipe=recipe,
        spent=np.linspace(0.0, end, GRID).tolist(),
        mean=mean.tolist(),
        low=[band.low95 for band in bands],
        high=[band.high95 for band in bands],
    )


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
