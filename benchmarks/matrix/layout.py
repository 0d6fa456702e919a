"""Where the files of a matrix lie in its folder.

==========================  ====================================================================
``suite.json``              the suite; another one is refused
``lock``                    held while a matrix is filled here
``envs/ENV.json``           start of a column and its reference players
``cells/CELL.json``         what came of a cell
``runs/CELL/``              its run directory: an interrupted cell goes on from there
``logs/``                   what the workers wrote
``report.html, report.md``  the report
==========================  ====================================================================
"""

from __future__ import annotations

from pathlib import Path

from ...envs.errors import BadValueError
from .cell import Cell, CellResult, EnvResult
from .suite import Suite


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

    def adopt(self, suite: Suite) -> None:
        """Make the folder this suite's.

        Raises:
            BadValueError: It belongs to another one, or to something else.
        """
        if self.suite_file.exists():
            old = Suite.read(self.suite_file)
            if old.digest != suite.digest:
                raise BadValueError(
                    f"{self.root} holds suite {old.name!r} version {old.version} "
                    f"({old.digest[:12]}), not {suite.name!r} version {suite.version} "
                    f"({suite.digest[:12]}). Give another folder."
                )
            return
        strangers = sorted(p.name for p in self.root.iterdir() if p.name != "lock")
        if strangers:
            raise BadValueError(
                f"{self.root} is not empty ({', '.join(strangers[:5])}) but holds no suite.json: "
                "it is no matrix folder. Give a new folder."
            )
        suite.write(self.suite_file)

    def cell(self, suite: Suite, cell: Cell) -> CellResult | None:
        """Result of a cell; None where there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        path = self.cell_file(cell)
        if not path.exists():
            return None
        found = CellResult.read(path)
        _same(path, found.suite_digest, suite)
        return found

    def env(self, suite: Suite, env_id: str) -> EnvResult | None:
        """Start of a column; None where there is no file.

        Raises:
            DataError: The file is damaged.
            BadValueError: It belongs to another suite.
        """
        path = self.env_file(env_id)
        if not path.exists():
            return None
        found = EnvResult.read(path)
        _same(path, found.suite_digest, suite)
        return found


def _same(path: Path, digest: str, suite: Suite) -> None:
    if digest != suite.digest:
        raise BadValueError(
            f"{path} belongs to a suite of digest {digest[:12]}, the folder to {suite.name!r} "
            f"({suite.digest[:12]}). Remove the file to compute it again."
        )
