"""Take finished results of other folders and packed files over into the folder of a matrix.

What counts is the digest of what a result depends on, so results of an older version of a suite, or
of another suite, are taken where the same was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...envs.utils.disk_cache import make_folder
from .board import DONE
from .cell import ColumnResult
from .layout import Layout
from .matrix_files import MatrixFiles, read_part
from .run import lock_folder
from .suite import Suite


class Reused(NamedTuple):
    """What one source gave.

    Attributes:
        source: Where from.
        taken: Finished cells that were taken over.
        known: Finished cells that the folder had already.
        other: Finished cells that are no cells of the suite, or were computed from other settings.
        other_start: Finished cells whose starting model is another than that of the folder's
            column.
        other_tasks: Finished cells that were scored on other evaluation tasks than the folder's
            column, as where the environment has changed in between.
    """

    source: Path
    taken: int
    known: int
    other: int
    other_start: int
    other_tasks: int = 0

    def __str__(self) -> str:
        notes = (
            (self.known, "were there before"),
            (self.other, "belong to no cell of this suite"),
            (self.other_start, "started from another model"),
            (self.other_tasks, "were scored on other tasks"),
        )
        more = "".join(f"; {count} {what}" for count, what in notes if count)
        return f"{self.taken} finished cells of {self.source}{more}"


def reuse_results(suite: Suite, out: Path, sources: Sequence[Path]) -> list[Reused]:
    """Copy the finished results that belong to a suite into its folder; earlier sources win.

    Columns keep the start that they were computed from. A packed file has no starting models: where
    cells of a column are still missing, its model is made again and has to be the same.

    Args:
        suite: The suite.
        out: Folder of the matrix, new or not.
        sources: Folders of matrices, also such as are being filled, and packed files.

    Returns:
        One entry per source.

    Raises:
        BadValueError: The folder belongs to another suite.
        DataError: A source is no matrix, or is damaged.
        RunLockedError: Another process fills a matrix in the folder.
    """
    parts = [read_part(source) for source in sources]
    layout = Layout(out)
    make_folder(out)
    with lock_folder(out / "lock"):
        layout.claim(suite)
        return [
            _take(suite, layout, part.adopted(suite), source)
            for part, source in zip(parts, sources, strict=True)
        ]


def _take(suite: Suite, layout: Layout, part: MatrixFiles, source: Path) -> Reused:
    for name, column in part.columns.items():
        old = layout.column(suite, name)
        if column.state in DONE and (old is None or old.state not in DONE):
            column.write(layout.column_file(name))
    columns = {
        name: column
        for name in part.columns
        if (column := layout.column(suite, name)) is not None and column.state in DONE
    }
    for (row, name), search in part.searches.items():
        own = part.columns.get(name)
        known = layout.search(suite, row, name)
        same = own is not None and _is_start(columns.get(name), own.start_digest)
        if search.state in DONE and same and (known is None or known.state not in DONE):
            search.write(layout.search_file(row, name))
    taken = known = other_start = other_tasks = 0
    for result in part.cells.values():
        if result.state not in DONE:
            continue
        old, column = layout.cell(suite, result.cell), columns.get(result.cell.column)
        if old is not None and old.state in DONE:
            known += 1
        elif not _is_start(column, result.start_digest):
            other_start += 1
        elif column is not None and column.has_other_tasks(result.tasks_digest):
            other_tasks += 1
        else:
            result.write(layout.cell_file(result.cell))
            taken += 1
    return Reused(source, taken, known, part.left_out, other_start, other_tasks)


def _is_start(column: ColumnResult | None, digest: str) -> bool:
    return column is not None and column.start_digest == digest
