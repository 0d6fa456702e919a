"""The index: every entry's verdict in one SQLite file, rebuilt from the folder of entries."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...envs.core.errors import DataError
from ...envs.utils.disk_cache import cache_dir, make_folder
from ...envs.wrappers.record import get_versions
from ..entries_io.files import EntryFiles
from ..entries_io.signing import entry_digest
from ..schema.base import OnItem, parse_form
from ..schema.entry import MANIFEST, Manifest
from ..schema.record import Record, read_record
from ..schema.result import Reason, Refused, Scores, Verdict

_VERSION = 4
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    entry_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    reason TEXT NOT NULL,
    board TEXT NOT NULL,
    suite TEXT NOT NULL,
    name TEXT NOT NULL,
    organisation TEXT NOT NULL,
    date TEXT NOT NULL,
    score REAL,
    indexed_at TEXT NOT NULL,
    record TEXT NOT NULL,
    verdict TEXT NOT NULL
)
"""
Verify = Callable[[Path], Verdict]
_RETRIED: frozenset[Reason] = frozenset(
    (
        *("unknown_suite", "suite_version", "suite_digest"),
        *("environment_broken", "crashed", "cpu_limit", "wall_limit", "memory_limit"),
    )
)
"""Refusals that are no property of the entry: of the known suites, the environment, the limits."""


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """One entry of the index.

    Attributes:
        entry_id: Path below the folder of entries, as ``micro-v3/expert``.
        verdict: Result of the verification.
        record: What the maintainers know about it.
    """

    entry_id: str
    verdict: Verdict
    record: Record = field(default_factory=Record)

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of an accepted entry."""
        assert self.verdict.manifest is not None, "an accepted entry was read"
        return self.verdict.manifest

    @property
    def scores(self) -> Scores:
        """Return the scores of an accepted entry."""
        assert self.verdict.scores is not None, "an accepted entry has scores"
        return self.verdict.scores


def entries_folder() -> Path:
    """Return the folder of the entries that come with the package."""
    return Path(__file__).parents[1] / "entries"


def index_path() -> Path:
    """Return the default path of the index, in the cache since it can always be rebuilt."""
    return cache_dir() / "leaderboard.sqlite"


def entry_folders(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield id and folder of every entry below ``root``, sorted by id.

    Raises:
        DataError: There is no such folder.
    """
    if not root.is_dir():
        raise DataError(f"{root}: there is no such folder of entries.")
    for path in sorted(root.glob(f"*/*/{MANIFEST}")):
        yield path.parent.relative_to(root).as_posix(), path.parent


def rebuild(
    entries: Path,
    database: Path,
    verify: Verify,
    *,
    fresh: bool = False,
    on_progress: OnItem | None = None,
) -> list[Indexed]:
    """Update the index from the folder of entries.

    A verdict is reused if neither the entry's files nor the verifying versions changed, unless it
    refuses the entry for what is no property of it, such as a suite that is not known; records are
    read anew.

    Args:
        entries: Folder of entries, ``SUITE/NAME/entry.json``.
        database: The SQLite file; created if it does not exist.
        verify: Computes the verdict of an entry's folder.
        fresh: Whether every entry is verified again.
        on_progress: Called before each entry with its id, its place and the number of all.

    Returns:
        The index, sorted by id, without what another process has added to it meanwhile.

    Raises:
        DataError: There is no such folder, or the file is a different database.
    """
    folders = list(entry_folders(entries))
    if database.is_file():  # another database is refused before hours of replay
        with _open(database, renew=True):
            pass
    known = {} if fresh else _read_known(database)
    found: list[Indexed] = []
    try:
        for place, (entry_id, folder) in enumerate(folders):
            if on_progress is not None:
                on_progress(entry_id, place, len(folders))
            verdict = known.get((entry_id, _digest(folder)))
            if verdict is None or not _is_reusable(verdict):
                verdict = verify(folder)
            record = read_record(folder)
            found.append(Indexed(entry_id=entry_id, verdict=verdict, record=record))
    finally:  # what was replayed before an interruption is not replayed again
        _write(database, entries, found)
    return found


def add_entry(database: Path, one: Indexed) -> None:
    """Write one entry into the index, without a look at the others.

    Raises:
        DataError: The file is a different database.
    """
    with _open(database) as base:
        _insert(base, [one])


def read_index(database: Path, suite: str | None = None) -> list[Indexed]:
    """Read the index, sorted by id.

    Args:
        database: The SQLite file.
        suite: Id of a suite, whose entries alone are read; None for all.

    Raises:
        DataError: There is none, or the file is a different database.
    """
    if not database.is_file():
        raise DataError(f"{database}: there is no index; make it with `turngym leaderboard index`.")
    with _open(database) as base:
        rows = base.execute(
            "SELECT entry_id, verdict, record FROM entries WHERE ? IN ('', suite) "
            "ORDER BY entry_id",
            (suite or "",),
        ).fetchall()
    return [
        Indexed(
            entry_id=name,
            verdict=parse_form(Verdict, text, f"{database}, {name}"),
            record=parse_form(Record, record, f"{database}, {name}"),
        )
        for name, text, record in rows
    ]


def _is_reusable(verdict: Verdict) -> bool:
    """Return whether the same files would have the same verdict again."""
    if verdict.refusal is not None and verdict.refusal.reason in _RETRIED:
        return False
    return verdict.verifier == dict(get_versions())


def _digest(folder: Path) -> str:
    """Return the hash of the entry's files; empty if they are refused."""
    try:
        return entry_digest(EntryFiles(folder).canonical)
    except Refused:
        return ""


def _read_known(database: Path) -> dict[tuple[str, str], Verdict]:
    if not database.is_file():
        return {}
    return {
        (one.entry_id, one.verdict.entry_digest): one.verdict
        for one in read_index(database)
        if one.verdict.entry_digest
    }


def _write(database: Path, entries: Path, found: list[Indexed]) -> None:
    """Write the rows, and keep those of entries that another process has added meanwhile.

    A server accepts entries while the command that reveals a season replays others.
    """
    make_folder(database.parent)
    with _open(database) as base:
        seen = {one.entry_id for one in found}
        old = [
            (name,)
            for (name,) in base.execute("SELECT entry_id FROM entries")
            if name in seen or not (entries / name / MANIFEST).is_file()
        ]
        base.executemany("DELETE FROM entries WHERE entry_id = ?", old)
        _insert(base, found)


def _insert(base: sqlite3.Connection, found: Iterable[Indexed]) -> None:
    now = datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")
    base.executemany(
        "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(one, now) for one in found],
    )


def _row(one: Indexed, now: str) -> tuple[object, ...]:
    verdict, manifest = one.verdict, one.verdict.manifest
    described = ("",) * 5
    if manifest:
        suite, name = manifest.suite.id, manifest.name
        described = (manifest.board, suite, name, manifest.organisation, manifest.date)
    return (
        one.entry_id,
        verdict.entry_digest,
        int(verdict.accepted),
        verdict.refusal.reason if verdict.refusal else "",
        *described,
        verdict.scores.score.mean if verdict.scores else None,
        now,
        one.record.model_dump_json(),
        verdict.model_dump_json(),
    )


@contextlib.contextmanager
def _open(database: Path, renew: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the database in one transaction; close it at the end.

    Args:
        database: The file.
        renew: Whether an index of an earlier version is dropped.

    Raises:
        DataError: The file is not an index.
    """
    try:
        base = sqlite3.connect(database, timeout=30, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise DataError(f"{database}: cannot be opened as a file of an index ({error}).") from error
    try:
        with base:
            base.execute("BEGIN IMMEDIATE")  # else a table is there before its version is
            version = base.execute("PRAGMA user_version").fetchone()[0]
            tables = base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if renew and 0 < version < _VERSION:
                base.execute("DROP TABLE entries")
            elif tables and version != _VERSION:
                raise DataError(
                    f"{database}: not an index of this version (found {version}); rebuild it with "
                    "`turngym leaderboard index`, or name another file."
                )
            base.execute(_SCHEMA)
            if version != _VERSION:  # else who only reads would write, and the file look changed
                base.execute(f"PRAGMA user_version = {_VERSION}")
            yield base
    except sqlite3.OperationalError as error:  # the file is right, and what it lies on is not
        raise DataError(
            f"{database}: the index cannot be used now ({error}). Make room, wait for the process "
            "that holds it, or name a file that you may write; then run the same command again."
        ) from error
    except sqlite3.DatabaseError as error:
        raise DataError(f"{database}: not an index ({error}); name another file.") from error
    finally:
        base.close()
