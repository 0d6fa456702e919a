"""The files of a matrix in its folder.

=============================  ====================================================================
``suite.json``                 the suite; another one is refused
``lock``                       held while a matrix is filled here
``columns/COLUMN.json``        start of a column and its reference players
``searches/ROW--COLUMN.json``  learning rate of a row in a column
``cells/CELL.json``            result of a cell
``runs/CELL/``                 its run directory, from which an interrupted cell resumes
``logs/``                      output of the workers
``report.html, report.md``     the report
=============================  ====================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ...envs.core.errors import BadValueError
from .cell import Cell, CellResult, ColumnResult, SearchResult
from .suite import Suite

R = TypeVar("R", CellResult, ColumnResult, SearchResult)


class Layout:
    """The folder of a matrix.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    @property
    def suite_file(self) -> Path:
        """``suite.json``."""
        return self.root / "suite.json"

    @property
    def logs(self) -> Path:
        """Folder of the workers' output."""
        return self.root / "logs"

    def cell_file(self, cell: Cell) -> Path:
        """Result file of a cell."""
        return self.root / "cells" / f"{cell.key}.json"

    def column_file(self, column: str) -> Path:
        """Result file of a column's start."""
        return self.root / "columns" / f"{column}.json"

    def search_file(self, recipe: str, column: str) -> Path:
        """Result file of the search for a learning rate."""
        return self.root / "searches" / f"{recipe}--{column}.json"

    def search_dir(self, cell: Cell, rate: float) -> Path:
        """Run directory of a trial of a search."""
        return self.root / "runs" / "search" / f"{cell.key}--lr{rate:g}"

    def run_dir(self, cell: Cell) -> Path:
        """Run directory of a cell."""
        return self.root / "runs" / cell.key

    def claim(self, suite: Suite) -> None:
        """Claim the folder for a suite.

        Raises:
            BadValueError: It belongs to another suite, or is not empty.
        """
        if self.suite_file.exists():
            old = Suite.read(self.suite_file)
            if old.digest != suite.digest:
                raise BadValueError(
                    f"{self.root} contains suite {old.name!r} version {old.version} "
                    f"({old.digest[:12]}), not {suite.name!r} version {suite.version} "
                    f"({suite.digest[:12]}). Choose another folder."
                )
            return
        others = sorted(p.name for p in self.root.iterdir() if p.name != "lock")
        if others:
            raise BadValueError(
                f"{self.root} is not empty ({', '.join(others[:5])}) but has no suite.json: "
                "it is not the folder of a matrix. Choose a new folder."
            )
        suite.write(self.suite_file)

    def cell(self, suite: Suite, cell: Cell) -> CellResult | None:
        """Read the result of a cell; None if there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        return _read(CellResult, self.cell_file(cell), suite)

    def column(self, suite: Suite, column: str) -> ColumnResult | None:
        """Read the start of a column; None if there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        return _read(ColumnResult, self.column_file(column), suite)

    def search(self, suite: Suite, recipe: str, column: str) -> SearchResult | None:
        """Read the learning rate of a row in a column; None if there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        return _read(SearchResult, self.search_file(recipe, column), suite)


def _read(kind: type[R], path: Path, suite: Suite) -> R | None:
    if not path.exists():
        return None
    found = kind.read(path)
    if found.suite_digest != suite.digest:
        raise BadValueError(
            f"{path} belongs to a suite of digest {found.suite_digest[:12]}, the folder to "
            f"{suite.name!r} ({suite.digest[:12]}). Remove the file to compute it again."
        )
    return found
