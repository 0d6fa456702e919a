"""The state of a matrix while it is being filled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...algos.runs.run_dir import read_metrics
from ...envs.core.errors import DataError
from .cell import Cell, CellResult, EnvResult, State
from .jobs import Job, unfinished_result
from .layout import Layout
from .suite import Suite
from .train_cell import read_cost

DONE: tuple[State, ...] = ("finished",)
"""States that a later call does not compute again."""


class Board:
    """States and results of the requested cells and of their columns.

    Finished results in the folder are reused; everything else is computed.

    Args:
        suite: The suite.
        layout: The folder.
        cells: The requested cells.
    """

    def __init__(self, suite: Suite, layout: Layout, cells: Sequence[Cell]) -> None:
        self.suite, self.layout, self.cells = suite, layout, list(cells)
        self.results: dict[str, CellResult] = {}
        self.columns: dict[str, EnvResult] = {}
        self.running: dict[str, tuple[Job, float]] = {}
        self.reused = 0
        self.began = time.monotonic()
        for cell in self.cells:
            found = layout.cell(suite, cell)
            if found is not None and found.state in DONE:
                self.results[cell.key] = found
        self.reused = len(self.results)
        self._todo = [cell for cell in self.cells if cell.key not in self.results]
        for env_id in dict.fromkeys(cell.env_id for cell in self._todo):
            column = layout.env(suite, env_id)
            if column is not None and column.state in DONE:
                self.columns[env_id] = column

    def next_job(self) -> Job | None:
        """Return the next job that can start: in the suite's order, columns before their cells."""
        for cell in self._todo:
            if cell.env_id in self.running or cell.key in self.running:
                continue
            wanted = cell if cell.env_id in self.columns else None
            return Job(out=str(self.layout.root), env_id=cell.env_id, cell=wanted)
        return None

    @property
    def over(self) -> bool:
        """Return whether nothing is left to do."""
        return not self._todo and not self.running

    def start(self, job: Job) -> None:
        """Record that a job was given to a worker."""
        self.running[_name(job)] = (job, time.monotonic())

    def end(self, job: Job, death: str) -> list[CellResult]:
        """Record that a job ended; return the cells that it decided."""
        self.running.pop(_name(job))
        if job.cell is None:
            return self._end_column(job.env_id, death)
        return [self._end_cell(job.cell, death)]

    def mark_interrupted(self) -> None:
        """Mark running cells without a result as interrupted, after the workers were stopped."""
        for job, _ in self.running.values():
            if job.cell is None:
                continue
            found = self.layout.cell(self.suite, job.cell)
            if found is None or found.state not in (*DONE, "interrupted"):
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

    def _end_column(self, env_id: str, death: str) -> list[CellResult]:
        column = self.layout.env(self.suite, env_id)
        if death or column is None:
            column = EnvResult(
                suite_digest=self.suite.digest, env_id=env_id, state="failed", reason=death
            )
            column.write(self.layout.env_file(env_id))
        if column.state in DONE:
            self.columns[env_id] = column
            return []
        decided = []
        for cell in [cell for cell in self._todo if cell.env_id == env_id]:
            reason, _, trace = f"no start: {column.reason}".partition("\n")
            result = unfinished_result(self.suite, cell, self.layout, column.state, reason, trace)
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
        limits = self.suite.env(cell.env_id).limits
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


def _name(job: Job) -> str:
    return job.env_id if job.cell is None else job.cell.key
