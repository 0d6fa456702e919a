"""An event loop for functions that wait for what they run, also inside a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")
_NOTICED_S = 0.5
"""Seconds until an interrupt is noticed that wakes no wait."""


class EventLoop:
    """Runs coroutines to their ends, one after the other.

    Where the calling thread runs an event loop already, as a notebook's does, which cannot run a
    second one, this one has a thread of its own.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._worker: ThreadPoolExecutor | None = None
        if _in_event_loop():
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="event-loop")
            self._loop = self._worker.submit(self._runner.get_loop).result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end; an interrupt of the calling thread cancels it first."""
        if self._worker is None:
            return self._runner.run(work)
        begun: Future[asyncio.Task[Any] | None] = Future()

        async def noted() -> T:
            begun.set_result(asyncio.current_task())
            return await work

        done = self._worker.submit(self._runner.run, noted())
        try:
            while not done.done():  # a signal just before a wait is handled only behind it
                wait([done], timeout=_NOTICED_S)
            return done.result()
        finally:
            if not done.done() and (task := begun.result()) is not None:
                self._loop.call_soon_threadsafe(task.cancel)
                wait([done])

    def close(self) -> None:
        """Close it; a second time does nothing."""
        if self._worker is None:
            self._runner.close()
        elif not self._loop.is_closed():
            self._worker.submit(self._runner.close).result()
            self._worker.shutdown()


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as :func:`asyncio.run` does, also inside a notebook."""
    loop = EventLoop()
    try:
        return loop.run(work)
    finally:
        loop.close()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
