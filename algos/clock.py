"""How long the stages of a step take."""

from __future__ import annotations

import time


class Clock:
    """Seconds per stage.

    Attributes:
        laps: Seconds by name of the stage.
    """

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._start = self._last = time.monotonic()

    def lap(self, name: str) -> None:
        """A stage ends here, the next one begins."""
        now = time.monotonic()
        self.laps[name] = max(now - self._last, 1e-9)
        self._last = now

    def total(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._start
