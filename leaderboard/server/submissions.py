"""Submissions: the queue, the verification in progress, and the results."""

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
    """An upload, or a finished pass of a season.

    Attributes:
        id: Random id; whoever knows it may see the state.
        account: The submitting account.
        season: Name of the season; empty for uploads.
        path: The archive, or the folder of a season's entry.
        state: queued, verifying, accepted, refused, or broken after an error of the server.
        done: Replayed episodes.
        total: Number of episodes; 0 while it is unknown.
        attempts: Number of verification attempts.
        entry_id: Id of the entry once accepted.
        score: Score once accepted.
        reason: Reason of a refusal.
        message: Description of the reason.
        made: Time of submission, in seconds.
        changed: Time of the last change.
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
        """Return the public fields."""
        private = ("path", "account", "attempts")
        return {name: value for name, value in asdict(self).items() if name not in private}


class QuotaError(Exception):
    """An account has used up its quota."""


def new_id() -> str:
    """Return a random id."""
    return secrets.token_hex(16)


def check_quota(settings: ServerSettings, account: str, under_way: int = 0) -> None:
    """Check an account's quota before anything is read.

    Args:
        settings: Settings of the server.
        account: The account.
        under_way: Its uploads that are being received, which count as well.

    Raises:
        QuotaError: Too many uploads today, or too many in the queue.
    """
    with open_database(settings.database) as base:
        _check(base, settings, account, under_way)


def _check(
    base: sqlite3.Connection, settings: ServerSettings, account: str, under_way: int = 0
) -> None:
    since = time.time() - DAY_S
    today, waiting = base.execute(
        "SELECT count(*) FILTER (WHERE made > ?), count(*) FILTER (WHERE state IN (?, ?)) "
        "FROM submissions WHERE account = ? AND season = ''",
        (since, *WAITING, account),
    ).fetchone()
    today, waiting = today + under_way, waiting + under_way
    if today >= settings.uploads_per_day:
        raise QuotaError(f"{today} uploads in a day; {settings.uploads_per_day} are allowed.")
    if waiting >= settings.waiting:
        raise QuotaError(f"{waiting} uploads wait; wait for a verdict before sending more.")


def add_upload(settings: ServerSettings, name: str, account: str, path: Path) -> None:
    """Queue an upload.

    Raises:
        QuotaError: The account used up its quota during the upload.
    """
    with open_database(settings.database) as base:
        _check(base, settings, account)
        insert(base, name, account, path)


def insert(base: sqlite3.Connection, name: str, account: str, path: Path, season: str = "") -> None:
    """Queue a submission inside a transaction."""
    now = time.time()
    base.execute(
        "INSERT INTO submissions (id, account, season, path, state, made, changed) "
        "VALUES (?, ?, ?, ?, 'queued', ?, ?)",
        (name, account, season, str(path), now, now),
    )


def find(settings: ServerSettings, name: str) -> Submission | None:
    """Return the submission with this id, or None."""
    with open_database(settings.database) as base:
        row = base.execute("SELECT * FROM submissions WHERE id = ?", (name,)).fetchone()
    return None if row is None else Submission(**dict(row))


def place_in_queue(settings: ServerSettings, one: Submission) -> int:
    """Return the number of submissions before this one."""
    with open_database(settings.database) as base:
        return base.execute(
            "SELECT count(*) FROM submissions WHERE state IN (?, ?) AND made < ?",
            (*WAITING, one.made),
        ).fetchone()[0]


def waiting_accounts(settings: ServerSettings, season: str) -> tuple[str, ...]:
    """Return whose finished passes of a season have no verdict yet."""
    with open_database(settings.database) as base:
        rows = base.execute(
            "SELECT DISTINCT account FROM submissions WHERE season = ? AND state IN (?, ?)",
            (season, *WAITING),
        ).fetchall()
    return tuple(sorted(row["account"] for row in rows))


def take_next(settings: ServerSettings) -> Submission | None:
    """Take the oldest queued submission and mark it as verifying; None if there is none."""
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
    """Update fields of a submission."""
    names = ", ".join(f"{field} = ?" for field in fields)
    with open_database(settings.database) as base:
        base.execute(
            f"UPDATE submissions SET {names}, changed = ? WHERE id = ?",
            (*fields.values(), time.time(), name),
        )


def give_back(settings: ServerSettings, one: Submission) -> None:
    """Put a submission back whose verification was cancelled, which is no attempt."""
    update(settings, one.id, state="queued", done=0, attempts=one.attempts - 1)


def requeue_interrupted(settings: ServerSettings) -> int:
    """Requeue interrupted verifications after a restart, up to the limit of attempts.

    Returns:
        Number of interrupted verifications.
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
