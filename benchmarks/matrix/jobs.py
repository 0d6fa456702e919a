"""Jobs of workers; their results are files."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path
from traceback import TracebackException

from ...algos.runs.run_dir import read_metrics
from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...leaderboard.schema.base import Form
from .cell import Cell, CellResult, ColumnResult, SearchResult, State
from .layout import Layout
from .suite import Suite

TRACE_LINES = 40
"""Maximum lines of a stored traceback."""


class Job(Form):
    """Prepare a column, search a learning rate, or compute a cell of a matrix.

    Attributes:
        out: The folder.
        column: The column.
        recipe: Label of the row whose learning rate is searched there; empty for another job.
        cell: The cell; None for another job.
    """

    out: str
    column: str
    recipe: str = ""
    cell: Cell | None = None

    def __str__(self) -> str:
        if self.cell is not None:
            return str(self.cell)
        if self.recipe:
            return f"learning rate of {self.recipe} on {self.column}"
        return f"start of {self.column}"

    @property
    def key(self) -> str:
        """Return a name that no other job of the matrix has."""
        return self.cell.key if self.cell is not None else f"{self.recipe}--{self.column}"


def perform(job: Job) -> State:
    """Execute a job and write its result file.

    An error is stored as the result, so that the other cells continue.

    Raises:
        KeyboardInterrupt: The job was stopped; its result is ``interrupted``, or what it was.
    """
    layout = Layout(job.out)
    suite = Suite.read(layout.suite_file)
    if job.cell is not None:
        return _perform_cell(suite, job.cell, layout)
    if job.recipe:
        found = _search(suite, job.recipe, job.column, layout)
        found.write(layout.search_file(job.recipe, job.column))
        return found.state
    column = _column(suite, job.column)
    column.write(layout.column_file(job.column))
    return column.state


def _perform_cell(suite: Suite, cell: Cell, layout: Layout) -> State:
    try:
        result = _cell(suite, cell, layout)
    except KeyboardInterrupt:
        old = layout.cell(suite, cell)
        if old is None or old.state == "interrupted":  # else it failed, and was tried again
            stopped = unfinished_result(suite, cell, layout, "interrupted", "stopped")
            stopped.write(layout.cell_file(cell))
        raise
    result.write(layout.cell_file(cell))
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


def rate_row(suite: Suite, recipe: str) -> str:
    """Return the row whose search a row takes: its own, or of an A/A row the one it repeats."""
    return suite.yardsticks.get(recipe, recipe)


def _cell(suite: Suite, cell: Cell, layout: Layout) -> CellResult:
    try:
        from .train_cell import train_cell

        start = _start(suite, cell.column, layout)
        search = None
        if suite.lr_search is not None:
            search = layout.search(suite, rate_row(suite, cell.recipe), cell.column)
            if search is None or search.state != "finished":
                raise DataError(f"{cell}: its row has no learning rate; search it first.")
        return train_cell(suite, cell, start, search, layout)
    except Exception as error:  # noqa: BLE001 - recorded in the cell, whatever it was
        return unfinished_result(
            suite, cell, layout, "failed", describe_error(error), format_trace(error)
        )


def _search(suite: Suite, recipe: str, column: str, layout: Layout) -> SearchResult:
    try:
        from .rate_search import search_rate

        if suite.lr_search is None:
            raise DataError(f"suite {suite.name!r} has no search for learning rates.")
        return search_rate(suite, recipe, _start(suite, column, layout), suite.lr_search, layout)
    except Exception as error:  # noqa: BLE001 - recorded in the search, whatever it was
        reason = describe_error(error) + "\n" + format_trace(error)
        return failed_search(suite, recipe, column, layout, reason)


def failed_search(
    suite: Suite, recipe: str, column: str, layout: Layout, reason: str
) -> SearchResult:
    """Make the result of a search that failed, with its trials until then."""
    found = layout.search(suite, recipe, column)
    return SearchResult(
        suite_digest=suite.digest,
        digest=suite.search_digest(recipe, column),
        recipe=recipe,
        column=column,
        state="failed",
        reason=reason,
        tried=found.tried if found is not None else (),
    )


def _start(suite: Suite, column: str, layout: Layout) -> ColumnResult:
    start = layout.column(suite, column)
    if start is None or start.state != "finished":
        raise DataError(f"column {column!r} has no start; prepare the column first.")
    return start


def _column(suite: Suite, column: str) -> ColumnResult:
    try:
        from .references import prepare_column

        return prepare_column(suite, column)
    except (BadValueError, UnknownNameError) as refusal:
        state, reason = "refused", str(refusal)
    except Exception as error:  # noqa: BLE001 - recorded in the column, whatever it was
        state, reason = "failed", describe_error(error) + "\n" + format_trace(error)
    return failed_column(suite, column, state, reason)


def failed_column(suite: Suite, column: str, state: State, reason: str) -> ColumnResult:
    """Make the result of a column that has no start."""
    return ColumnResult(
        suite_digest=suite.digest,
        digest=suite.column_digest(column),
        column=column,
        state=state,
        reason=reason,
    )


def describe_error(error: BaseException) -> str:
    """Format an error in one line, also one that cannot say what it is."""
    return _writable(f"{type(error).__name__}: {TracebackException.from_exception(error)}")


def format_trace(error: BaseException) -> str:
    """Format the end of an error's traceback, without the folders of this machine."""
    lines = "".join(traceback.format_exception(error)).splitlines()[-TRACE_LINES:]
    roots = {str(Path(__file__).resolve().parents[2])}
    with suppress(RuntimeError):  # an account that is a number alone, as in a container
        roots.add(str(Path.home()))
    text = "\n".join(lines)
    for root in sorted(roots, key=len, reverse=True):
        text = text.replace(root + "/", "")
    return _writable(text)


def _writable(text: str) -> str:
    """Write out lone surrogates, as in names of files that are not UTF-8: no file takes them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
