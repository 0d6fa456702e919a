"""Publish accepted entries: folders, rows of the index, and pages."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ...envs.core.errors import DataError
from ..entries_io.archive import unpack
from ..ranking.index import Indexed, entries_folder, entry_folders, read_index, rebuild
from ..schema.record import Record, record_path
from ..schema.result import Refusal, Verdict
from ..suites.sealed import is_revealed, season_names, suite_file
from ..verification.sandbox import Cancelled, verify
from .settings import ServerSettings

log = logging.getLogger(__name__)
COMING, UNPACKING = "coming-", "unpacking-"
"""How the names of uploads and entries begin that are not whole yet."""
_LOOK_S = 0.2
"""Seconds between two looks at whether the server stops."""


def suite_files(settings: ServerSettings, *, public: bool = False) -> list[Path]:
    """Return the files of the additional suites: configured ones and those of seasons.

    Args:
        settings: Settings of the server.
        public: Whether to return only public suites, without those of open seasons.
    """
    root = settings.seasons
    names = [name for name in season_names(root) if not public or is_revealed(root, name)]
    return [*settings.suite_files, *(suite_file(root, name) for name in names)]


def publish(
    settings: ServerSettings, source: Path, verdict: Verdict, name: str, record: Record
) -> str:
    """Copy an accepted entry into the folder of entries.

    Args:
        settings: Settings of the server.
        source: Archive or folder of the entry.
        verdict: The verdict that accepted it.
        name: Id of the submission; its first characters make the folder's name unique.
        record: Who sent it and when, which is written beside the folder.

    Returns:
        The entry's id.
    """
    manifest = verdict.manifest
    assert manifest is not None, "an accepted entry was read"
    entry_id = f"{manifest.suite.id}/{_slug(manifest.name)}-{name[:8]}"
    target = settings.entries / entry_id
    if target.exists():
        return entry_id
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.home, prefix=UNPACKING) as room:
        fresh = Path(room) / "entry"
        if source.is_dir():
            shutil.copytree(source, fresh)
        else:
            folder = Path(room) / "archive"
            folder.mkdir()
            unpack(source, folder, settings.read).rename(fresh)
        record.write(record_path(target))
        os.rename(fresh, target)
    return entry_id


def _slug(name: str) -> str:
    """Derive a folder's name from an entry's: lower-case letters, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "entry"


def find_dishonest(settings: ServerSettings, verdict: Verdict, name: str) -> Refusal | None:
    """Return why an upload that replays is refused all the same; None for no reason.

    It claims to be a reference row, or has the actions of an entry that was accepted before and
    does not say that it reproduces that one.

    Args:
        settings: Settings of the server.
        verdict: The verdict that accepted it.
        name: Id of the submission.
    """
    manifest = verdict.manifest
    assert manifest is not None, "an accepted entry was read"
    if manifest.reference is not None:
        message = "the entry says that it is a reference row; those are the maintainers'."
        return Refusal(reason="reserved", message=message, got=manifest.reference)
    there = settings.index.is_file()
    known = read_index(settings.index, manifest.suite.id) if there else []
    for one in known:
        other = one.verdict
        again = one.entry_id.endswith(f"-{name[:8]}")  # published before the server stopped
        if other.manifest is None or other.manifest.suite != manifest.suite or again:
            continue
        if set(other.run_actions) & set(verdict.run_actions) and (
            manifest.reproduces not in (other.manifest.name, one.entry_id)
        ):
            message = (
                "a run has the very actions of an entry that was accepted before. Name it in "
                "'reproduces' if you repeated it."
            )
            return Refusal(reason="copy", message=message, got=one.entry_id)
    return None


def reindex(
    settings: ServerSettings,
    known: dict[str, Verdict] | None = None,
    cancel: threading.Event | None = None,
) -> list[Indexed]:
    """Update the index from the folder of entries.

    Args:
        settings: Settings of the server.
        known: Verdicts that are already computed, by entry id.
        cancel: Ends it once it is set; what was replayed until then is kept.

    Raises:
        Cancelled: ``cancel`` was set.
    """
    suites, verdicts = suite_files(settings), known or {}

    def verdict_of(folder: Path) -> Verdict:
        entry_id = folder.relative_to(settings.entries).as_posix()
        if entry_id in verdicts:
            return verdicts[entry_id]
        limits = {"read": settings.read, "replay": settings.replay}
        return verify(folder, suites=suites, cancel=cancel, **limits)

    return rebuild(settings.entries, settings.index, verdict_of)


def sweep(settings: ServerSettings) -> None:
    """Delete what a server that stopped was receiving and unpacking.

    Only for a server that starts: to all others, what is not whole yet may be at work.
    """
    for left in (*settings.uploads.glob(f"{COMING}*"), *settings.home.glob(f"{UNPACKING}*")):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def prepare(settings: ServerSettings) -> None:
    """Create the server's folders, with the entries of the package."""
    for folder in (settings.home, settings.uploads, settings.seasons):
        folder.mkdir(parents=True, exist_ok=True)
    settings.home.chmod(0o700)
    if not settings.entries.exists():
        with tempfile.TemporaryDirectory(dir=settings.home, prefix=UNPACKING) as room:
            fresh = Path(room) / "entries"
            fresh.mkdir()
            for entry_id, folder in entry_folders(entries_folder()):
                shutil.copytree(folder, fresh / entry_id)
            fresh.rename(settings.entries)


def site_state(settings: ServerSettings) -> tuple[object, ...]:
    """Return what changes when pages become old: the index, and which suites are public.

    Commands that run beside the server change both: a reveal does.
    """
    there = settings.index.stat() if settings.index.is_file() else None
    written = (there.st_mtime_ns, there.st_size) if there else None
    return written, *suite_files(settings, public=True)


def write_site(settings: ServerSettings, cancel: threading.Event | None = None) -> None:
    """Write the pages in a separate process, since they replay untrusted entries.

    Args:
        settings: Settings of the server.
        cancel: Ends the process once it is set.

    Raises:
        DataError: The process failed; the pages stay as they were.
        Cancelled: ``cancel`` was set; likewise.
    """
    arguments = [
        *("--entries", settings.entries, "--index", settings.index, "--out", settings.site),
        *(part for path in suite_files(settings, public=True) for part in ("--suite-file", path)),
    ]
    command = [sys.executable, "-P", "-m", "turngym.leaderboard.site.build", *map(str, arguments)]
    until, pipe = time.monotonic() + settings.build_s, subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            out, errors = _read_output(process, until, cancel or threading.Event())
        except subprocess.TimeoutExpired as error:
            took = f"more than {settings.build_s:g} seconds"
            raise DataError(f"writing the site took {took}.") from error
        finally:
            process.kill()
    if process.returncode:
        last = errors.strip().splitlines()[-1:] or [f"it ended with {process.returncode}"]
        raise DataError(f"writing the site failed: {last[0][:300]}")
    log.info("site written: %s", out.strip())


def _read_output(
    process: subprocess.Popen[str], until: float, cancel: threading.Event
) -> tuple[str, str]:
    while not cancel.is_set():
        left = until - time.monotonic()
        if left <= 0:
            raise subprocess.TimeoutExpired(process.args, 0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=min(left, _LOOK_S))
    raise Cancelled
