"""Where jobs run: the interface, and one process per worker on this machine."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from .jobs import Job

GRACE_S = 60.0
"""Time that a stopped worker has to save its checkpoint."""


class Ended(NamedTuple):
    """A job that is over.

    Attributes:
        job: The job.
        death: Why the worker died before it wrote a result; empty when it wrote one.
    """

    job: Job
    death: str


class Executor(Protocol):
    """Runs jobs somewhere. Their results are files in the matrix's folder."""

    @property
    def slots(self) -> int:
        """Jobs that run at a time."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job; there must be a free slot."""
        ...

    def wait(self, seconds: float) -> list[Ended]:
        """Jobs that ended, after at most so long; the first one ends the waiting."""
        ...

    def stop(self) -> None:
        """End everything; running jobs save themselves first. Harmless when nothing runs."""
        ...


class ProcessExecutor:
    """Processes on this machine, each of which does one job after the other.

    Args:
        workers: Processes.
        logs: Folder of what they write, one file each.
        gpus: GPUs as ``CUDA_VISIBLE_DEVICES`` names them, dealt out in turn; empty for none.
        environment: Further environment variables of the workers.
    """

    def __init__(
        self,
        workers: int,
        logs: Path,
        gpus: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._logs = logs
        self._environments = [
            {
                **os.environ,
                **(environment or {}),
                **({"CUDA_VISIBLE_DEVICES": gpus[i % len(gpus)]} if gpus else {}),
            }
            for i in range(workers)
        ]
        self._workers: list[_Worker | None] = [None] * workers
        self._selector = selectors.DefaultSelector()

    @property
    def slots(self) -> int:
        """Processes."""
        return len(self._workers)

    def submit(self, job: Job) -> None:
        """Give a job to a worker that has none; it is started when there is none."""
        at = next(i for i, w in enumerate(self._workers) if w is None or w.job is None)
        worker = self._workers[at]
        if worker is None:
            self._logs.mkdir(parents=True, exist_ok=True)
            worker = _Worker(self._environments[at], self._logs / f"worker-{at}.log")
            self._workers[at] = worker
            self._selector.register(worker.replies, selectors.EVENT_READ, at)
        worker.give(job)

    def wait(self, seconds: float) -> list[Ended]:
        """Jobs that ended, after at most so long."""
        ended = []
        for key, _ in self._selector.select(seconds):
            at = int(key.data)
            worker = self._workers[at]
            assert worker is not None
            done = worker.read()
            if worker.gone:
                self._selector.unregister(worker.replies)
                worker.close()
                self._workers[at] = None
            ended += done
        return ended

    def stop(self) -> None:
        """Ask the workers to end, wait while they save, and kill what does not end."""
        alive = [worker for worker in self._workers if worker is not None]
        for worker in alive:
            worker.ask_to_end()
        until = time.monotonic() + GRACE_S
        for worker in alive:
            self._selector.unregister(worker.replies)
            worker.end(max(0.1, until - time.monotonic()))
            worker.close()
        self._workers = [None] * len(self._workers)


class _Worker:
    """One process: a line of JSON for every job, a line back when it is over."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.job: Job | None = None
        self.gone = False
        with log.open("a", encoding="utf-8") as errors:
            # A session of its own: Ctrl-C in the terminal reaches the parent alone, which asks.
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(environment),
                text=True,
                start_new_session=True,
            )
        self._log = log

    @property
    def replies(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def give(self, job: Job) -> None:
        assert self._process.stdin is not None
        self.job = job
        with suppress(BrokenPipeError):  # it died in between: reading from it tells
            self._process.stdin.write(job.model_dump_json() + "\n")
            self._process.stdin.flush()

    def read(self) -> list[Ended]:
        """The end of the job; its worker's death where that came first."""
        line = self.replies.readline()
        job, self.job = self.job, None
        if line:
            assert job is not None
            assert json.loads(line)["done"]
            return [Ended(job, "")]
        self.gone = True
        code = self._process.wait()
        return [] if job is None else [Ended(job, f"the worker {_death(code)}; see {self._log}")]

    def ask_to_end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def end(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what was not sent has no reader any more
                    pipe.close()


def _death(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed (out of memory?)"
    if code < 0:
        return f"ended by signal {-code}"
    return f"ended with status {code}"
