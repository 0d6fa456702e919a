"""The state of an episode of WebQA."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WebState:
    """What was searched, opened, found and shown, and the answer."""

    searches: int = 0
    opens: int = 0
    failed_opens: int = 0
    results: tuple[str, ...] = ()  # addresses of the last search, by number
    opened: tuple[tuple[str, int], ...] = ()  # address and part of what was shown
    found: tuple[str, ...] = ()  # passages of a generated world whose fact was shown
    shown: tuple[str, ...] = ()  # texts of the information blocks
    answer: str | None = None
