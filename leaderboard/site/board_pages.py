"""The pages of the boards, and the first page."""

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
    """An entry of the folder that did not verify."""

    entry_id: str
    reason: str
    message: str


def board_title(board: Board) -> str:
    """What a board is called."""
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
    """The page of one board: table, matrix, curves.

    Args:
        renderer: Fills the template.
        folder: Takes the page.
        placed: Place of the page, and the board.
        all_boards: Every board; the curves go across tracks.
        known: Whether the suite is public, so that its worlds have pages.
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
    """The first page: all boards, and what was refused."""
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
