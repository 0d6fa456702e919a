"""The files of a matrix in its folder.

=============================  ====================================================================
``suite.json``                 the suite; another one is refused
``only.json``                  what was asked for, run by run; another choice is added
``lock``                       held while a matrix is filled here
``columns/COLUMN.json``        start of a column and its reference players
``searches/ROW--COLUMN.json``  learning rate of a row in a column
``cells/CELL.json``            result of a cell
``runs/CELL/``                 its run directory, from which an interrupted cell resumes
``runs/search/CELL--lrRATE/``  those of a search's trials
``logs/``                      output of the workers
``report.html, report.md``     the report
=============================  ====================================================================

`docs/file-formats.md` says what is in each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ...algos.runs.run_dir import read_json, write_json
from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError, DataError
from .cell import Cell, CellResult, ColumnResult, SearchResult
from .suite import Suite

_BEGUN = ("lock", "suite.json.part")
"""What a folder has that was left before its suite was written."""
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
    def only_file(self) -> Path:
        """``only.json``."""
        return self.root / "only.json"

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
                same = old.name == suite.name  # an earlier version, or one that was edited
                keep = f"; --reuse {self.root} takes over what both have" if same else ""
                if old.differs_in_seeds(suite):
                    raise BadValueError(
                        f"{self.root} contains suite {old.name!r} with another number of seeds: "
                        f"{len(old.seeds)}, not {len(suite.seeds)}. Give --seeds {len(old.seeds)}, "
                        f"or another folder{keep}."
                    )
                raise BadValueError(
                    f"{self.root} contains suite {old.name!r} version {old.version} "
                    f"({old.digest[:12]}), not {suite.name!r} version {suite.version} "
                    f"({suite.digest[:12]}). Choose another folder{keep}."
                )
            return
        others = sorted(p.name for p in self.root.iterdir() if p.name not in _BEGUN)
        if others:
            raise BadValueError(
                f"{self.root} is not empty ({', '.join(others[:5])}) but has no suite.json: "
                "it is not the folder of a matrix. Choose a new folder."
            )
        suite.write(self.suite_file)

    def choose(self, only: Sequence[str]) -> None:
        """Record what a run asks for, as ``--only`` names it; nothing asks for every cell."""
        chosen = list(dict.fromkeys([*self.choices(), tuple(only)]))
        write_json(self.only_file, {"runs": [list(one) for one in chosen]})

    def choices(self) -> tuple[tuple[str, ...], ...]:
        """Return what the runs asked for; nothing where no file says so.

        Raises:
            DataError: The file is damaged.
        """
        if not self.only_file.exists():
            return ()
        found = read_json(self.only_file).get("runs")
        if not isinstance(found, list):
            raise DataError(f"{self.only_file}: expected runs, a list of choices, got {found!r}.")
        return tuple(tuple(str(word) for word in one) for one in found)

    def cell(self, suite: Suite, cell: Cell) -> CellResult | None:
        """Read the result of a cell; None if there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        return self._read(CellResult, self.cell_file(cell), suite.cell_digest(cell))

    def column(self, suite: Suite, column: str) -> ColumnResult | None:
        """Read the start of a column; None if there is no file.

        One from before columns had a hash of their evaluation tasks has that of its cells.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        found = self._read(ColumnResult, self.column_file(column), suite.column_digest(column))
        if found is None or found.state != "finished" or found.tasks_digest:
            return found
        return found.model_copy(update={"tasks_digest": self._played_tasks(suite, column)})

    def _played_tasks(self, suite: Suite, column: str) -> str:
        """Hash of the evaluation tasks of a column's first cell that has one."""
        for cell in suite.cells:
            if cell.column != column:
                continue
            try:
                found = self.cell(suite, cell)
            except (DataError, BadValueError):
                continue  # told where the cell itself is asked for
            if found is not None and found.tasks_digest:
                return found.tasks_digest
        return ""

    def search(self, suite: Suite, recipe: str, column: str) -> SearchResult | None:
        """Read the learning rate of a row in a column; None if there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        digest = suite.search_digest(recipe, column)
        return self._read(SearchResult, self.search_file(recipe, column), digest)

    @cached_property
    def _suite_digest(self) -> str:
        """Hash of the suite as it is written, which a later schema of suites does not change."""
        return digest_of(json.loads(self.suite_file.read_text(encoding="utf-8")))

    def _read(self, kind: type[R], path: Path, digest: str) -> R | None:
        if not path.exists():
            return None
        found = vouched(kind.read(path), digest, lambda: self._suite_digest)
        if found.digest != digest:
            raise BadValueError(
                f"{path} belongs to another suite: it was computed from other settings (digest "
                f"{found.digest[:12] or 'none'}, expected {digest[:12]}). Remove the file to "
                "compute it again."
            )
        return found


def vouched(result: R, digest: str, suite_digest: Callable[[], str]) -> R:
    """Give a result without a digest that of its suite's item, if it was computed for that suite.

    Args:
        result: The result.
        digest: Digest of the item in the suite that the result lies beside.
        suite_digest: Hash of that suite as it is written.
    """
    if result.digest or result.suite_digest != suite_digest():
        return result
    return result.model_copy(update={"digest": digest})
