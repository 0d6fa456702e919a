"""How alike two short texts are, from 0 to 100, whatever the order of their words."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+")


def token_set_ratio(one: str, other: str) -> float:
    """The token set ratio of two texts.

    The common words, and these with the words of each text alone, are three texts of sorted words;
    the best similarity of two of them counts. A text whose words all stand in the other is worth
    100. A text without words is worth 0.
    """
    left, right = (set(_WORD.findall(text.lower())) for text in (one, other))
    if not left or not right:
        return 0.0
    common = left & right
    if common and common in (left, right):
        return 100.0
    shared = " ".join(sorted(common))
    whole = [" ".join([*sorted(common), *sorted(only - common)]) for only in (left, right)]
    best = similarity(*whole)
    if common:
        best = max(best, *(similarity(shared, text) for text in whole))
    return best


def similarity(one: str, other: str) -> float:
    """Twice the longest common subsequence over the sum of the lengths, from 0 to 100."""
    if not one and not other:
        return 100.0
    return 200.0 * _longest_common(one, other) / (len(one) + len(other))


def _longest_common(one: str, other: str) -> int:
    row = [0] * (len(other) + 1)
    for a in one:
        before = 0
        for j, b in enumerate(other, start=1):
            here = row[j]
            row[j] = before + 1 if a == b else max(here, row[j - 1])
            before = here
    return row[-1]
