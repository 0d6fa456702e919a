"""Ctrl-C and SIGTERM at moments when nothing is half done, in all processes at the same step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .distributed.ranks import Ranks


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Within, SIGTERM does what Ctrl-C would do at that moment.

    It goes through the handler of SIGINT, which asyncio replaces while it runs: an exception
    thrown into the middle of a task would come up again when the event loop is closed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Noted:
    """A signal handler that only remembers, for a program that stops by agreement.

    Attributes:
        came: True when a signal came.
    """

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember it; a second one is not held."""
        if self.came:
            signal.default_int_handler(number, frame)
        self.came = True


@contextmanager
def noted_interrupts() -> Iterator[Noted]:
    """Within, Ctrl-C and SIGTERM are noted, and raise nothing."""
    noted = Noted()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = {s: signal.signal(s, noted) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Within, interrupts wait; one that came is raised at the end.

    A second one is not held: whoever insists may stop a long step, at the cost of that step.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or isinstance(signal.getsignal(signal.SIGINT), Noted):
        yield
        return
    came: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if came:
            signal.default_int_handler(number, frame)
        came.append(number)

    before = {s: signal.signal(s, hold) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


@contextmanager
def agreed_stops(ranks: Ranks) -> Iterator[Callable[[], None]]:
    """Within, Ctrl-C and SIGTERM stop the run, and of several processes all between two steps.

    Yields:
        A call to be made between steps: raises KeyboardInterrupt in all processes once a signal
        came to one. A single process is interrupted at once, wherever it is.
    """
    if ranks.alone:
        with terminate_as_interrupt():
            yield lambda: None
        return
    with noted_interrupts() as noted:

        def check() -> None:
            if any(ranks.learner.everyone(noted.came)):
                raise KeyboardInterrupt

        yield check
