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
    """Install ``handler`` for these signals within the context; main thread only.

    Where Python runs inside another program (R, Julia), that program's handlers stay: from here
    they could not be put back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in signals if signal.getsignal(number) is not None]
    before = {number: signal.signal(number, handler) for number in ours}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


class Termination:
    """Whether SIGTERM came to this process, whose command then exits with 143, not 130.

    Attributes:
        came: True once it came, within the outermost :func:`terminate_as_interrupt`.
    """

    def __init__(self) -> None:
        self.came = False

    def pass_on(self, number: int, frame: FrameType | None) -> None:
        """Record the signal and raise SIGINT, or what it raises where SIGINT is another program's.

        A shell makes processes in its background ignore Ctrl-C; SIGTERM ends them all the same.
        """
        self.came = True
        handler = signal.getsignal(signal.SIGINT)
        if handler is None:
            signal.default_int_handler(number, frame)
        if not callable(handler):
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)


_TERMINATION = Termination()


@contextmanager
def terminate_as_interrupt() -> Iterator[Termination]:
    """Treat SIGTERM as Ctrl-C within the context.

    It goes through the handler of SIGINT, which asyncio replaces while it runs: an exception
    thrown into the middle of a task would come up again when the event loop is closed.

    Yields:
        Whether SIGTERM came, so that a command can say so in its exit status.
    """
    if signal.getsignal(signal.SIGTERM) != _TERMINATION.pass_on:
        _TERMINATION.came = False  # the outermost context
    with _handled(_TERMINATION.pass_on, signal.SIGTERM):
        yield _TERMINATION


class SignalFlag:
    """A signal handler that records the signal.

    Attributes:
        raised: True when a signal came.
    """

    def __init__(self) -> None:
        self.raised = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Record the signal; a second one raises immediately, to stop a long step."""
        _TERMINATION.came |= number == signal.SIGTERM
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
def uninterrupted() -> Iterator[None]:
    """Let no signal into the context, also no second one: each is raised again behind it.

    For moments alone, in which other threads wait for what this one holds.
    """
    came: list[int] = []
    try:
        with _handled(lambda number, _: came.append(number), signal.SIGINT, signal.SIGTERM):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


class AgreedInterrupt(KeyboardInterrupt):
    """An interrupt that all processes of a run raise at the same step, so that all may save."""


@contextmanager
def agreed_stops(ranks: Ranks) -> Iterator[Callable[[], None]]:
    """Stop all processes of a run between two steps on Ctrl-C or SIGTERM.

    Yields:
        A call to be made between steps: raises AgreedInterrupt in all processes once a signal
        came to one. A second signal to one of them raises KeyboardInterrupt there alone. A single
        process is interrupted at once, wherever it is; the call raises it again where a library
        swallowed what came by SIGTERM, as callbacks from C do.
    """
    if ranks.alone:
        with terminate_as_interrupt() as termination:

            def check_again() -> None:
                if termination.came:
                    raise KeyboardInterrupt

            yield check_again
        return
    with noted_interrupts() as flag:

        def check() -> None:
            if any(ranks.learner.everyone(flag.raised)):
                raise AgreedInterrupt

        yield check
