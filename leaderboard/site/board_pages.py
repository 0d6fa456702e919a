"""The pages of the boards, and the start page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ranking.index import Indexed
from ..schema.board import Board
from .charts import curves_of
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
    )
    folder.write(path, text)


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
