"""The background: one thread verifies what waits; nothing that it meets ends it."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..schema.result import Verdict
from ..suites.sealed import suite_file
from ..verification.sandbox import verify
from .publishing import prepare, publish, reindex, write_site
from .settings import ServerSettings
from .submissions import Submission, requeue_interrupted, take_next, update

log = logging.getLogger(__name__)
_TOLD_S = 0.5
_POLL_S = 2.0


class Worker:
    """Verifies submissions one after the other, in processes with limits.

    Args:
        settings: Of the server.
        housekeeping: Called whenever the queue is looked at (sessions expire there).
    """

    def __init__(self, settings: ServerSettings, housekeeping: Callable[[], object]) -> None:
        self._settings = settings
        self._housekeeping = housekeeping
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verifier", daemon=True)
        self._site_is_old = True

    def start(self) -> None:
        """Begin; what a former server left unfinished comes first."""
        prepare(self._settings)
        requeue_interrupted(self._settings)
        self._thread.start()

    def nudge(self) -> None:
        """Something new waits."""
        self._wake.set()

    def stop(self) -> None:
        """End after the present submission."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        self._guarded("the index", lambda: reindex(self._settings))
        while not self._stop.is_set():
            self._wake.clear()
            self._guarded("housekeeping", self._housekeeping)
            one = take_next(self._settings)
            if one is not None:
                self._handle(one)
                continue
            if self._site_is_old:
                self._site_is_old = False
                self._guarded("the site", lambda: write_site(self._settings))
            self._wake.wait(_POLL_S)

    def _guarded(self, what: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception:
            log.exception("%s failed", what)

    def _handle(self, one: Submission) -> None:
        try:
            self._verify(one)
        except Exception as error:
            log.exception("submission %s", one.id)
            message = f"the server failed: {type(error).__name__}: {error}"[:500]
            update(self._settings, one.id, state="broken", message=message)

    def _verify(self, one: Submission) -> None:
        settings, told = self._settings, 0.0

        def tell(done: int, total: int) -> None:
            nonlocal told
            if done == total or time.monotonic() - told > _TOLD_S:
                told = time.monotonic()
                update(settings, one.id, done=done, total=total)

        suites = list(settings.suite_files)
        if one.season:
            suites.append(suite_file(settings.seasons, one.season))
        verdict = verify(
            Path(one.path), suites=suites, read=settings.read, replay=settings.replay, tell=tell
        )
        if verdict.refusal is not None:
            self._refuse(one, verdict)
        else:
            self._accept(one, verdict)
        _remove(Path(one.path))

    def _refuse(self, one: Submission, verdict: Verdict) -> None:
        refusal = verdict.refusal
        assert refusal is not None
        said = [refusal.message]
        said += [f"expected: {refusal.expected}"] if refusal.expected else []
        said += [f"got: {refusal.got}"] if refusal.got else []
        update(
            self._settings,
            one.id,
            state="refused",
            done=verdict.replayed,
            reason=refusal.reason,
            message="\n".join(said),
        )

    def _accept(self, one: Submission, verdict: Verdict) -> None:
        assert verdict.scores is not None, "an accepted entry has scores"
        entry_id = publish(self._settings, Path(one.path), verdict, one.id)
        reindex(self._settings, {entry_id: verdict})
        update(
            self._settings,
            one.id,
            state="accepted",
            done=verdict.replayed,
            total=verdict.replayed,
            entry_id=entry_id,
            score=verdict.scores.score.mean,
        )
        self._site_is_old = True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
