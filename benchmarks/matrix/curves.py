"""Learning curves over the budget: per environment, and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..stats import value_at
from .cell import CellResult
from .results import Results

Unit = Literal["tokens", "calls"]
RESAMPLES = 1000
GRID = 33
"""Places along the budget at which curves are read."""


@dataclass(frozen=True)
class Line:
    """A curve with its band, over shares of the budget from 0 to 1.

    Attributes:
        recipe: Whose.
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


def env_lines(results: Results, env_id: str, unit: Unit) -> list[Line]:
    """Returns of an environment over its budget, a line per recipe with a finished run.

    The band is a 95 % bootstrap interval over seeds; of one seed, the interval over tasks that its
    evaluations had.
    """
    limit = getattr(results.suite.env(env_id).limits, unit)
    lines = []
    for recipe in results.recipes:
        runs = [run for run in results.runs(recipe, env_id) if run.curve]
        if runs:
            lines.append(_line(recipe, runs, limit, unit))
    return lines


def budget_lines(
    results: Results, recipes: Sequence[str], envs: Sequence[str], unit: Unit
) -> list[Line]:
    """Normalised return over the share of the budget that is spent, a mean over environments.

    The band is a 95 % bootstrap interval over the runs' curves.
    """
    shares = np.linspace(0.0, 1.0, GRID)
    lines = []
    for recipe in recipes:
        curves = []
        for env_id in envs:
            scale = results.scale(env_id)
            runs = [run for run in results.runs(recipe, env_id) if run.curve]
            if scale is None or not runs:
                continue
            limit = getattr(results.suite.env(env_id).limits, unit)
            read = np.mean([_read(run, unit, shares * limit) for run in runs], axis=0)
            curves.append([scale.put(float(value)) for value in read])
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


def _banded(recipe: str, shares: list[float], curves: npt.NDArray[np.float64]) -> Line:
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


def _read(
    run: CellResult, unit: Unit, places: npt.NDArray[np.float64], what: str = "return_"
) -> list[float]:
    spent = [getattr(point, unit) for point in run.curve]
    values = [getattr(point, what) for point in run.curve]
    return [value_at(spent, values, float(at)) for at in places]
