"""The process that replays one entry: takes limits first, then reads what somebody untrusted sent.

Speaks JSON: one request on its input, then lines of progress and a last line with the verdict on
its output. :mod:`.sandbox` starts it.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from pathlib import Path
from typing import IO, Any

MIB = 2**20
_GRACE_S = 2


def main() -> int:
    """Verify the entry that the request names."""
    request = json.loads(sys.stdin.read())
    _take_limits(request["cpu_s"], request["memory_mib"], request["file_mib"])
    # Nothing that a world prints may mix with the answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        _say(answers, verdict=_verdict(request, answers))
    except Exception as error:
        if not _out_of_memory(error):
            raise
        _say(answers, stopped="memory_limit")
    return 0


def _verdict(request: dict[str, Any], answers: IO[str]) -> dict[str, Any]:
    from ..entries_io.archive import unpack
    from ..schema.limits import ReadLimits
    from ..schema.result import Refused, Verdict
    from ..suites.files import known_suites
    from .verify import verify_folder

    entry = Path(request["entry"])
    limits = ReadLimits(**request["read"])
    shown = 0

    def tell(done: int, total: int) -> None:
        nonlocal shown
        if done == total or done - shown >= max(1, total // 100):
            shown = done
            _say(answers, progress=[done, total])

    try:
        root = unpack(entry, _empty(request["room"]), limits) if entry.is_file() else entry
    except Refused as error:
        return Verdict(accepted=False, refusal=error.refusal).model_dump()
    suites = known_suites([Path(path) for path in request["suites"]])
    return verify_folder(root, suites, limits, tell).model_dump()


def _empty(room: str) -> Path:
    folder = Path(room) / "entry"
    folder.mkdir()
    return folder


def _say(answers: IO[str], **message: Any) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _take_limits(cpu_s: int, memory_mib: int, file_mib: int) -> None:
    """Bound this process; it can only tighten them from here on."""
    wanted = {
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_AS: memory_mib * MIB,
        resource.RLIMIT_FSIZE: file_mib * MIB,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for what, amount in wanted.items():
        hard = resource.getrlimit(what)[1]
        most = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        # At the soft limit of processor time comes a signal that says why; then the end.
        spare = _GRACE_S if what == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(what, (most, most + spare))


def _out_of_memory(error: Exception) -> bool:
    """Whether an error says that the memory limit was met, in whatever way."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return isinstance(error, ImportError) and "failed to map segment" in str(error)


if __name__ == "__main__":
    sys.exit(main())
