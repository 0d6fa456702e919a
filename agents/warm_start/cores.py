"""Small models on several cores: whole passes side by side, where a thread of torch's has one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, Self, TypeVar

import torch

from ...envs.utils.http import start_in_thread
from ...envs.utils.system import count_cores

A = TypeVar("A")
B = TypeVar("B")


def passes_at_once(device: torch.device) -> int:
    """Return how many passes of a model may run at a time, each in a thread of its own.

    As many as there are cores where torch computes with one thread, as the commands let it for
    small models; one where it uses several, where ``OMP_NUM_THREADS`` asks for one, and elsewhere
    than on a CPU.
    """
    if device.type != "cpu" or torch.get_num_threads() > 1 or "OMP_NUM_THREADS" in os.environ:
        return 1
    return count_cores()


class SideBySide:
    """Calls a function for several items at a time; what comes of them comes in their order.

    Args:
        at_once: Calls at a time; 1 begins no thread.
    """

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, "passes") if at_once > 1 else None

    def map(self, call: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Yield what ``call`` returns for each item, the first item's first."""
        return map(call, items) if self._threads is None else self._threads.map(call, items)


class Ahead(Generic[A]):
    """Makes the next item while the last one is used; a context manager.

    At the end of the ``with`` block nothing is being made any more: what ``make`` works with is
    free again, also where an item that was begun is never taken. Ctrl-C waits for none.

    Args:
        make: Makes an item; never called twice at a time.
        ahead: Whether it is made beforehand, in a thread of its own; else when it is asked for.
    """

    def __init__(self, make: Callable[[], A], ahead: bool) -> None:
        self._make, self._ahead = make, ahead
        self._next: Future[A] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._next is not None and (kind is None or issubclass(kind, Exception)):
            wait([self._next])

    def take(self, last: bool = False) -> A:
        """Return the next item, and begin with the one behind it unless this is the last.

        Raises:
            Exception: What ``make`` raised for this item.
        """
        if not self._ahead:
            return self._make()
        item = (self._next or start_in_thread(self._make)).result()
        self._next = None if last else start_in_thread(self._make)
        return item
