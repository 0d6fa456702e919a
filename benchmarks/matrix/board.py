"""The state of a matrix while it is being filled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...algos.runs.run_dir import read_metrics
from ...envs.core.errors import DataError
from .cell import Cell, CellResult, ColumnResult, SearchResult, State
from .jobs import Job, failed_column, failed_search, rate_row, unfinished_result
from .layout import Layout
from .matrix_files import check_columns
from .suite import Suite
from .train_cell import has_model, read_cost

DONE: tuple[State, ...] = ("finished",)
"""States that a later call does not compute again."""
OTHER_START = (
    "the starting model made here is another one than that of the results that are there (made on "
    "another machine, it may differ by rounding). Fill this on the machine that made them, copy "
    "its model from there{place}, or fill a new folder without them."
)
OTHER_TASKS = (
    "its evaluation tasks are not those of the results that are there: the environment's code or "
    "data have changed. Fill a new folder, or go back to the version that this one was begun with."
)


class Board:
    """States and results of the requested cells, of their columns and learning rates.

    Finished results in the folder are reused; everything else is computed. ``no_start`` has the
    columns whose start could not be made, with the number of cells that this stopped.

    Args:
        suite: The suite.
        layout: The folder.
        cells: The requested cells.
    """

    def __init__(self, suite: Suite, layout: Layout, cells: Sequence[Cell]) -> None:
        self.suite, self.layout, self.cells = suite, layout, list(cells)
        self.results: dict[str, CellResult] = {}
        self.columns: dict[str, ColumnResult] = {}
        self.searches: dict[tuple[str, str], SearchResult] = {}
        self.running: dict[str, tuple[Job, float]] = {}
        self._without_model: dict[str, ColumnResult] = {}
        self.no_start: dict[str, int] = {}
        self.reused = 0
        self.began = time.monotonic()
        for cell in self.cells:
            found = layout.cell(suite, cell)
            if found is not None and found.state in DONE:
                self.results[cell.key] = found
        self.reused = len(self.results)
        self._todo = [cell for cell in self.cells if cell.key not in self.results]
        for name in dict.fromkeys(cell.column for cell in self._todo):
            column = layout.column(suite, name)
            if column is None or column.state not in DONE:
                continue
            if has_model(column):
                self.columns[name] = column
            else:  # taken over without its model, or moved here from another machine
                self._without_model[name] = column
        check_columns({**self.columns, **self._without_model}, self.results)
        if suite.lr_search is not None:
            for row, name in dict.fromkeys(self._searched(cell) for cell in self._todo):
                search = layout.search(suite, row, name)
                if search is not None and search.state in DONE:
                    self.searches[row, name] = search

    def next_job(self) -> Job | None:
        """Return the next job that can start, in the suite's order.

        A column comes before its cells, the search for a learning rate before the cells of its row.
        """
        for cell in self._todo:
            job = self._needed(cell)
            if job.key not in self.running:
                return job
        return None

    def _needed(self, cell: Cell) -> Job:
        out = str(self.layout.root)
        if cell.column not in self.columns:
            return Job(out=out, column=cell.column)
        row, _ = self._searched(cell)
        if self.suite.lr_search is not None and (row, cell.column) not in self.searches:
            return Job(out=out, column=cell.column, recipe=row)
        return Job(out=out, column=cell.column, cell=cell)

    def _searched(self, cell: Cell) -> tuple[str, str]:
        return rate_row(self.suite, cell.recipe), cell.column

    @property
    def over(self) -> bool:
        """Return whether nothing is left to do."""
        return not self._todo and not self.running

    def start(self, job: Job) -> None:
        """Record that a job was given to a worker."""
        self.running[job.key] = (job, time.monotonic())

    def end(self, job: Job, death: str) -> list[CellResult]:
        """Record that a job ended; return the cells that it decided."""
        self.running.pop(job.key)
        if job.cell is not None:
            return [self._end_cell(job.cell, death)]
        return self._end_search(job, death) if job.recipe else self._end_column(job.column, death)

    def mark_interrupted(self) -> None:
        """Mark running cells without a result as interrupted, after the workers were stopped.

        One that was tried again keeps its failure: it is no cell that was never computed.
        """
        for job, _ in self.running.values():
            if job.cell is not None and self.layout.cell(self.suite, job.cell) is None:
                cut = unfinished_result(self.suite, job.cell, self.layout, "interrupted", "stopped")
                cut.write(self.layout.cell_file(job.cell))
        self.running.clear()

    def _end_cell(self, cell: Cell, death: str) -> CellResult:
        if death:
            result = unfinished_result(self.suite, cell, self.layout, "failed", death)
            result.write(self.layout.cell_file(cell))
        else:
            found = self.layout.cell(self.suite, cell)
            if found is None:
                raise DataError(f"{self.layout.cell_file(cell)}: the worker wrote no result.")
            result = found
        self._decide(result)
        return result

    def _end_column(self, name: str, death: str) -> list[CellResult]:
        column = self.layout.column(self.suite, name)
        if death or column is None:
            column = failed_column(self.suite, name, "failed", death)
            column.write(self.layout.column_file(name))
        column = self._same_as_before(name, column)
        if column.state in DONE:
            self.columns[name] = column
            return []
        waiting = [cell for cell in self._todo if cell.column == name]
        self.no_start[name] = len(waiting)
        return self._without(waiting, column.state, f"no start: {column.reason}")

    def _same_as_before(self, name: str, made: ColumnResult) -> ColumnResult:
        """Hold a column that was made anew against the one that reused results had."""
        old = self._without_model.pop(name, None)
        if old is None:
            return made
        others = made.has_other_tasks(old.tasks_digest)
        if made.state in DONE and made.start_digest == old.start_digest and not others:
            return made
        old.write(self.layout.column_file(name))
        if made.state not in DONE:
            return made
        if others:
            return failed_column(self.suite, name, "failed", OTHER_TASKS)
        place = f" to {made.start}" if made.start else ""
        return failed_column(self.suite, name, "failed", OTHER_START.format(place=place))

    def _end_search(self, job: Job, death: str) -> list[CellResult]:
        search = self.layout.search(self.suite, job.recipe, job.column)
        if death or search is None:
            search = failed_search(self.suite, job.recipe, job.column, self.layout, death)
            search.write(self.layout.search_file(job.recipe, job.column))
        if search.state in DONE:
            self.searches[job.recipe, job.column] = search
            return []
        waiting = [cell for cell in self._todo if self._searched(cell) == (job.recipe, job.column)]
        prefix = "" if search.state == "refused" else "no learning rate: "
        return self._without(waiting, search.state, prefix + search.reason)

    def _without(self, cells: Sequence[Cell], state: State, why: str) -> list[CellResult]:
        """Decide cells that lack what they need."""
        reason, _, trace = why.partition("\n")
        decided = []
        for cell in cells:
            result = unfinished_result(self.suite, cell, self.layout, state, reason, trace)
            result.write(self.layout.cell_file(cell))
            self._decide(result)
            decided.append(result)
        return decided

    def _decide(self, result: CellResult) -> None:
        self.results[result.cell.key] = result
        self._todo.remove(result.cell)

    def state(self, cell: Cell) -> State:
        """Return the state of a cell."""
        if cell.key in self.results:
            return self.results[cell.key].state
        return "running" if cell.key in self.running else "waiting"

    def counts(self) -> Counter[State]:
        """Count the cells by state."""
        return Counter(self.state(cell) for cell in self.cells)

    def share(self, cell: Cell) -> float:
        """Return the used share of a running cell's budget, read from its metrics."""
        limits = self.suite.column(cell.column).limits
        try:
            rows: list[dict[str, Any]] = read_metrics(self.layout.run_dir(cell) / "metrics.jsonl")
        except DataError:
            return 0.0  # a line that is being written; the next look reads it
        now = read_cost(rows)
        parts = [now.tokens / limits.tokens, now.calls / limits.calls]
        if limits.steps:
            parts.append(now.steps / limits.steps)
        return min(1.0, max(parts))

    def seconds_left(self, slots: int) -> float | None:
        """Estimate the remaining time from the cells that ended; None before the first one."""
        done = len(self.results) - self.reused
        if not done:
            return None
        each = (time.monotonic() - self.began) / done
        return each * len(self._todo) if slots else None
