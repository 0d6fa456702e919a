"""Verify entries in processes with limits on time and memory, so that none blocks the queue."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ...envs.core.errors import DataError
from ...envs.core.plugins import loaded_plugins
from ...envs.utils.system import require_posix
from ..schema.base import OnProgress, parse_form
from ..schema.limits import ReadLimits, ReplayLimits
from ..schema.result import Reason, Refusal, Verdict

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "TMPDIR", "XDG_CACHE_HOME")
_OWN = "TURNGYM_CACHE"
_ANSWER_BYTES = 256 * 2**20
_CHUNK = 2**20
_LOOK_S = 0.2
"""Seconds between two looks at whether the verification is cancelled."""
Answer = Verdict | Reason | None
_WHY = {
    "cpu_limit": "replaying took more than {cpu_s} processor seconds",
    "wall_limit": "replaying took more than {wall_s:g} seconds",
    "memory_limit": "replaying took more than {memory_mib} MiB of memory",
}


class Cancelled(Exception):
    """What was cancelled has no result, and can be begun again."""


def verify(
    entry: Path,
    *,
    suites: Sequence[Path] = (),
    read: ReadLimits | None = None,
    replay: ReplayLimits | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> Verdict:
    """Verify an entry in a separate process.

    Args:
        entry: Its folder, or an archive of it.
        suites: Files of suites that are not part of the package.
        read: Limits on what is read.
        replay: Resource limits of the process.
        on_progress: Called with the number of replayed episodes and of all.
        cancel: Ends the process once it is set.

    Returns:
        The verdict; an entry that crashes the process is refused.

    Raises:
        DataError: There is no such entry.
        BadValueError: The system cannot bound a process.
        Cancelled: ``cancel`` was set.
    """
    if not entry.exists():
        raise DataError(f"{entry}: there is no such entry; expected a folder or an archive.")
    require_posix("verifying an entry")
    bounds = replay or ReplayLimits()
    request = {
        "entry": str(entry.resolve()),
        "suites": [str(path.resolve()) for path in suites],
        "plugins": loaded_plugins(),  # the operator's own; an entry cannot name any
        "read": dataclasses.asdict(read or ReadLimits()),
        **dataclasses.asdict(bounds),
    }
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="turngym-entry-") as room:
        run = _Run(request | {"room": room}, begun + bounds.wall_s, cancel or threading.Event())
        verdict = run.verdict(bounds, on_progress)
    return verdict.model_copy(update={"seconds": time.monotonic() - begun})


def verify_queue(
    entries: Iterable[Path], **settings: Any
) -> Iterator[tuple[Path, Verdict | DataError]]:
    """Verify entries one after the other; a malicious or missing one does not stop the rest.

    Args:
        entries: Folders or archives.
        settings: Keyword arguments of :func:`verify`.
    """
    for entry in entries:
        try:
            yield entry, verify(entry, **settings)
        except DataError as error:
            yield entry, error


class _Run:
    """One verifying process."""

    def __init__(self, request: dict[str, Any], deadline: float, cancel: threading.Event) -> None:
        self._request = request
        self._deadline = deadline
        self._cancel = cancel
        self._replayed = 0

    def verdict(self, bounds: ReplayLimits, on_progress: OnProgress | None) -> Verdict:
        """Start the process, read its messages, and end it in any case."""
        with tempfile.TemporaryFile() as stderr:
            process = self._start(stderr)
            try:
                answer = self._listen(process, on_progress)
            finally:
                _end(process)
            if isinstance(answer, Verdict):
                return answer
            reason = answer or _reason(process.returncode)
            last = _tail(stderr) or f"it ended with {process.returncode}"
            return self._refusal(reason, bounds, last)

    def _start(self, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        inherited = {name: os.environ[name] for name in (*_INHERITED, _OWN) if name in os.environ}
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "turngym.leaderboard.verification.sandbox_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=inherited | threads,
            cwd=self._request["room"],
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(self._request).encode())
            process.stdin.close()
        return process

    def _listen(self, process: subprocess.Popen[bytes], on_progress: OnProgress | None) -> Answer:
        """Return the verdict, the limit that was exceeded, or None if the process died."""
        assert process.stdout is not None
        taken, line = 0, bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while taken < _ANSWER_BYTES:
                if (left := self._left()) <= 0:
                    return "wall_limit"
                if not selector.select(min(left, _LOOK_S)):
                    continue
                data = os.read(process.stdout.fileno(), _CHUNK)
                if not data:
                    return self._exit(process)
                taken += len(data)
                first, *others = data.split(b"\n")
                line += first
                for other in others:
                    if (answer := self._handle_message(json.loads(line), on_progress)) is not None:
                        return answer
                    line = bytearray(other)
        return "memory_limit"

    def _handle_message(self, message: dict[str, Any], on_progress: OnProgress | None) -> Answer:
        if "verdict" in message:
            return parse_form(Verdict, json.dumps(message["verdict"]), "the verifying process")
        if "stopped" in message:
            return message["stopped"]
        self._replayed, total = message["progress"]
        if on_progress is not None:
            on_progress(self._replayed, total)
        return None

    def _exit(self, process: subprocess.Popen[bytes]) -> Reason | None:
        """Wait for the process to exit after its output was closed."""
        while True:
            left = self._left()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(max(0.1, left), _LOOK_S))
                return None
            if left <= 0:
                return "wall_limit"

    def _left(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            Cancelled: The verification was cancelled.
        """
        if self._cancel.is_set():
            raise Cancelled
        return self._deadline - time.monotonic()

    def _refusal(self, reason: Reason, bounds: ReplayLimits, last_line: str) -> Verdict:
        why = _WHY.get(reason, "the verifying process died").format(**dataclasses.asdict(bounds))
        detail = f": {last_line}" if reason == "crashed" else ""
        refusal = Refusal(reason=reason, message=f"{why}{detail}."[:600])
        return Verdict(accepted=False, refusal=refusal, replayed=self._replayed)


def _reason(code: int | None) -> Reason:
    return "cpu_limit" if code == -signal.SIGXCPU else "crashed"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _tail(stderr: IO[bytes]) -> str:
    """Return the last line of the process's error output."""
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - 4000))
    lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    return last if len(last) <= 300 else f"{last[:300]}…"
