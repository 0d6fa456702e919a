"""Rate limits: a bucket per caller that refills with time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable


class Rate:
    """Allows so many things per minute and caller; unused ones are saved up for a minute.

    Args:
        per_minute: How many.
        clock: Tells seconds.
        callers: Most callers that are remembered; the longest silent ones are forgotten.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        callers: int = 100_000,
    ) -> None:
        self._most = float(per_minute)
        self._clock = clock
        self._callers = callers
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, caller: str) -> float:
        """Count one thing; 0 when it is allowed, else the seconds after which it will be."""
        with self._lock:
            now = self._clock()
            left, then = self._left.pop(caller, (self._most, now))
            left = min(self._most, left + (now - then) * self._most / 60)
            allowed = left >= 1
            self._left[caller] = (left - 1 if allowed else left, now)
            while len(self._left) > self._callers:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1 - left) * 60 / self._most
