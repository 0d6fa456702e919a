"""Run the server, and reveal its seasons."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...envs.core.errors import DataError, MissingExtraError
from ...envs.utils.serving import serve
from ...envs.utils.system import require_posix, try_lock
from ..ranking.index import rebuild
from ..schema.base import OnItem
from ..schema.result import Verdict
from ..suites.sealed import read_season, reveal
from ..verification.sandbox import verify
from .publishing import suite_files
from .settings import ServerSettings
from .store import open_database
from .submissions import waiting_accounts

_WAITING = 2048
"""Connections that may wait to be accepted."""
_FINISH_S = 5
"""Seconds that a server which stops lets requests finish."""


def serve_forever(
    settings: ServerSettings, bound: socket.socket, on_start: Callable[[], None] | None = None
) -> None:
    """Serve until the process is interrupted.

    Args:
        settings: Folders, limits and quotas.
        bound: A socket at the address, so that one that is taken is known before anything starts.
        on_start: Called when the address answers.

    Raises:
        MissingExtraError: A package of the extra ``web`` is missing.
        DataError: Another server uses the folder, or this one did not start.
        KeyboardInterrupt: After the requests were finished.
    """
    try:
        import uvicorn

        from .app import make_app
    except ModuleNotFoundError as error:
        raise MissingExtraError("the leaderboard's server", str(error.name), "web") from error
    with hold_home(settings.home):
        config = uvicorn.Config(
            make_app(settings), server_header=False, timeout_graceful_shutdown=_FINISH_S
        )
        server = uvicorn.Server(config)
        bound.listen(_WAITING)
        if on_start is not None:
            on_start()
        serve(server, bound)
        if not server.started:
            raise DataError("the leaderboard's server did not start; the lines above say why.")


@contextlib.contextmanager
def hold_home(home: Path) -> Iterator[None]:
    """Keep other servers away from a folder: a second one would sweep and verify the first's work.

    The system lifts the lock when the process ends, however it ends.

    Raises:
        DataError: Another server uses the folder.
        BadValueError: The system, or the folder's file system, has no locks.
    """
    require_posix("the leaderboard's server")
    home.mkdir(parents=True, exist_ok=True)
    with (home / "server.lock").open("a") as file:
        if not try_lock(file, "the leaderboard's server"):
            raise DataError(
                f"{home}: another server uses this folder; stop it first, or choose another home."
            )
        yield


@dataclass(frozen=True, kw_only=True)
class Revealed:
    """Result of revealing a season.

    Attributes:
        name: Name of the season.
        folder: Folder of the published secret and suites.
        accepted: Number of accepted entries.
        refused: Refused entries with the reason.
        unfinished: Accounts that played but did not finish their pass, which makes no entry.
        waiting: Accounts whose finished passes the server has not verified yet.
    """

    name: str
    folder: Path
    accepted: int
    refused: tuple[tuple[str, str], ...]
    unfinished: tuple[str, ...]
    waiting: tuple[str, ...] = ()


def reveal_and_replay(
    settings: ServerSettings, name: str, on_progress: OnItem | None = None
) -> Revealed:
    """Publish a season's secret and replay its entries with the published suite.

    Args:
        settings: Settings of the server.
        name: Name of the season.
        on_progress: Called before each entry with its id, its place and the number of all.

    Raises:
        UnknownNameError: There is no such season.
        DataError: The secret does not match the commitment.
    """
    folder = reveal(settings.seasons, name)
    season = read_season(settings.seasons, name)
    suites = suite_files(settings)
    replayed: dict[str, Verdict] = {}

    def verdict_of(entry: Path) -> Verdict:
        verdict = verify(entry, suites=suites, read=settings.read, replay=settings.replay)
        replayed[entry.relative_to(settings.entries).as_posix()] = verdict
        return verdict

    found = rebuild(settings.entries, settings.index, verdict_of, on_progress=on_progress)
    mine = [one for one in found if one.entry_id.startswith(f"{season.suite_id}/")]
    for place, one in enumerate(mine):
        if one.entry_id not in replayed:
            if on_progress is not None:
                on_progress(one.entry_id, place, len(mine))
            verdict_of(settings.entries / one.entry_id)
    verdicts = {one.entry_id: replayed[one.entry_id] for one in mine}
    refused = tuple(
        (entry_id, verdict.refusal.message)
        for entry_id, verdict in verdicts.items()
        if verdict.refusal is not None
    )
    return Revealed(
        name=name,
        folder=folder,
        accepted=len(mine) - len(refused),
        refused=refused,
        unfinished=_find_unfinished(settings, name),
        waiting=waiting_accounts(settings, name),
    )


def _find_unfinished(settings: ServerSettings, season: str) -> tuple[str, ...]:
    with open_database(settings.database) as base:
        rows = base.execute(
            "SELECT account FROM sealed_episodes WHERE season = ? EXCEPT "
            "SELECT account FROM sealed_entries WHERE season = ? AND submission != ''",
            (season, season),
        ).fetchall()
    return tuple(sorted(row["account"] for row in rows))
