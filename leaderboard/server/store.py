"""The server's database: accounts, submissions, sealed episodes."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ...envs.core.errors import DataError

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    made REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS submissions (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    season TEXT NOT NULL,
    path TEXT NOT NULL,
    state TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    entry_id TEXT NOT NULL DEFAULT '',
    score REAL,
    reason TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    made REAL NOT NULL,
    changed REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS submissions_by_state ON submissions (state, made);
CREATE INDEX IF NOT EXISTS submissions_by_account ON submissions (account, made);
CREATE TABLE IF NOT EXISTS sealed_entries (
    season TEXT NOT NULL,
    account TEXT NOT NULL,
    fields TEXT NOT NULL,
    submission TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (season, account)
);
CREATE TABLE IF NOT EXISTS sealed_episodes (
    id TEXT PRIMARY KEY,
    season TEXT NOT NULL,
    account TEXT NOT NULL,
    env TEXT NOT NULL,
    task INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    request TEXT NOT NULL,
    status TEXT NOT NULL,
    why TEXT NOT NULL DEFAULT '',
    touched REAL NOT NULL,
    UNIQUE (season, account, env, task, trial)
);
CREATE TABLE IF NOT EXISTS sealed_steps (
    episode TEXT NOT NULL,
    turn INTEGER NOT NULL,
    action TEXT NOT NULL,
    chain TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (episode, turn)
);
"""


@contextlib.contextmanager
def open_database(database: Path) -> Iterator[sqlite3.Connection]:
    """Open the database in one write transaction; close it at the end.

    Raises:
        DataError: The file is a different database.
    """
    database.parent.mkdir(parents=True, exist_ok=True)
    base = sqlite3.connect(database, timeout=30, isolation_level=None)
    base.row_factory = sqlite3.Row
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("BEGIN IMMEDIATE")
        try:
            _prepare(base, database)
            yield base
        except BaseException:
            if base.in_transaction:  # SQLite itself ends one that meets a full disk
                base.execute("ROLLBACK")
            raise
        base.execute("COMMIT")
    finally:
        base.close()


def _prepare(base: sqlite3.Connection, database: Path) -> None:
    version = base.execute("PRAGMA user_version").fetchone()[0]
    if version == _VERSION:
        return
    if version or base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise DataError(
            f"{database}: not a database of this server (version {version}); choose another home."
        )
    for statement in _SCHEMA.split(";"):
        base.execute(statement)
    base.execute(f"PRAGMA user_version = {_VERSION}")
