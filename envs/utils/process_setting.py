"""A setting of the whole process that code wants within a context, in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class ProcessSetting(Generic[T]):
    """Sets what the whole process shares until the last thread that wants it has left.

    Each thread that put back what it found would leave what another one had set.

    Args:
        read: Returns the setting as it is.
        write: Sets it.
        wanted: Returns what it is within; asked by the first thread that comes.
    """

    def __init__(
        self, read: Callable[[], T], write: Callable[[T], object], wanted: Callable[[], T]
    ) -> None:
        self._read, self._write, self._wanted = read, write, wanted
        self._lock = threading.Lock()
        self._within = 0
        self._before: list[T] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the setting within; behind the last such context it is as it was before."""
        with self._lock:
            if self._within == 0:
                wanted, self._before = self._wanted(), [self._read()]
                self._write(wanted)
            self._within += 1
        try:
            yield
        finally:
            with self._lock:
                self._within -= 1
                if self._within == 0:
                    self._write(self._before.pop())
