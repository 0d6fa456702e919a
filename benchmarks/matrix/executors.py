"""Executors run jobs: the protocol, and worker processes on this machine."""

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

from ...agents.models.device_memory import SHARE, card_share, share_of
from .jobs import Job

GRACE_S = 60.0
"""Seconds that a stopped worker has to save its checkpoint."""
MPS_FOLDER = Path("/tmp/nvidia-mps")
"""Where CUDA's multi-process service and its programs meet unless told otherwise."""
JOBS_PER_WORKER = 100
"""Jobs after which a worker is replaced: libraries hold on to memory, 10 MB a small cell."""


class Ended(NamedTuple):
    """A job that ended.

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
        """Return the number of concurrent jobs."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job; there must be a free slot."""
        ...

    def wait(self, seconds: float) -> list[Ended]:
        """Wait for the first job to end, up to the timeout; return the ended jobs."""
        ...

    def stop(self) -> None:
        """Stop all jobs after they have saved their state; may be called again."""
        ...


class ProcessExecutor:
    """Worker processes on this machine, each of which executes one job after the other.

    Args:
        workers: Processes.
        logs: Folder of their output, one file each.
        gpus: GPUs as ``CUDA_VISIBLE_DEVICES`` names them, dealt out in turn; empty for none.
            Where there are fewer than workers, each worker takes its share of a card's memory.
        environment: Further environment variables of the workers.
        jobs_per_worker: Jobs after which a worker is replaced by a new process.
    """

    def __init__(
        self,
        workers: int,
        logs: Path,
        gpus: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        jobs_per_worker: int = JOBS_PER_WORKER,
    ) -> None:
        self._logs = logs
        self._jobs_per_worker = jobs_per_worker
        self._environments = [
            {**os.environ, **(environment or {}), **_card_of(i, workers, gpus)}
            for i in range(workers)
        ]
        self._workers: list[_Worker | None] = [None] * workers
        self._selector = selectors.DefaultSelector()

    @property
    def slots(self) -> int:
        """Return the number of processes."""
        return len(self._workers)

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker, which is started if necessary."""
        at = next(i for i, w in enumerate(self._workers) if w is None or w.job is None)
        worker = self._workers[at]
        if worker is not None and not worker.give(job):  # it died between two jobs
            self._remove(at, worker)
            worker = None
        if worker is None:
            self._logs.mkdir(parents=True, exist_ok=True)
            worker = _Worker(self._environments[at], self._logs / f"worker-{at}.log")
            self._workers[at] = worker
            self._selector.register(worker.replies, selectors.EVENT_READ, at)
            worker.give(job)

    def wait(self, seconds: float) -> list[Ended]:
        """Wait up to the timeout; return the jobs that ended."""
        ended = []
        for key, _ in self._selector.select(seconds):
            at = int(key.data)
            worker = self._workers[at]
            assert worker is not None
            done = worker.read()
            if not worker.gone and worker.done >= self._jobs_per_worker:
                worker.retire()
            if worker.gone:
                self._remove(at, worker)
            ended += done
        return ended

    def stop(self) -> None:
        """Terminate the workers, wait while they save, and kill those that do not exit."""
        alive = [(at, worker) for at, worker in enumerate(self._workers) if worker is not None]
        for _, worker in alive:
            worker.ask_to_end()
        until = time.monotonic() + GRACE_S
        for at, worker in alive:
            worker.end(max(0.1, until - time.monotonic()))
            self._remove(at, worker)

    def _remove(self, at: int, worker: _Worker) -> None:
        self._selector.unregister(worker.replies)
        worker.close()
        self._workers[at] = None


def cards_take_turns(workers: int, gpus: Sequence[str]) -> bool:
    """Return whether workers share a card without CUDA's multi-process service.

    Then the card computes for one of them at a time. The service is known by its pipe ``control``
    in ``CUDA_MPS_PIPE_DIRECTORY``, or in ``/tmp/nvidia-mps``; whether it answers is not asked.
    """
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or MPS_FOLDER)
    return 0 < len(gpus) < workers and not (folder / "control").exists()


def _card_of(worker: int, workers: int, gpus: Sequence[str]) -> dict[str, str]:
    """Return what a worker finds in its environment about its card, and its share of it."""
    if not gpus:
        return {}
    at = worker % len(gpus)
    beside = len(range(at, workers, len(gpus)))
    return {"CUDA_VISIBLE_DEVICES": gpus[at], SHARE: str(card_share() * share_of(1 / beside))}


class _Worker:
    """One process: a line of JSON for every job, a line back when it is over."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.job: Job | None = None
        self.gone = False
        self.done = 0  # jobs
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

    def give(self, job: Job) -> bool:
        """Send a job; return whether the process was there, else reading from it reports why."""
        assert self._process.stdin is not None
        self.job = job
        try:
            self._process.stdin.write(job.model_dump_json() + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return self._process.poll() is None

    def read(self) -> list[Ended]:
        """Return the end of the job, or the death of its worker."""
        line = self.replies.readline()
        job, self.job = self.job, None
        if line:
            assert job is not None
            assert json.loads(line)["done"]
            self.done += 1
            return [Ended(job, "")]
        self.gone = True
        code = self._process.wait()
        return (
            []
            if job is None
            else [Ended(job, f"the worker {_describe_exit(code)}; see {self._log}")]
        )

    def retire(self) -> None:
        """End the idle process with its input; another one takes the next job."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self.end(GRACE_S)
        self.gone = True

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
                with suppress(BrokenPipeError):  # unsent data has no reader
                    pipe.close()


def _describe_exit(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed (out of memory?)"
    if code < 0:
        return f"ended by signal {-code}"
    return f"ended with status {code}"
