"""Interrupts in several processes: all stop at the same place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..interrupts import noted_interrupts, terminate_as_interrupt
from .ranks import Ranks


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
