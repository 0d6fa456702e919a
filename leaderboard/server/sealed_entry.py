"""Convert a finished pass of a season to an entry, which is verified like any other."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..entries_io.files import write_entry
from ..entries_io.packing import make_manifest
from ..entries_io.play import make_episode, one_line, start_slot
from ..schema.base import Form, parse_form
from ..schema.entry import (
    Episode,
    ErrorKind,
    Line,
    ModelCard,
    Optional,
    Prose,
    find_blank,
    is_reserved,
)
from ..schema.suite import Slot
from .seasons import PlayedSeason
from .settings import ServerSettings
from .store import open_database
from .submissions import insert, new_id
from .web import Fault

NOT_PLAYED = "the episode was not played"


class EntryFields(Form):
    """The player's description of the entry; see :class:`..schema.entry.Manifest`."""

    name: Line
    organisation: Line
    licence: Line
    description: Prose = ""
    hardware: Optional = ""
    card: ModelCard = ModelCard()
    reproduces: Optional = ""


def describe(
    settings: ServerSettings, season: PlayedSeason, account: str, fields: EntryFields
) -> None:
    """Store the entry's description, before or while it is played.

    Raises:
        Fault: The pass is finished, the organisation is that of the reference rows, or a field
            that names the entry is blank.
    """
    if blank := find_blank(fields):
        raise Fault(422, "format", f"{blank}: is blank; expected something that can be read.")
    if is_reserved(fields.organisation):
        raise Fault(422, "reserved", "the organisation is that of the reference rows.")
    with open_database(settings.database) as base:
        base.execute(
            "INSERT INTO sealed_entries (season, account, fields) VALUES (?, ?, ?) "
            "ON CONFLICT (season, account) DO UPDATE SET fields = excluded.fields "
            "WHERE submission = ''",
            (season.public.name, account, fields.model_dump_json()),
        )
        if base.execute("SELECT changes()").fetchone()[0] == 0:
            raise Fault(409, "played", "this account has finished its pass.")


def finish(settings: ServerSettings, season: PlayedSeason, account: str) -> dict[str, Any]:
    """Pack the pass as an entry; episodes that were not played or not finished count as 0.

    Returns:
        The submission, and the number of episodes that count as errors.

    Raises:
        Fault: Nothing was played, or the entry has no description.
    """
    name = season.public.name
    entry, rows, steps = _read_pass(settings, name, account)
    if entry is not None and entry["submission"]:
        return {"id": entry["submission"], "state": "queued"}
    if entry is None:
        raise Fault(409, "describe", "describe the entry first: name, organisation, licence.")
    if not rows:
        raise Fault(409, "unplayed", "no episode was played.")
    fields = parse_form(EntryFields, entry["fields"], "the entry")
    manifest = make_manifest(season.suite, board="agents", **dict(fields))
    episodes = _episodes(season, rows, steps)
    submission = new_id()
    folder = settings.uploads / submission
    with _removed_on_error(folder):
        write_entry(folder, manifest, episodes)
        with open_database(settings.database) as base:
            earlier = _close(base, name, account, submission)
            if earlier == submission:
                insert(base, submission, account, folder, name)
    if earlier != submission:
        shutil.rmtree(folder, ignore_errors=True)
        return {"id": earlier, "state": "queued"}
    failed = sum(episode.error is not None for episode in episodes)
    return {"id": submission, "state": "queued", "errors": failed}


def _read_pass(
    settings: ServerSettings, season: str, account: str
) -> tuple[sqlite3.Row | None, list[sqlite3.Row], dict[str, list[sqlite3.Row]]]:
    """Read a pass from the database: description, episodes and steps."""
    with open_database(settings.database) as base:
        entry = base.execute(
            "SELECT * FROM sealed_entries WHERE season = ? AND account = ?", (season, account)
        ).fetchone()
        rows = base.execute(
            "SELECT * FROM sealed_episodes WHERE season = ? AND account = ?", (season, account)
        ).fetchall()
        return entry, rows, _steps(base, [row["id"] for row in rows])


def _close(base: sqlite3.Connection, season: str, account: str, submission: str) -> str:
    """Finish the pass; return its submission: of two requests at a time the first one's."""
    base.execute(
        "UPDATE sealed_entries SET submission = ? "
        "WHERE season = ? AND account = ? AND submission = ''",
        (submission, season, account),
    )
    base.execute(
        "UPDATE sealed_episodes SET status = 'expired', why = 'the pass was finished' "
        "WHERE season = ? AND account = ? AND status = 'running'",
        (season, account),
    )
    return base.execute(
        "SELECT submission FROM sealed_entries WHERE season = ? AND account = ?", (season, account)
    ).fetchone()["submission"]


@contextlib.contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _steps(base: sqlite3.Connection, sessions: list[str]) -> dict[str, list[sqlite3.Row]]:
    return {
        session: base.execute(
            "SELECT action, chain FROM sealed_steps WHERE episode = ? ORDER BY turn", (session,)
        ).fetchall()
        for session in sessions
    }


def _episodes(
    season: PlayedSeason, rows: list[sqlite3.Row], steps: dict[str, list[sqlite3.Row]]
) -> list[Episode]:
    played = {Slot(row["env"], row["task"], row["trial"]): row for row in rows}
    episodes = []
    for cell in season.suite.cells:
        recorder = season.recorder(cell)
        for place, task in enumerate(cell.tasks):
            for trial in range(cell.trials):
                row = played.get(Slot(cell.key, place, trial))
                taken = [] if row is None else steps[row["id"]]
                slot = Slot(cell.key, task, trial)
                start_slot(recorder, season.suite, cell, slot)
                begun = make_episode(recorder.transcript, season.suite, slot, 0)
                fields = _outcome(row) | {
                    "actions": tuple(step["action"] for step in taken),
                    "chain": (*begun.chain, *(step["chain"] for step in taken)),
                }
                episodes.append(begun.model_copy(update=fields))
    return episodes


def _outcome(row: sqlite3.Row | None) -> dict[str, Any]:
    """Return the error of an episode, if any."""
    status = "running" if row is None else row["status"]
    error: ErrorKind | None = None
    if status in ("running", "expired"):
        error = "agent_error"
    elif status == "env_error":
        error = "env_error"
    why = NOT_PLAYED if row is None else row["why"] or ("not ended" if error else "")
    return {"error": error, "why": one_line(why) if error else ""}
