"""What a DRRN reads: texts as hashed words, a state as three texts, and what can be done there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

import numpy as np

MAX_WORDS = 400
"""Of a longer text the start and the end are read, half of it each."""
_WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


class StateActions(NamedTuple):
    """A state and its legal actions, as numbers in a :class:`TextTable`.

    Attributes:
        texts: First observation of the episode, latest one, latest actions.
        actions: The legal actions.
    """

    texts: tuple[int, int, int]
    actions: np.ndarray


class TextTable:
    """Numbers texts, and knows the hashed words of each.

    Args:
        buckets: Numbers of words; 0 stands for nothing.
        pairs: Pairs of neighbours count as words too.
    """

    def __init__(self, buckets: int, pairs: bool) -> None:
        self._buckets, self._pairs = buckets, pairs
        self._numbers: dict[str, int] = {}
        self._words: list[np.ndarray] = []

    def __len__(self) -> int:
        return len(self._words)

    def number(self, text: str) -> int:
        """Return the number of a text."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._words)
            self._words.append(self._read(text))
        return found

    def words(self, number: int) -> np.ndarray:
        """Return the words of a text."""
        return self._words[number]

    def situation(
        self, first: str, latest: str, past: Sequence[str], legal: Sequence[str]
    ) -> StateActions:
        """Return a state as it stands before an action."""
        texts = (self.number(first), self.number(latest), self.number(" . ".join(past)))
        return StateActions(
            texts, np.fromiter((self.number(a) for a in legal), np.int64, len(legal))
        )

    def _read(self, text: str) -> np.ndarray:
        words = _WORD.findall(text.lower())
        if len(words) > MAX_WORDS:
            words = words[: MAX_WORDS // 2] + words[-MAX_WORDS // 2 :]
        if self._pairs:
            words += [f"{one} {two}" for one, two in pairwise(words)]
        ids = [1 + crc32(word.encode()) % (self._buckets - 1) for word in words]
        return np.asarray(ids or [0], np.int64)
