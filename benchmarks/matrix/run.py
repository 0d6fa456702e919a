"""Fill a matrix: send jobs to workers until every cell has a result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...algos.runs.interrupts import terminate_as_interrupt
from ...algos.runs.run_dir import RunLockedError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.system import try_lock
from .board import Board
from .cell import Cell
from .executors import Executor
from .layout import Layout
from .progress_view import View
from .suite import Suite

WAIT_S = 0.5


def run_matrix(
    suite: Suite,
    out: Path | str,
    executor: Executor,
    view: View,
    cells: Sequence[Cell] | None = None,
    *,
    only: Sequence[str] = (),
) -> Board:
    """Compute the cells that have no finished result yet.

    Args:
        suite: The suite.
        out: Folder of the matrix; finished results in it are reused.
        executor: Runs the jobs; stopped at the end.
        view: Shows the progress.
        cells: The requested cells; all by default.
        only: How they were chosen, as ``--only`` says it, for the report.

    Raises:
        BadValueError: The folder belongs to another suite.
        RunLockedError: Another process fills a matrix there.
        KeyboardInterrupt: After the running cells were saved; the same call resumes.
    """
    layout = Layout(out)
    make_folder(layout.root)
    with lock_folder(layout.root / "lock"), terminate_as_interrupt():
        layout.claim(suite)
        layout.choose(only)
        board = Board(suite, layout, suite.cells if cells is None else cells)
        try:
            with view:
                _fill(board, executor, view)
        finally:
            executor.stop()
            board.mark_interrupted()
    return board


def _fill(board: Board, executor: Executor, view: View) -> None:
    view.show(board, [], executor.slots)
    while not board.over:
        while len(board.running) < executor.slots and (job := board.next_job()) is not None:
            executor.submit(job)
            board.start(job)
        ended = executor.wait(WAIT_S)
        decided = [result for one in ended for result in board.end(one.job, one.death)]
        view.show(board, decided, executor.slots)


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Lock a folder for this process; the system releases the lock when the process ends.

    Raises:
        RunLockedError: Another process holds it.
    """
    with path.open("a+", encoding="utf-8") as file:
        if not try_lock(file, "filling a folder of cells"):
            file.seek(0)
            raise RunLockedError(
                f"{path.parent} is being filled by {file.read().strip() or 'another process'}. "
                "Wait until it ends, or give another folder."
            )
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
