"""A worker process: reads jobs as lines of JSON and answers each with a line.

``python -m turngym.benchmarks.matrix.worker``; it ends with its input, with SIGTERM after saving.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import IO

from ...algos.learner.freed_memory import give_memory_back
from ...algos.runs.interrupts import terminate_as_interrupt
from ...envs.core.plugins import load_inherited
from ...envs.utils.garbage_collection import freeze_for_good
from ..runtime.threads import prepare
from .jobs import Job, perform


def main() -> int:
    """Execute jobs until the input ends."""
    replies = _take_stdout()
    # A parent in the background of a shell passes on that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with terminate_as_interrupt() as termination:
            prepared, first = False, True
            busy = threading.Event()
            for job in _jobs(busy):
                if not prepared:
                    prepare(small=True)
                    load_inherited()
                    prepared = True
                state = perform(job)
                gc.collect()  # models of the last job form reference cycles, on a GPU too
                if first:
                    freeze_for_good()  # libraries: half of them were imported on the way
                    first = False
                give_memory_back()
                busy.clear()  # before the answer: who reads it may end the input at once
                replies.write(json.dumps({"done": str(job), "state": state}) + "\n")
                replies.flush()
                if termination.came:  # and a library swallowed it: nobody sends another job
                    return 130
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1  # the parent is gone
    return 0


def _take_stdout() -> IO[str]:
    """Return the pipe for replies; redirect the output of libraries to the log."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


def _jobs(busy: threading.Event) -> Iterator[Job]:
    """Yield jobs, each with ``busy`` set; if the parent dies during one, stop this process too."""
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")
        if busy.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=read, daemon=True).start()
    while line := lines.get():
        busy.set()
        yield Job.model_validate_json(line)


if __name__ == "__main__":
    sys.exit(main())
