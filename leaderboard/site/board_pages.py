"""The pages of the boards, and the start page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...envs.utils.seed_tests import LEVEL
from ..ranking.index import Indexed
from ..ranking.run_tests import HALVES
from ..schema.board import Board, BoardRow, RunTest
from .charts import curves_of
from .formatting import percent
from .rendering import Folder, Renderer

Placed = Sequence[tuple[str, Board]]


@dataclass(frozen=True)
class RefusedEntry:
    """An entry that was refused."""

    entry_id: str
    reason: str
    message: str


def board_title(board: Board) -> str:
    """Return the title of a board."""
    if board.track is None:
        return f"Agents on {board.suite}"
    return f"Algorithms on {board.suite}"


def write_board(
    renderer: Renderer,
    folder: Folder,
    placed: tuple[str, Board],
    all_boards: Sequence[Board],
    known: bool,
) -> None:
    """Write the page of one board: table, matrix and curves.

    Args:
        renderer: Fills the template.
        folder: The site's folder.
        placed: Path of the page, and the board.
        all_boards: Every board, since curves extend across tracks.
        known: Whether the suite is public, so that its environments have pages.
    """
    path, board = placed
    comparisons = _comparisons(board)
    aa_tests = [test for _, kind, test in comparisons if kind != "next"]
    envs = list(board.rows[0].envs) if board.rows else []
    text = renderer.text(
        "board.html",
        depth=1,
        here="boards",
        title=board_title(board),
        board=board,
        envs=envs,
        trials=min((len(row.pass_at) for row in board.rows), default=1),
        curves=curves_of(board, all_boards),
        known=known,
        solved=any(percent(row.success.mean) != percent(row.score.mean) for row in board.rows),
        comparisons=comparisons,
        aa_tests=aa_tests,
        aa_small=sum(test.p_value <= LEVEL for test in aa_tests),
        halves=HALVES,
        names={row.entry_id: row.name for row in board.rows},
    )
    folder.write(path, text)


def _comparisons(board: Board) -> list[tuple[BoardRow, str, RunTest]]:
    """Return every test over training runs: of the next row, of itself, of what it reproduces."""
    kinds = ("next", "itself", "reproduced")
    found = [(row, kind, getattr(row, f"versus_{kind}")) for kind in kinds for row in board.rows]
    return [(row, kind, test) for row, kind, test in found if isinstance(test, RunTest)]


def write_start(
    renderer: Renderer, folder: Folder, placed: Placed, index: Sequence[Indexed]
) -> None:
    """Write the start page: all boards, and the refused entries."""
    refused = [
        RefusedEntry(one.entry_id, one.verdict.refusal.reason, one.verdict.refusal.message)
        for one in index
        if one.verdict.refusal is not None
    ]
    listed = [(path, board_title(board), board) for path, board in placed]
    episodes = sum(one.verdict.replayed for one in index if one.verdict.accepted)
    text = renderer.text(
        "index.html",
        depth=0,
        here="boards",
        boards=listed,
        refused=refused,
        entries=sum(one.verdict.accepted for one in index),
        episodes=episodes,
    )
    folder.write("index.html", text)
