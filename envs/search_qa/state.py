"""The state of an episode of SearchQA."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SearchState:
    """What was searched, found and shown, and the answer."""

    searches: int = 0
    found: tuple[str, ...] = ()  # ids of the passages shown whole
    shown: tuple[str, ...] = ()  # texts of the information blocks
    answer: str | None = None
