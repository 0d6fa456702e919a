"""A cache of retrieved passages on disk: one file that many processes may share."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .base import Hit

FILE = "retrieved.sqlite"
_WAIT_S = 10.0
_TRIES = 200
T = TypeVar("T")
_TABLES = (
    "CREATE TABLE IF NOT EXISTS found (key BLOB PRIMARY KEY, hits TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS servers (url TEXT PRIMARY KEY, identity TEXT NOT NULL)",
)


@dataclass(frozen=True)
class FoundCache:
    """Hits by index, query and k, in an SQLite file with a write-ahead log.

    A file that is damaged, locked for long or in a folder that cannot be written is no error: a
    warning says so, and the cache finds and keeps nothing.

    Attributes:
        folder: Where the file lies; made when absent.
    """

    folder: str

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.folder).expanduser() / FILE

    def read(self, identity: str, queries: Sequence[str], k: int) -> dict[str, list[Hit]]:
        """Return the hits of those queries that are known."""
        found: dict[str, list[Hit]] = {}

        def look(base: sqlite3.Connection) -> None:
            for query in queries:
                key = _key(identity, query, k)
                row = base.execute("SELECT hits FROM found WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[query] = _parse_hits(row[0])

        self._use(look)
        return found

    def keep(self, identity: str, found: Mapping[str, Sequence[Hit]], k: int) -> None:
        """Remember hits by query; queries without hits are not remembered."""
        rows = [(_key(identity, q, k), json.dumps(hits)) for q, hits in found.items() if hits]
        if rows:
            sql = "INSERT OR REPLACE INTO found VALUES (?, ?)"
            self._use(lambda base: base.executemany(sql, rows))

    def identity(self, url: str) -> str | None:
        """Return the index that ``url`` was last known to search; None if it never said."""
        sql = "SELECT identity FROM servers WHERE url = ?"
        row = self._use(lambda base: base.execute(sql, (url,)).fetchone())
        return None if row is None else str(row[0])

    def keep_identity(self, url: str, identity: str) -> None:
        """Remember what ``url`` searches, for when it cannot be asked."""
        sql = "INSERT OR REPLACE INTO servers VALUES (?, ?)"
        self._use(lambda base: base.execute(sql, (url, identity)))

    def _use(self, do: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run ``do`` with a connection of its own: threads and forks share only the file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as base:
                _prepare(base)
                with base:
                    return do(base)
        except (sqlite3.Error, OSError, ValueError) as fault:
            warnings.warn(
                f"{self.path}: the cache of retrieved passages cannot be used ({fault}); the "
                "server is asked instead. Remove the file if it is damaged.",
                RuntimeWarning,
                stacklevel=4,
            )
            return None


def _prepare(base: sqlite3.Connection) -> None:
    """Prepare tables and log; switching to the log is all that SQLite does not wait for."""
    for left in reversed(range(_TRIES)):
        try:
            if base.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                base.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if not left:
                raise
            time.sleep(_WAIT_S / _TRIES)
    base.execute("PRAGMA synchronous = NORMAL")
    for table in _TABLES:
        base.execute(table)


def _key(identity: str, query: str, k: int) -> bytes:
    asked = json.dumps([identity, query, k]).encode()
    return hashlib.blake2b(asked, digest_size=20).digest()


def _parse_hits(stored: str) -> list[Hit]:
    """Return hits from their JSON.

    Raises:
        ValueError: It is not what :meth:`FoundCache.keep` writes.
    """
    try:
        rows = json.loads(stored)
        return [Hit(str(i), str(title), str(text), float(score)) for i, title, text, score in rows]
    except TypeError as fault:
        raise ValueError(f"a stored row is not a list of hits: {fault}") from None
