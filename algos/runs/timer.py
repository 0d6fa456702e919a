"""Seconds per stage of a step."""

from __future__ import annotations

import time


class Clock:
    """Measures consecutive stages.

    Attributes:
        laps: Seconds of each stage, above 0.
    """

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._start = self._last = time.monotonic()

    def lap(self, name: str) -> float:
        """End a stretch of the stage ``name``; returns the seconds of all its stretches."""
        now = time.monotonic()
        self.laps[name] = self.laps.get(name, 0.0) + max(now - self._last, 1e-9)
        self._last = now
        return self.laps[name]

    def total(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._start
