"""The background thread that verifies queued submissions and survives their errors."""

from __future__ import annotations

import contextlib
import datetime
import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..ranking.index import Indexed, add_entry
from ..schema.record import Record, read_record
from ..schema.result import Refusal, Verdict
from ..suites.sealed import suite_file
from ..verification.sandbox import Cancelled, verify
from .publishing import find_dishonest, publish, reindex, site_state, sweep, write_site
from .settings import ServerSettings
from .submissions import Submission, give_back, requeue_interrupted, take_next, update

log = logging.getLogger(__name__)
T = TypeVar("T")
_UPDATE_S = 0.5
_POLL_S = 2.0


class Worker:
    """Verifies submissions one after the other in processes with limits.

    Args:
        settings: Settings of the server.
        housekeeping: Called before every look at the queue (sessions expire there).
    """

    def __init__(self, settings: ServerSettings, housekeeping: Callable[[], object]) -> None:
        self._settings = settings
        self._housekeeping = housekeeping
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verifier", daemon=True)
        self._shown: tuple[object, ...] | None = None

    def start(self) -> None:
        """Start the thread; submissions that a stopped server left unfinished come first."""
        sweep(self._settings)
        requeue_interrupted(self._settings)
        self._thread.start()

    def nudge(self) -> None:
        """Wake the thread after a new submission."""
        self._wake.set()

    def stop(self) -> None:
        """Stop; what is being verified goes back to the queue."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(Cancelled):
            self._work()

    def _work(self) -> None:
        self._guarded("the index", lambda: reindex(self._settings, cancel=self._stop))
        while not self._stop.is_set():
            self._wake.clear()
            self._guarded("housekeeping", self._housekeeping)
            if self._guarded("the queue", self._verify_next):
                continue
            self._guarded("the site", self._update_site)
            self._wake.wait(_POLL_S)

    def _guarded(self, what: str, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except Cancelled:
            raise
        except Exception:
            log.exception("%s failed", what)
            return None

    def _update_site(self) -> None:
        """Write the pages if they are old, once: a failure comes again only with a change."""
        state = site_state(self._settings)
        if state != self._shown:
            self._shown = state
            write_site(self._settings, self._stop)

    def _verify_next(self) -> bool:
        """Verify the submission that is next; return whether there was one."""
        requeue_interrupted(self._settings)  # whose state an error kept from being written
        one = take_next(self._settings)
        if one is not None:
            self._handle(one)
        return one is not None

    def _handle(self, one: Submission) -> None:
        try:
            self._verify(one)
        except Cancelled:
            give_back(self._settings, one)
            raise
        except Exception as error:
            log.exception("submission %s", one.id)
            message = f"the server failed: {type(error).__name__}: {error}"[:500]
            update(self._settings, one.id, state="broken", message=message)

    def _verify(self, one: Submission) -> None:
        settings, updated = self._settings, 0.0

        def on_progress(done: int, total: int) -> None:
            nonlocal updated
            if done == total or time.monotonic() - updated > _UPDATE_S:
                updated = time.monotonic()
                update(settings, one.id, done=done, total=total)

        suites = list(settings.suite_files)
        if one.season:
            suites.append(suite_file(settings.seasons, one.season))
        verdict = verify(
            Path(one.path),
            suites=suites,
            read=settings.read,
            replay=settings.replay,
            on_progress=on_progress,
            cancel=self._stop,
        )
        refusal = verdict.refusal
        if refusal is None and not one.season:
            refusal = find_dishonest(settings, verdict, one.id)
        if refusal is not None:
            self._refuse(one, refusal, verdict.replayed)
        else:
            self._accept(one, verdict)
        self._guarded("deleting an upload", lambda: _remove(Path(one.path)))

    def _refuse(self, one: Submission, refusal: Refusal, replayed: int) -> None:
        lines = [refusal.message]
        lines += [f"expected: {refusal.expected}"] if refusal.expected else []
        lines += [f"got: {refusal.got}"] if refusal.got else []
        update(
            self._settings,
            one.id,
            state="refused",
            done=replayed,
            reason=refusal.reason,
            message="\n".join(lines),
        )

    def _accept(self, one: Submission, verdict: Verdict) -> None:
        assert verdict.scores is not None, "an accepted entry has scores"
        now = datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")
        record = Record(account=one.account, accepted=now, season=one.season)
        entry_id = publish(self._settings, Path(one.path), verdict, one.id, record)
        if self._settings.index.is_file():
            record = read_record(self._settings.entries / entry_id)
            added = Indexed(entry_id=entry_id, verdict=verdict, record=record)
            add_entry(self._settings.index, added)
        else:
            reindex(self._settings, {entry_id: verdict}, self._stop)
        update(
            self._settings,
            one.id,
            state="accepted",
            done=verdict.replayed,
            total=verdict.replayed,
            entry_id=entry_id,
            score=verdict.scores.score.mean,
        )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
