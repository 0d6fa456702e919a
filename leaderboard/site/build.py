"""Writes the whole site from the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..ranking.board import boards
from ..ranking.index import Indexed
from ..schema.board import Board
from ..schema.suite import Suite
from .board_pages import write_board, write_start
from .entry_pages import write_entry_pages
from .env_pages import write_environments
from .rendering import Folder, Renderer

Tick = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """What the site is made from.

    Attributes:
        entries: Folder of entries; their actions are replayed for the transcripts.
        suites: Suites by id.
        out: Folder of the site. Pages of an earlier build that are still right stay.
        uploads: Whether a server with pages for uploads serves it.
        transcripts: Whether episodes get pages.
    """

    entries: Path
    suites: Mapping[str, Suite]
    out: Path
    uploads: bool = False
    transcripts: bool = True


def board_path(board: Board, number: int) -> str:
    """Where a board's page stands: tracks are numbered in the order of the boards."""
    return f"boards/{board.suite}-{board.board}{'' if board.track is None else f'-{number}'}.html"


def build_site(index: Sequence[Indexed], settings: SiteSettings, tell: Tick | None = None) -> int:
    """Write the site; pages come after those that they lead to.

    Args:
        index: Every entry's verdict.
        settings: Where from and where to.
        tell: Told what is written, its place and how many parts there are.

    Returns:
        Number of files that the site has.

    Raises:
        MissingExtraError: Jinja is missing.
    """
    renderer, folder = Renderer(settings.uploads), Folder(settings.out)
    folder.assets()
    found = boards(index)
    numbers: dict[str, int] = {}
    placed: list[tuple[str, Board]] = []
    for board in found:
        numbers[board.suite] = numbers.get(board.suite, 0) + (board.track is not None)
        placed.append((board_path(board, numbers[board.suite]), board))
    shown = [one for one in index if one.verdict.scores is not None]
    for place, one in enumerate(shown):
        if tell is not None:
            tell(one.entry_id, place, len(shown) + 1)
        write_entry_pages(renderer, folder, one, placed, settings)
    if tell is not None:
        tell("environments", len(shown), len(shown) + 1)
    write_environments(renderer, folder, shown, settings.suites)
    for path, board in placed:
        write_board(renderer, folder, (path, board), found, board.suite in settings.suites)
    write_start(renderer, folder, placed, index)
    folder.sweep("boards", "entries", "environments", "assets")
    return len(folder.written)
