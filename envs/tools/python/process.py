"""One snippet in one sandboxed process: started, watched, ended, and nothing left of it."""

from __future__ import annotations

import contextlib
import marshal
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

from ...core.errors import EnvFault
from .filters import OF_MODES, call_filter

START_S = 60.0
"""How long an interpreter may take until the code starts; this is not the code's time."""
MAX_OUTPUT_BYTES = 1 << 20
"""Bytes on one of the two streams after which the process is ended."""
_END_S = 10.0  # how long a killed process may take to vanish
_AFTER_S = 0.5  # how long output may trickle in after the end
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_PREFIX = "/python"  # where code sees the standard library
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_START = (
    "import marshal,sys;exec(marshal.load(sys.stdin.buffer),"
    "{'__name__':'sandbox','__builtins__':__builtins__})"
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one snippet may use.

    Attributes:
        timeout_s: Seconds from the start of the code to its end.
        memory_bytes: Address space.
        disk_bytes: Size of a file, and where namespaces hold of the whole temporary folder.
    """

    timeout_s: float
    memory_bytes: int
    disk_bytes: int


@dataclass(kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        status: Exit status; the negative number of a signal that ended it.
        why: "itself", "timeout" or "output".
        out: First bytes of stdout.
        err: First bytes of stderr.
    """

    status: int = 0
    why: str = "itself"
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)


def run_sandboxed(source: str, layers: Sequence[str], limits: Limits) -> Ended:
    """Run ``source`` behind ``layers``, and wait for its end.

    Raises:
        EnvFault: The process could not be started, or a layer could not be put up.
    """
    try:
        return _run(source, layers, limits)
    except OSError as fault:
        raise EnvFault(f"the python tool: this machine has no room for it: {fault}") from fault


def _run(source: str, layers: Sequence[str], limits: Limits) -> Ended:
    with contextlib.ExitStack() as stack:
        folder = ""
        if "namespaces" not in layers:
            folder = tempfile.mkdtemp(prefix="turngym-python-")
            stack.callback(_remove, folder)
        report, reports = os.pipe()
        stack.callback(os.close, report)
        try:
            sent = stack.enter_context(tempfile.TemporaryFile())
            sent.write(_payload(source, layers, limits, reports, folder))
            sent.seek(0)
            process = _launch(sent, reports)
        finally:
            os.close(reports)
        stack.callback(_end, process, report)
        return _Watcher(process, report).wait(limits.timeout_s)


def _launch(sent: IO[bytes], reports: int) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise EnvFault("the python tool: sys.executable is empty; it needs an interpreter to run.")
    try:
        return subprocess.Popen(
            [sys.executable, "-s", "-S", "-P", "-B", "-X", "utf8", "-c", _START],
            stdin=sent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(reports,),
            env={"PYTHONHASHSEED": "0"},
            cwd="/",
            start_new_session=True,
        )
    except OSError as fault:
        raise EnvFault(f"the python tool: {sys.executable} does not start: {fault}") from fault


def _end(process: subprocess.Popen[bytes], report: int) -> None:
    """Let the keeper kill and bury its child, then kill what may be left of the group.

    The keeper has not been waited for until the last line, so its number is still its own.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)
    with selectors.DefaultSelector() as ready:
        ready.register(report, selectors.EVENT_READ)
        while ready.select(_END_S) and os.read(report, 1 << 10):
            pass
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _remove(folder: str) -> None:
    """Remove a folder, with the folders in it that the code made unreadable."""
    for place, inner, _ in os.walk(folder):
        for path in (os.path.join(place, name) for name in inner):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


class _Watcher:
    """Reads both streams and the keeper's report until all are closed or a limit is hit."""

    def __init__(self, process: subprocess.Popen[bytes], report: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.ended = Ended()
        self._reported = bytearray()
        self._report = report
        self._sinks = {
            report: self._reported,
            process.stdout.fileno(): self.ended.out,
            process.stderr.fileno(): self.ended.err,
        }

    def wait(self, timeout_s: float) -> Ended:
        deadline, started, over = time.monotonic() + START_S, False, False
        with selectors.DefaultSelector() as ready:
            for place in self._sinks:
                ready.register(place, selectors.EVENT_READ)
            while ready.get_map():
                left = deadline - time.monotonic()
                if left <= 0 or not self._read(ready, left):
                    if not over:
                        self._stop(started, left)
                    break
                if not started and self._reported.startswith(b"ready\n"):
                    started, deadline = True, time.monotonic() + timeout_s
                if not over and self._report not in ready.get_map():
                    over, deadline = True, time.monotonic() + _AFTER_S
        return self._read_report(started)

    def _read(self, ready: selectors.BaseSelector, left: float) -> bool:
        """Take what has come; False when a stream holds more than it may."""
        for key, _ in ready.select(left):
            sink = self._sinks[key.fd]
            chunk = os.read(key.fd, 1 << 16)
            sink += chunk
            if not chunk:
                ready.unregister(key.fd)
            if len(sink) > MAX_OUTPUT_BYTES:
                return False
        return True

    def _stop(self, started: bool, left: float) -> None:
        if not started:
            raise EnvFault(f"the python tool: no start within {START_S:g} s; is the machine full?")
        self.ended.why = "timeout" if left <= 0 else "output"

    def _read_report(self, started: bool) -> Ended:
        report = self._reported.decode("utf-8", "replace")
        if not started:
            fault = report.removeprefix("fault ").strip() or self.ended.err.decode(
                "utf-8", "replace"
            )
            raise EnvFault(f"the python tool could not close a process off: {fault[-500:]}")
        kind, _, number = report.removeprefix("ready\n").strip().partition(" ")
        if kind:
            self.ended.status = -int(number) if kind == "signal" else int(number)
        elif self.ended.why == "itself":
            raise EnvFault("the python tool: the process that keeps the code was killed.")
        return self.ended


@cache
def _compiled_child() -> bytes:
    path = Path(__file__).with_name("sandbox_child.py")
    code = compile(path.read_text(encoding="utf-8"), "sandbox_child.py", "exec", dont_inherit=True)
    return marshal.dumps(code)


def _payload(source: str, layers: Sequence[str], limits: Limits, report: int, folder: str) -> bytes:
    job = {
        "source": source,
        "layers": list(layers),
        "report": report,
        "folder": folder,
        "cpu_s": int(limits.timeout_s) + 2,
        "memory_bytes": limits.memory_bytes,
        "disk_bytes": limits.disk_bytes,
        "filter": call_filter(
            os.uname().machine, frozenset() if "namespaces" in layers else OF_MODES
        ),
        **_find_files(),
    }
    return _compiled_child() + marshal.dumps(job)


@cache
def _find_files() -> dict[str, Any]:
    """Return the machine's files that the sandbox sees, read-only: libraries and three devices."""
    readable: list[tuple[str, str]] = []  # where it is, where the code sees it
    for path in sorted({os.path.realpath(path) for path in _LIBRARIES if os.path.isdir(path)}):
        if not any(path.startswith(f"{above}/") for above, _ in readable):
            readable.append((path, path))
    library = os.path.join(sys.base_prefix, sys.platlibdir)
    readable.append((os.path.realpath(library), f"{_PREFIX}/{sys.platlibdir}"))
    packages = os.path.relpath(os.path.join(os.path.dirname(os.__file__), "site-packages"), library)
    return {
        "base": os.path.realpath(tempfile.gettempdir()),
        "links": [(path, os.readlink(path)) for path in _LIBRARIES if os.path.islink(path)],
        "readable": readable,
        "emptied": [f"{_PREFIX}/{sys.platlibdir}/{packages}"]
        if os.path.isdir(os.path.join(library, packages))
        else [],
        "prefix": _PREFIX,
        "devices": [path for path in _DEVICES if os.path.exists(path)],
    }
