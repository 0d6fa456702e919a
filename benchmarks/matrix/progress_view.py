"""Show the progress of a matrix: a live table in a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from ...algos.runs.console import PlainConsole
from ...algos.runs.progress import clock
from .board import Board
from .cell import Cell, CellResult

MARKS = {"waiting": "[dim]·[/]", "failed": "[bold red]failed[/]", "refused": "[yellow]n/a[/]"}
LOOK_EVERY_S = 1.0


class View(Protocol):
    """Shows the progress of a matrix."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def show(self, board: Board, ended: Iterable[CellResult], slots: int) -> None:
        """Show the state; ``ended`` are the cells that ended since the last call."""
        ...


class Lines(View):
    """Prints a line for every cell that ends; one for cells that lack the same, such as a start."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, board: Board, ended: Iterable[CellResult], slots: int) -> None:
        """Print the cells that ended."""
        for results in by_reason(ended):
            left = board.seconds_left(slots)
            rest = "" if left is None else f", about {clock(left)} left"
            self._console.print(
                f"{len(board.results)} of {len(board.cells)}  {name_cells(results)}: "
                f"{describe_result(results[0])}{rest}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


class LiveTable(View):
    """Updates a table of scores and used shares of the budget."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def show(self, board: Board, ended: Iterable[CellResult], slots: int) -> None:
        """Redraw the table, at most once a second unless a cell ended."""
        now = time.monotonic()
        if not list(ended) and now - self._shown < LOOK_EVERY_S:
            return
        self._shown = now
        self._live.update(Group(table(board), footer(board, slots)), refresh=True)


def view() -> View:
    """Return a live table if standard error is a terminal, else lines."""
    console = PlainConsole(stderr=True)
    return LiveTable(console) if sys.stderr.isatty() else Lines(console)


def table(board: Board) -> Table:
    """Make the table: recipes as rows, environments as columns, means over seeds."""
    made = Table(box=None, padding=(0, 1, 0, 1), pad_edge=False)
    made.add_column("")
    columns = list(dict.fromkeys(cell.column for cell in board.cells))
    busy = {job.column for job, _ in board.running.values() if job.cell is None}
    for name in columns:
        waits = " [dim]…[/]" if name in busy else ""
        made.add_column(escape(name.removesuffix("-v0")) + waits, justify="right", no_wrap=True)
    cells: dict[tuple[str, str], list[Cell]] = {}
    for cell in board.cells:
        cells.setdefault((cell.recipe, cell.column), []).append(cell)
    for recipe in dict.fromkeys(cell.recipe for cell in board.cells):
        row = [mark(board, cells.get((recipe, name), [])) for name in columns]
        made.add_row(f"[bold]{escape(recipe)}[/]", *row)
    return made


def mark(board: Board, cells: list[Cell]) -> str:
    """Format the field of one recipe on one environment."""
    if not cells:
        return ""
    states = [board.state(cell) for cell in cells]
    running = [board.share(c) for c, s in zip(cells, states, strict=True) if s == "running"]
    if running:
        return f"[cyan]{100 * sum(running) / len(running):.0f}% ▸[/]"
    for state in ("failed", "refused"):
        if state in states:
            return MARKS[state]
    means = [
        mean
        for cell in cells
        if (tries := getattr(board.results.get(cell.key), "tries", None)) is not None
        and (mean := tries.mean("solved")) is not None
    ]
    if not means:
        return "[green]done[/]" if "finished" in states else MARKS["waiting"]
    count = "" if len(means) == len(cells) == 1 else f" [dim]{len(means)}/{len(cells)}[/]"
    return f"[green]{100 * sum(means) / len(means):.0f}[/]{count}"


def footer(board: Board, slots: int) -> str:
    """Format counts, elapsed time and estimated remaining time."""
    counts = board.counts()
    states = ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
    left = board.seconds_left(slots)
    rest = "" if left is None else f", about {clock(left)} left"
    before = [str(job) for job, _ in board.running.values() if job.cell is None]
    making = f"; making the {', the '.join(before)}" if before else ""
    passed = clock(time.monotonic() - board.began)
    return f"[dim]success in %, budget used in % ▸[/]  {states}, {passed} passed{rest}{making}"


def by_reason(ended: Iterable[CellResult]) -> list[list[CellResult]]:
    """Put together the cells of a column that have no score for the same reason."""
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for result in ended:
        own = result.state == "finished" or not result.reason
        place = result.cell.key if own else result.cell.column
        groups.setdefault((place, result.state, result.reason), []).append(result)
    return list(groups.values())


def name_cells(results: Sequence[CellResult]) -> str:
    """Return the cell of a result, or of several their column, row and number."""
    cells = [result.cell for result in results]
    if len(cells) == 1:
        return str(cells[0])
    rows = {cell.recipe for cell in cells}
    where = f"{rows.pop()} on {cells[0].column}" if len(rows) == 1 else cells[0].column
    return f"{where}, {len(cells)} cells"


def describe_result(result: CellResult) -> str:
    """Format a result in one line."""
    if result.state != "finished" or result.tries is None:
        return f"{result.state}: {result.reason.splitlines()[0] if result.reason else ''}"
    solved, value = result.tries.mean("solved"), result.tries.mean("returns")
    score = (
        "no score, the environment failed in every episode"
        if solved is None or value is None
        else f"success {solved:.1%}, return {value:.3f}"
    )
    if result.greedy is not None:
        score += f", greedy {result.greedy:.1%}"
    if result.area is not None:
        score += f", area {result.area:.3f}"
    cost = result.used
    return (
        f"{score} ({cost.tokens:,} tokens, {cost.calls:,} calls, "
        f"{cost.optimizer_steps:,} optimiser steps, {result.seconds:.0f} s)"
    )
