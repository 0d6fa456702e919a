"""A memory of computed values in this process that never grows beyond a bound."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from ..core.errors import BadValueError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by key, of bounded total weight; what was not asked for longest goes first.

    It is for values that are a function of their key alone, so that a remembered value is what
    computing it again would give: whoever asks is answered alike, only sooner. Safe to share
    between threads; a pickle or a copy of it is empty.

    Args:
        capacity: Most that all values may weigh together, in the caller's own unit.

    Raises:
        BadValueError: ``capacity`` is below 1.
    """

    __slots__ = ("_kept", "_lock", "_weight", "capacity")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise BadValueError(f"BoundedCache: capacity is {capacity}; expected at least 1.")
        self.capacity = capacity
        self._lock = threading.Lock()
        self._kept: dict[K, tuple[V, int]] = {}
        self._weight = 0

    def __reduce__(self) -> Any:
        return BoundedCache, (self.capacity,)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def weight(self) -> int:
        """What all values weigh together, at most :attr:`capacity`."""
        return self._weight

    def get(self, key: K) -> V | None:
        """Return the value of ``key``; None where it is not remembered."""
        if key not in self._kept:
            return None
        with self._lock:
            kept = self._kept.pop(key, None)  # and to the end: it is the newest again
            if kept is None:
                return None
            self._kept[key] = kept
            return kept[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Remember the value of ``key``, unless it alone weighs more than the capacity."""
        if weight > self.capacity:
            return
        with self._lock:
            if (old := self._kept.pop(key, None)) is not None:
                self._weight -= old[1]
            self._kept[key] = value, weight
            self._weight += weight
            while self._weight > self.capacity:
                self._weight -= self._kept.pop(next(iter(self._kept)))[1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._weight = 0
