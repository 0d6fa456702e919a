"""Rows with other words in the same places.

A small model that is shown few topics remembers which papers are right instead of comparing them
with the request. Where words change from row to row, only comparing helps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .rows import SelectorRow

_WORD = re.compile(r"[^\W\d_]+")


class Renamer:
    """Exchanges the words of a row for others of the same rows, each everywhere alike.

    Words that stand in every prompt are those of the question, and stay.

    Args:
        rows: Where the words are from.
        share: Probability that a row is changed.
    """

    def __init__(self, rows: Sequence[SelectorRow], share: float) -> None:
        words = [set(_WORD.findall(row.prompt)) for row in rows]
        self._fixed = set.intersection(*words)
        self._words = sorted(set.union(*words) - self._fixed)
        self._share = share

    def __call__(self, row: SelectorRow, rng: np.random.Generator) -> SelectorRow:
        """The row, or another with as many different words; the verdict stays."""
        if rng.random() >= self._share:
            return row
        here = list(dict.fromkeys(_WORD.findall(row.prompt)))
        here = [word for word in here if word not in self._fixed]
        drawn = rng.choice(len(self._words), size=len(here), replace=False).tolist()
        new = dict(zip(here, (self._words[i] for i in drawn), strict=True))

        def exchanged(text: str) -> str:
            return _WORD.sub(lambda found: new.get(found[0], found[0]), text)

        return replace(row, prompt=exchanged(row.prompt), reason=exchanged(row.reason))
