"""One limited process per account steps its sealed episodes, so that it can slow only itself."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, cast

from .settings import ServerSettings
from .step_child import serve_steps
from .web import Fault

_BUSY_S = 1.0


class WorkerDied(Exception):
    """A process ended, or was ended, before it answered; the message says why."""


@dataclass
class _Worker:
    """An account's process."""

    process: BaseProcess
    connection: Connection[Any, Any]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for the answer.

        Raises:
            WorkerDied: No answer came.
        """
        try:
            self.connection.send_bytes(json.dumps(request).encode())
            if not self.connection.poll(seconds):
                raise WorkerDied(f"it took more than {seconds:g} seconds")
            return json.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as error:
            self.end()
            raise WorkerDied("the process that stepped it died") from error
        except BaseException:  # an answer that nobody reads would be taken for the next one
            self.end()
            raise

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class StepWorkers:
    """The processes of the accounts that play.

    An account whose process is gone (it took too long, or others needed the place) gets a new one
    with its next step; its episodes are then replayed from the stored actions.

    Args:
        settings: Settings of the server: ``step_workers``, ``step_s``, ``account_queue``.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._workers: OrderedDict[str, _Worker] = OrderedDict()
        self._waiting: dict[str, int] = {}
        self._lock = threading.Lock()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([serve_steps.__module__])

    @contextlib.contextmanager
    def of(self, account: str) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
        """Reserve an account's process, for a function that asks it.

        Raises:
            Fault: Too many requests of the account wait for it, or every process is at work.
            WorkerDied: From the function: the process did not answer; it is replaced.
        """
        with self._lock:
            if self._waiting.get(account, 0) >= self._settings.account_queue:
                raise Fault(429, "busy", "earlier steps of this account are at work.", _BUSY_S)
            self._waiting[account] = self._waiting.get(account, 0) + 1
        try:
            with self._reserve(account) as worker:
                try:
                    yield lambda request: worker.ask(request, self._settings.step_s)
                except WorkerDied:
                    with self._lock:
                        self._workers.pop(account, None)
                    raise
        finally:
            with self._lock:
                self._waiting[account] -= 1
                if not self._waiting[account]:
                    del self._waiting[account]

    @contextlib.contextmanager
    def _reserve(self, account: str) -> Iterator[_Worker]:
        deadline = time.monotonic() + self._settings.step_s
        while True:
            with self._lock:
                worker = self._workers.get(account) or self._start(account)
                self._workers.move_to_end(account)
            if not worker.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise Fault(429, "busy", "earlier steps of this account are at work.", _BUSY_S)
            try:
                if self._workers.get(account) is worker:
                    yield worker
                    return
            finally:
                worker.lock.release()

    def _start(self, account: str) -> _Worker:
        """Start an account's process; the longest unused one of another account makes room."""
        if len(self._workers) >= self._settings.step_workers:
            idle = [name for name, one in self._workers.items() if not one.lock.locked()]
            if not idle:
                raise Fault(429, "busy", "all processes of the server are at work.", _BUSY_S)
            self._workers.pop(idle[0]).end()
        ours, theirs = self._context.Pipe()
        settings = self._settings
        limits = (str(settings.seasons), settings.live_envs, settings.replay.memory_mib)
        process = self._context.Process(target=serve_steps, args=(theirs, *limits), daemon=True)
        process.start()
        theirs.close()
        worker = self._workers[account] = _Worker(process, cast("Connection[Any, Any]", ours))
        return worker

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            while self._workers:
                self._workers.popitem()[1].end()
