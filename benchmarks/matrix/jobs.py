"""Jobs of workers; their results are files."""

from __future__ import annotations

import traceback
from pathlib import Path

from ...algos.runs.run_dir import read_metrics
from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...leaderboard.schema.base import Form
from .cell import Cell, CellResult, EnvResult, State
from .layout import Layout
from .suite import Suite

TRACE_LINES = 40
"""Maximum lines of a stored traceback."""


class Job(Form):
    """Prepare a column or compute a cell of a matrix.

    Attributes:
        out: The folder.
        env_id: The column.
        cell: The cell; None to prepare the column.
    """

    out: str
    env_id: str
    cell: Cell | None = None

    def __str__(self) -> str:
        return f"start of {self.env_id}" if self.cell is None else str(self.cell)


def perform(job: Job) -> State:
    """Execute a job and write its result file.

    An error is stored as the result, so that the other cells continue.

    Raises:
        KeyboardInterrupt: The job was stopped; its result is ``interrupted``.
    """
    layout = Layout(job.out)
    suite = Suite.read(layout.suite_file)
    result: CellResult | EnvResult
    if job.cell is None:
        result = _column(suite, job.env_id)
        result.write(layout.env_file(job.env_id))
        return result.state
    try:
        result = _cell(suite, job.cell, layout)
    except KeyboardInterrupt:
        unfinished_result(suite, job.cell, layout, "interrupted", "stopped").write(
            layout.cell_file(job.cell)
        )
        raise
    result.write(layout.cell_file(job.cell))
    return result.state


def unfinished_result(
    suite: Suite, cell: Cell, layout: Layout, state: State, reason: str, trace: str = ""
) -> CellResult:
    """Make the result of a cell that did not finish, with its cost until then."""
    from .train_cell import make_result, read_cost

    try:
        used = read_cost(read_metrics(layout.run_dir(cell) / "metrics.jsonl"))
    except DataError as damage:
        return make_result(suite, cell, state, f"{reason} ({damage})", trace)
    return make_result(suite, cell, state, reason, trace).model_copy(update={"used": used})


def _cell(suite: Suite, cell: Cell, layout: Layout) -> CellResult:
    try:
        from .train_cell import train_cell

        start = layout.env(suite, cell.env_id)
        if start is None or start.state != "finished":
            raise DataError(f"{cell}: its column has no start; prepare the column first.")
        return train_cell(suite, cell, start, layout)
    except Exception as error:  # noqa: BLE001 - recorded in the cell, whatever it was
        return unfinished_result(
            suite, cell, layout, "failed", describe_error(error), format_trace(error)
        )


def _column(suite: Suite, env_id: str) -> EnvResult:
    try:
        from .references import prepare_column

        return prepare_column(suite, env_id)
    except (BadValueError, UnknownNameError) as refusal:
        state, reason = "refused", str(refusal)
    except Exception as error:  # noqa: BLE001 - recorded in the column, whatever it was
        state, reason = "failed", describe_error(error) + "\n" + format_trace(error)
    return EnvResult(suite_digest=suite.digest, env_id=env_id, state=state, reason=reason)


def describe_error(error: BaseException) -> str:
    """Format an error in one line."""
    return f"{type(error).__name__}: {error}"


def format_trace(error: BaseException) -> str:
    """Format the end of an error's traceback, without the folders of this machine."""
    lines = "".join(traceback.format_exception(error)).splitlines()[-TRACE_LINES:]
    roots = sorted({str(Path(__file__).resolve().parents[2]), str(Path.home())}, key=len)
    text = "\n".join(lines)
    for root in reversed(roots):
        text = text.replace(root + "/", "")
    return text
