"""Do gradient cosines order recipes as their areas do? Reports of the microscope and a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...envs.core.errors import DataError
from ...envs.utils.seed_tests import rank_correlation
from ..matrix.results import Results
from ..matrix.suite import SuiteEnv
from .report import FILE, CreditReport

MEASURES = ("cosine_batch", "cosine_turns", "cosine_mean", "rank", "explained", "signal_per_1k")
"""Measures that are set against areas; the first one is the claim's."""
ENOUGH = 40
"""Cells that the claim asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditCell:
    """A recipe on an environment: what the microscope saw, and how it learned.

    Attributes:
        column: Column of the matrix.
        recipe: Row of the matrix.
        measures: Of the microscope, by name.
        area: Mean area over seeds.
        seeds: Number of seeds.
    """

    column: str
    recipe: str
    measures: dict[str, float]
    area: float
    seeds: int

    @property
    def cosine(self) -> float:
        """The measure of the claim."""
        return self.measures[MEASURES[0]]


def read_cells(results: str, reports: Sequence[str]) -> list[CreditCell]:
    """Return the cells that are both in the reports and in the matrix.

    Args:
        results: Folder of a matrix, or its packed results.
        reports: Files ``credit.json``, or folders with one.

    Raises:
        DataError: A file that is missing or damaged, a report of an environment that the matrix
            does not have, or a cell that two reports describe.
    """
    matrix = Results.read(Path(results))
    cells: dict[tuple[str, str], CreditCell] = {}
    for name in reports:
        path = Path(name) / FILE if Path(name).is_dir() else Path(name)
        report = CreditReport.read(path)
        column = _column(matrix, report, path)
        for row in report.rows:
            areas = matrix.areas(row.name, column) if row.name in matrix.recipes else {}
            if row.role != "recipe" or not areas or MEASURES[0] not in row.measures:
                continue
            if (column, row.name) in cells:
                raise DataError(
                    f"{path}: {row.name} on {column} is in an earlier report as well. Give one "
                    "report per environment and policy."
                )
            cells[column, row.name] = CreditCell(
                column=column,
                recipe=row.name,
                measures={m: v.value for m, v in row.measures.items() if m in MEASURES},
                area=float(np.mean(list(areas.values()))),
                seeds=len(areas),
            )
    if not cells:
        raise DataError(
            f"credit: no recipe of the reports has a finished run with an area in {results}; rows "
            f"there: {', '.join(matrix.recipes)}."
        )
    return list(cells.values())


def _column(matrix: Results, report: CreditReport, path: Path) -> str:
    """Return the column of the report's environment: the one with most of its settings."""

    def agrees(column: SuiteEnv) -> bool:
        given = report.env_settings
        return column.id == report.env_id and all(
            given.get(name) == str(value) for name, value in column.settings.items()
        )

    fitting = [c for c in matrix.suite.envs if c.name in matrix.envs and agrees(c)]
    if not fitting:
        raise DataError(
            f"{path}: the matrix has no column of {report.env_id} with settings "
            f"{report.env_settings}; columns: {', '.join(matrix.envs)}."
        )
    return max(fitting, key=lambda column: len(column.settings)).name


def correlate(cells: Sequence[CreditCell]) -> list[str]:
    """Return what the rank correlations say, a line per measure.

    Areas of different environments have different scales, so both sides are ranked within their
    environment first; environments are resampled as a whole. Environments with one recipe, or in
    which one side does not vary, have no order and are left out.
    """
    lines = []
    for measure in MEASURES:
        known = [cell for cell in cells if measure in cell.measures]
        x, y, columns = within_columns(known, measure)
        if len(set(columns)) < 2 or len(x) < 3:
            lines.append(f"{measure}: not decided, needs at least two environments with an order")
            continue
        found = rank_correlation(x, y, columns)
        few = f"; the claim asks for {ENOUGH} cells" if len(x) < ENOUGH else ""
        lines.append(
            f"{measure}: rank correlation with the area {found.rho:.2f} ({found.low95:.2f} to "
            f"{found.high95:.2f}, p {found.p:.3f}) over {len(x)} cells of {len(set(columns))} "
            f"environments{few}"
        )
    return lines


def within_columns(
    cells: Sequence[CreditCell], measure: str
) -> tuple[list[float], list[float], list[str]]:
    """Return ranks in [0, 1] within each column: of the measure, of the area, and the column."""
    from scipy.stats import rankdata  # slow to import

    x: list[float] = []
    y: list[float] = []
    columns: list[str] = []
    for column in dict.fromkeys(cell.column for cell in cells):
        inside = [cell for cell in cells if cell.column == column]
        sides = [cell.measures[measure] for cell in inside], [cell.area for cell in inside]
        if len(inside) < 2 or any(np.ptp(side) == 0 for side in sides):
            continue
        ranks = [(rankdata(side) - 1) / (len(inside) - 1) for side in sides]
        x += ranks[0].tolist()
        y += ranks[1].tolist()
        columns += [column] * len(inside)
    return x, y, columns
