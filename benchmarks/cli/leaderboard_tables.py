"""Terminal tables of boards, scores and suites."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from ...envs.utils.statistics import Estimate
from ...leaderboard.schema.board import Board, BoardRow
from ...leaderboard.schema.result import Scores
from ...leaderboard.schema.suite import Suite


def board_table(board: Board) -> Table:
    """One board, from the best row down."""
    title = f"{board.board} on {board.suite}"
    if board.track is not None:
        budget = board.track.budget
        title += (
            f", from {board.track.start}: {budget.sampled_tokens} sampled tokens, "
            f"{budget.tool_calls} calls"
        )
    k = len(board.rows[0].pass_at)
    numbers = ("score %", "success %", f"pass@{k} %", f"pass^{k} %", "turns", "errors", "next")
    table = _table(title, ("", "entry", *numbers), left="entry")
    for row in board.rows:
        table.add_row(*_cells(row), style="dim" if row.reference else "")
    return table


def _cells(row: BoardRow) -> tuple[str, ...]:
    name = row.name if row.reference else f"{row.name} ({row.organisation})"
    test = row.versus_next
    return (
        "" if row.rank is None else str(row.rank),
        escape(name + (f", reproduces {row.reproduces}" if row.reproduces else "")),
        _interval(row.score),
        _percent(row.success.mean),
        _percent(row.pass_at[-1]),
        _percent(row.pass_all[-1]),
        f"{row.turns:.1f}",
        str(row.errors),
        "" if test is None else f"{100 * test.difference:+.1f}, p {test.p_value:.2g}",
    )


def scores_table(name: str, scores: Scores) -> Table:
    """The scores of one entry, world by world."""
    k = len(scores.pass_at)
    numbers = ("score %", "success %", f"pass@{k} %", f"pass^{k} %", "return", "turns", "errors")
    table = _table(name, ("world", *numbers), left="world")
    for env in scores.envs:
        label = env.env if env.metric == "success" else f"{env.env} ({env.metric})"
        table.add_row(
            escape(label),
            _interval(env.score),
            _percent(env.success.mean),
            _percent(env.pass_at[k - 1]),
            _percent(env.pass_all[k - 1]),
            f"{env.return_.mean:.3g}",
            f"{env.turns:.1f}",
            str(env.errors),
        )
    table.add_row(
        "all",
        _interval(scores.score),
        _percent(scores.success.mean),
        _percent(scores.pass_at[-1]),
        _percent(scores.pass_all[-1]),
        "",
        f"{scores.turns:.1f}",
        str(scores.errors),
        style="bold",
    )
    return table


def suites_table(suites: Sequence[Suite]) -> Table:
    """The suites and their sizes."""
    table = Table()
    for column in ("suite", "worlds", "tasks", "episodes", "digest", "about"):
        table.add_column(column, justify="left" if column in ("suite", "about") else "right")
    for suite in suites:
        table.add_row(
            suite.id,
            str(len(suite.cells)),
            str(sum(len(cell.tasks) for cell in suite.cells)),
            str(sum(1 for _ in suite.slots())),
            suite.digest[:8],
            suite.description,
        )
    return table


def _table(title: str, columns: Sequence[str], left: str) -> Table:
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column == left else "right")
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(estimate: Estimate) -> str:
    low, high = _percent(estimate.low95), _percent(estimate.high95)
    return f"{_percent(estimate.mean)} [{low}, {high}]".replace("[", r"\[")
