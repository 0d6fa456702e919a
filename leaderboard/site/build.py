"""Write the whole site from the index.

A server runs it in a separate process: ``python -m turngym.leaderboard.site.build``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..ranking.board import make_boards
from ..ranking.index import Indexed, read_index
from ..schema.base import OnItem
from ..schema.board import Board
from ..suites.files import known_suites
from ..verification.process_limits import die_with_parent
from .board_pages import write_board, write_start
from .entry_pages import write_entry_pages
from .env_pages import write_environments
from .rendering import Folder, Renderer
from .settings import SiteSettings


def board_path(board: Board, number: int) -> str:
    """Return the path of a board's page; tracks are numbered in the order of the boards."""
    return f"boards/{board.suite}-{board.board}{'' if board.track is None else f'-{number}'}.html"


def build_site(
    index: Sequence[Indexed], settings: SiteSettings, on_progress: OnItem | None = None
) -> int:
    """Write the site; pages are written after those that they link to.

    While another process writes the same site, this one waits for it.

    Args:
        index: Every entry's verdict; entries that were deleted since are left out.
        settings: Sources and destination.
        on_progress: Called with the name of each part, its place and the number of all.

    Returns:
        Number of files of the site.

    Raises:
        MissingExtraError: Jinja is missing.
    """
    renderer, folder = Renderer(settings.uploads), Folder(settings.out)
    with folder.alone(lambda: on_progress and on_progress("another process writes it", 0, 1)):
        _write_pages(index, renderer, folder, settings, on_progress)
    return len(folder.written)


def _write_pages(
    index: Sequence[Indexed],
    renderer: Renderer,
    folder: Folder,
    settings: SiteSettings,
    on_progress: OnItem | None,
) -> None:
    folder.assets()
    index = still_there(index, settings.entries)
    found = make_boards(index)
    numbers: dict[str, int] = {}
    placed: list[tuple[str, Board]] = []
    for board in found:
        numbers[board.suite] = numbers.get(board.suite, 0) + (board.track is not None)
        placed.append((board_path(board, numbers[board.suite]), board))
    shown = [one for one in index if one.verdict.scores is not None]
    for place, one in enumerate(shown):
        if on_progress is not None:
            on_progress(one.entry_id, place, len(shown) + 1)
        write_entry_pages(renderer, folder, one, placed, settings)
    if on_progress is not None:
        on_progress("environments", len(shown), len(shown) + 1)
    write_environments(renderer, folder, shown, settings.suites)
    for path, board in placed:
        write_board(renderer, folder, (path, board), found, board.suite in settings.suites)
    write_start(renderer, folder, placed, index)
    folder.sweep("boards", "entries", "environments", "assets")


def still_there(index: Sequence[Indexed], entries: Path) -> list[Indexed]:
    """Return the entries whose folders are there; the index keeps those that were deleted since."""
    return [one for one in index if (entries / one.entry_id).is_dir()]


def main() -> None:
    """Write the site that the command-line arguments describe."""
    die_with_parent()  # the next server writes the same files
    parser = argparse.ArgumentParser()
    for name in ("--entries", "--index", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--suite-file", type=Path, action="append", default=[])
    given = parser.parse_args()
    settings = SiteSettings(
        entries=given.entries, suites=known_suites(given.suite_file), out=given.out, uploads=True
    )
    print(f"{build_site(read_index(given.index), settings)} files")


if __name__ == "__main__":
    main()
