"""Sums as a step of a solution writes them, worked out exactly: ``(7 - 2) * 3``."""

from __future__ import annotations

import re
from fractions import Fraction

MAX_CHARS = 120
"""Of a sum; a longer one is not read."""
_TOKEN = re.compile(r"\s*(\d[\d,]*(?:\.\d+)?|\.\d+|[-+*/()])")
_RESULT = re.compile(r"\s*\$?\s*(-?\d[\d,]*(?:\.\d+)?(?:/\d+)?)")
_OF_SUMS = frozenset("-+*/×÷·−().,$% 0123456789")
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "$": " ", "%": " "})


class _Reader:
    """Recursive descent over the tokens of one sum."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def all(self) -> Fraction | None:
        value = self._sum()
        return value if self._at == len(self._tokens) else None

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _sum(self) -> Fraction | None:
        value = self._product()
        while value is not None and self._peek() in ("+", "-"):
            sign = self._take()
            other = self._product()
            if other is None:
                return None
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Fraction | None:
        value = self._part()
        while value is not None and self._peek() in ("*", "/"):
            sign = self._take()
            other = self._part()
            if other is None or (sign == "/" and other == 0):
                return None
            value = value * other if sign == "*" else value / other
        return value

    def _part(self) -> Fraction | None:
        token = self._peek()
        if token == "-":
            self._take()
            inner = self._part()
            return None if inner is None else -inner
        if token == "(":
            self._take()
            inner = self._sum()
            return self._closed(inner)
        if token and (token[0].isdigit() or token[0] == "."):
            return Fraction(self._take().replace(",", ""))
        return None

    def _closed(self, inner: Fraction | None) -> Fraction | None:
        if inner is None or self._peek() != ")":
            return None
        self._take()
        return inner


def evaluate(text: str) -> Fraction | None:
    """What a sum comes to; None when it cannot be read (or divides by 0)."""
    text = text.translate(_SIGNS).strip()
    if not text or len(text) > MAX_CHARS:
        return None
    tokens: list[str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        tokens.append(found[1])
        at = found.end()
    return _Reader(tokens).all()


def find_equations(text: str) -> list[tuple[bool, Fraction]]:
    """(whether it holds, what was written as its result) of every ``sum = number`` in ``text``."""
    found = []
    done = 0
    while (equals := text.find("=", done)) >= 0:
        left = evaluate(_find_sum_before(text, equals, done))
        done = equals + 1
        result = _RESULT.match(text, done)
        if left is None or result is None:
            continue
        stated = evaluate(result[1])
        if stated is not None:
            done = result.end()
            found.append((stated == left, stated))
    return found


def _find_sum_before(text: str, stop: int, least: int) -> str:
    """The sum that ends at ``stop``: what follows the last word or end of a sentence."""
    start = stop
    while start > max(least, stop - MAX_CHARS) and text[start - 1] in _OF_SUMS:
        start -= 1
    return text[start:stop].rpartition(". ")[2].lstrip(" .,")
