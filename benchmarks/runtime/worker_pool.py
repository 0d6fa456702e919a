"""A pool of worker processes that an interrupt ends at once, without a word of theirs."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


class WorkerPool(ProcessPoolExecutor):
    """Processes that Ctrl-C does not reach: it reaches this one alone, which ends them.

    Where the context is left by an exception they are killed: nobody reads what they compute. Jobs
    must not be cancelled as well; a broken pool of Python 3.11 fails on a future that is.

    Args:
        workers: Number of processes; they are spawned as jobs are submitted.
        begin: Called first in each of them.
        given: Its arguments.
    """

    def __init__(self, workers: int, begin: Callable[..., None], *given: Any) -> None:
        super().__init__(workers, multiprocessing.get_context("spawn"), begin, given)

    def submit(self, *call: Any, **named: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`."""
        with _blocked_interrupts():  # processes inherit it, so that their imports have it too
            return super().submit(*call, **named)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        """Wait for the jobs, or after an exception for the end of the killed processes."""
        if kind is not None:
            for process in list((self._processes or {}).values()):
                process.kill()
        return super().__exit__(kind, error, trace)


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Hold SIGINT back from this thread, and for good from the processes that it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
