"""The files of a matrix in its folder.

==========================  ====================================================================
``suite.json``              the suite; another one is refused
``lock``                    held while a matrix is filled here
``envs/ENV.json``           start of a column and its reference players
``cells/CELL.json``         result of a cell
``runs/CELL/``              its run directory, from which an interrupted cell resumes
``logs/``                   output of the workers
``report.html, report.md``  the report
==========================  ====================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ...envs.core.errors import BadValueError
from .cell import Cell, CellResult, EnvResult
from .suite import Suite

R = TypeVar("R", CellResult, EnvResult)


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

    def env_file(self, env_id: str) -> Path:
        """Result file of a column's start."""
        return self.root / "envs" / f"{env_id}.json"

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

    def env(self, suite: Suite, env_id: str) -> EnvResult | None:
        """Read the start of a column; None if there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        return _read(EnvResult, self.env_file(env_id), suite)


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
