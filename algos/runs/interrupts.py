"""Deferred Ctrl-C and SIGTERM, in all processes at the same step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .process_group import Ranks


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object], *signals: int) -> Iterator[None]:
    """Install ``handler`` for these signals within the context; main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C within the context.

    It goes through the handler of SIGINT, which asyncio replaces while it runs: an exception
    thrown into the middle of a task would come up again when the event loop is closed.
    """
    with _handled(lambda *_: signal.raise_signal(signal.SIGINT), signal.SIGTERM):
        yield


class SignalFlag:
    """A signal handler that records the signal.

    Attributes:
        raised: True when a signal came.
    """

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record the signal; a second one raises immediately, to stop a long step."""
        if self.raised:
            signal.default_int_handler(number, frame)
        self.raised = True


@contextmanager
def noted_interrupts() -> Iterator[SignalFlag]:
    """Record Ctrl-C and SIGTERM within the context instead of raising."""
    flag = SignalFlag()
    with _handled(flag, signal.SIGINT, signal.SIGTERM):
        yield flag


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Defer interrupts to the end of the context.

    A second one is not held: whoever insists may stop a long step, at the cost of that step.
    """
    if isinstance(signal.getsignal(signal.SIGINT), SignalFlag):
        yield
        return
    with noted_interrupts() as flag:
        yield
    if flag.raised:
        raise KeyboardInterrupt


@contextmanager
def agreed_stops(ranks: Ranks) -> Iterator[Callable[[], None]]:
    """Stop all processes of a run between two steps on Ctrl-C or SIGTERM.

    Yields:
        A call to be made between steps: raises KeyboardInterrupt in all processes once a signal
        came to one. A single process is interrupted at once, wherever it is.
    """
    if ranks.alone:
        with terminate_as_interrupt():
            yield lambda: None
        return
    with noted_interrupts() as flag:

        def check() -> None:
            if any(ranks.learner.everyone(flag.raised)):
                raise KeyboardInterrupt

        yield check
