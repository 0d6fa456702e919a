"""Submissions: what waits, what is being verified, what came out."""

from __future__ import annotations

import secrets
import sqlite3
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .settings import ServerSettings
from .store import open_database

DAY_S = 86_400.0
WAITING = ("queued", "verifying")


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One upload, or one finished pass of a season.

    Attributes:
        id: Cannot be guessed; who knows it may see the state.
        account: Whose.
        season: Season that it is of; empty for uploads.
        path: The archive, or the folder of a season's entry.
        state: queued, verifying, accepted, refused, or broken when the server could not say.
        done: Episodes replayed.
        total: Episodes in all; 0 while that is not known.
        attempts: Times that verification was begun.
        entry_id: Place among the entries once accepted.
        score: Its score once accepted.
        reason: Of a refusal.
        message: The same in words.
        made: When it came, in seconds.
        changed: When its state changed last.
    """

    id: str
    account: str
    season: str
    path: str
    state: str
    done: int
    total: int
    attempts: int
    entry_id: str
    score: float | None
    reason: str
    message: str
    made: float
    changed: float

    def public(self) -> dict[str, Any]:
        """What is told about it."""
        told = asdict(self)
        for private in ("path", "account", "attempts"):
            del told[private]
        return told


class QuotaError(Exception):
    """An account has used up what it may do; says what and until when."""


def new_id() -> str:
    """A name that cannot be guessed."""
    return secrets.token_hex(16)


def check_quota(settings: ServerSettings, account: str) -> None:
    """Refuse before anything is read.

    Raises:
        QuotaError: Too many uploads today, or too many in the queue.
    """
    with open_database(settings.database) as base:
        _check(base, settings, account)


def _check(base: sqlite3.Connection, settings: ServerSettings, account: str) -> None:
    since = time.time() - DAY_S
    today, waiting = base.execute(
        "SELECT count(*) FILTER (WHERE made > ?), count(*) FILTER (WHERE state IN (?, ?)) "
        "FROM submissions WHERE account = ? AND season = ''",
        (since, *WAITING, account),
    ).fetchone()
    if today >= settings.uploads_per_day:
        raise QuotaError(f"{today} uploads in a day; {settings.uploads_per_day} are allowed.")
    if waiting >= settings.waiting:
        raise QuotaError(f"{waiting} uploads wait; wait for a verdict before sending more.")


def add_upload(settings: ServerSettings, name: str, account: str, path: Path) -> None:
    """Put an upload into the queue.

    Raises:
        QuotaError: The account used its quota up while the upload ran.
    """
    with open_database(settings.database) as base:
        _check(base, settings, account)
        insert(base, name, account, path)


def insert(base: sqlite3.Connection, name: str, account: str, path: Path, season: str = "") -> None:
    """Put a submission into the queue, inside a transaction."""
    now = time.time()
    base.execute(
        "INSERT INTO submissions (id, account, season, path, state, made, changed) "
        "VALUES (?, ?, ?, ?, 'queued', ?, ?)",
        (name, account, season, str(path), now, now),
    )


def find(settings: ServerSettings, name: str) -> Submission | None:
    """The submission with this id."""
    with open_database(settings.database) as base:
        row = base.execute("SELECT * FROM submissions WHERE id = ?", (name,)).fetchone()
    return None if row is None else Submission(**dict(row))


def place_in_queue(settings: ServerSettings, one: Submission) -> int:
    """How many come before it."""
    with open_database(settings.database) as base:
        return base.execute(
            "SELECT count(*) FROM submissions WHERE state IN (?, ?) AND made < ?",
            (*WAITING, one.made),
        ).fetchone()[0]


def take_next(settings: ServerSettings) -> Submission | None:
    """The oldest that waits, marked as being verified; None when there is none."""
    with open_database(settings.database) as base:
        row = base.execute(
            "SELECT id FROM submissions WHERE state = 'queued' ORDER BY made, id LIMIT 1"
        ).fetchone()
        if row is None:
            return None
        base.execute(
            "UPDATE submissions SET state = 'verifying', attempts = attempts + 1, changed = ? "
            "WHERE id = ?",
            (time.time(), row["id"]),
        )
        row = base.execute("SELECT * FROM submissions WHERE id = ?", (row["id"],)).fetchone()
    return Submission(**dict(row))


def update(settings: ServerSettings, name: str, **fields: Any) -> None:
    """Change fields of a submission."""
    names = ", ".join(f"{field} = ?" for field in fields)
    with open_database(settings.database) as base:
        base.execute(
            f"UPDATE submissions SET {names}, changed = ? WHERE id = ?",
            (*fields.values(), time.time(), name),
        )


def requeue_interrupted(settings: ServerSettings) -> int:
    """After a restart: what was being verified waits again, unless it was begun too often.

    Returns:
        How many were interrupted.
    """
    with open_database(settings.database) as base:
        count = base.execute(
            "UPDATE submissions SET state = 'broken', changed = ?, message = "
            "'the server stopped each time that it verified this entry.' "
            "WHERE state = 'verifying' AND attempts >= ?",
            (time.time(), settings.attempts),
        ).rowcount
        count += base.execute(
            "UPDATE submissions SET state = 'queued', done = 0 WHERE state = 'verifying'"
        ).rowcount
    return count
