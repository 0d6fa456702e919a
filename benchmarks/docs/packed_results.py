"""What packed results of suites say about one recipe on one environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ..claims.packing import is_packed
from ..cli.docstrings import table_cell
from ..matrix.cell import CellResult
from ..matrix.matrix_files import read_packed

WIDTH, HEIGHT = 120, 32
POINTS = 40


class PackedRow(NamedTuple):
    """One recipe in one column of one packed file.

    Attributes:
        file: Name of the file.
        command: Command that made the suite.
        recipe: Name of the recipe.
        label: Name of the suite's row, which may be a variant of the recipe.
        column: Name of the suite's column.
        cells: The finished cells, one per seed.
    """

    file: str
    command: str
    recipe: str
    label: str
    column: str
    cells: Sequence[CellResult]

    def table_row(self) -> str:
        """Return the row of a table: means over seeds, and the curve of training success."""
        areas = [cell.area for cell in self.cells if cell.area is not None]
        sampled = [cell.tries.mean("measured") for cell in self.cells if cell.tries]
        greedy = [cell.greedy_tries.mean("measured") for cell in self.cells if cell.greedy_tries]
        cells = (
            self.column,
            self.label,
            len(self.cells),
            _mean(areas),
            _mean(sampled),
            _mean(greedy),
            curve_svg([cell.training.values for cell in self.cells]),
        )
        return "| " + " | ".join(table_cell(cell) for cell in cells) + " |"


def packed_rows(folder: Path) -> list[PackedRow]:
    """Return the rows of every packed file of a folder (``benchmarks/results``)."""
    found: list[PackedRow] = []
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        if is_packed(path):  # outcomes of claims, no cells
            continue
        results = read_packed(path)
        command = f"turngym bench --suite {results.suite.name}"
        for row in results.suite.recipes:
            for column in results.suite.envs:
                cells = [
                    cell
                    for cell in results.cells.values()
                    if cell.state == "finished"
                    and (cell.cell.recipe, cell.cell.column) == (row.label, column.name)
                ]
                if cells:
                    found.append(
                        PackedRow(path.name, command, row.name, row.label, column.name, cells)
                    )
    return found


def curve_svg(curves: Iterable[Sequence[float]]) -> str:
    """Return the mean of curves as a small picture in SVG, empty without curves.

    Each curve has one value from 0 to 1 per training step; the shortest decides the length.
    """
    kept = [curve for curve in curves if len(curve) > 1]
    if not kept:
        return ""
    length = min(map(len, kept))
    means = [fmean(curve[i] for curve in kept) for i in range(length)]
    block = max(1, length // POINTS)
    points = [fmean(means[i : i + block]) for i in range(0, length, block)]
    last = max(len(points) - 1, 1)
    path = " ".join(
        f"{i * WIDTH / last:.1f},{HEIGHT - 1 - min(max(value, 0.0), 1.0) * (HEIGHT - 2):.1f}"
        for i, value in enumerate(points)
    )
    label = f"training success from {points[0]:.2f} to {points[-1]:.2f}"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.3f}" if known else "–"
