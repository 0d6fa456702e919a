"""The process that replays one entry: sets its limits first, then reads the untrusted files.

It reads one JSON request from its input and writes lines of progress and a last line with the
verdict to its output. :mod:`.sandbox` starts it.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from pathlib import Path
from typing import IO, Any

from .process_limits import bound_memory, die_with_parent

MIB = 2**20
_GRACE_S = 2


def main() -> int:
    """Verify the entry that the request names."""
    die_with_parent()
    request = json.loads(sys.stdin.read())
    _set_limits(request["cpu_s"], request["memory_mib"], request["file_mib"])
    # Output that an environment prints must not mix with the answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        _send(answers, verdict=_verdict(request, answers))
    except Exception as error:
        if not _out_of_memory(error):
            raise
        _send(answers, stopped="memory_limit")
    return 0


def _verdict(request: dict[str, Any], answers: IO[str]) -> dict[str, Any]:
    from ...envs.core.plugins import load_again
    from ..entries_io.archive import unpack
    from ..schema.limits import ReadLimits
    from ..schema.result import Refused, Verdict
    from ..suites.files import known_suites
    from .verify import verify_folder

    entry = Path(request["entry"])
    limits = ReadLimits(**request["read"])
    reported = 0

    def on_progress(done: int, total: int) -> None:
        nonlocal reported
        if done == total or done - reported >= max(1, total // 100):
            reported = done
            _send(answers, progress=[done, total])

    try:
        root = unpack(entry, _empty(request["room"]), limits) if entry.is_file() else entry
    except Refused as error:
        return Verdict(accepted=False, refusal=error.refusal).model_dump()
    load_again(request["plugins"])
    suites = known_suites([Path(path) for path in request["suites"]])
    return verify_folder(root, suites, limits, on_progress).model_dump()


def _empty(room: str) -> Path:
    folder = Path(room) / "entry"
    folder.mkdir()
    return folder


def _send(answers: IO[str], **message: Any) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _set_limits(cpu_s: int, memory_mib: int, file_mib: int) -> None:
    """Set the resource limits of this process; they can only be lowered afterwards."""
    bound_memory(memory_mib * MIB)
    wanted = {
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: file_mib * MIB,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for what, amount in wanted.items():
        hard = resource.getrlimit(what)[1]
        limit = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        # The soft limit of processor time sends SIGXCPU; the hard limit kills.
        spare = _GRACE_S if what == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(what, (limit, limit + spare))


def _out_of_memory(error: Exception) -> bool:
    """Return whether an error was caused by the memory limit."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return isinstance(error, ImportError) and "failed to map segment" in str(error)


if __name__ == "__main__":
    sys.exit(main())
