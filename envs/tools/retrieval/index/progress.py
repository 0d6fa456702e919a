"""Progress reports of long builds."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then with the stage and its progress."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report ``done`` of ``total`` (bytes, blocks or passages) of ``stage``."""
        ...


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress."""
