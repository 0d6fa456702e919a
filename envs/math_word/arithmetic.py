"""Sums as a step of a solution writes them, worked out exactly: ``(7 - 2) * 3``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

MAX_CHARS = 120
"""Of a sum; a longer one is not read."""
NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_TOKEN = re.compile(rf"\s*(\d+\s+\d+/\d+(?![\d/.,])|{NUMBER}|[-+*/()%])", re.ASCII)
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "$": " "})
HUNDREDTH = Fraction(1, 100)


class Sum(NamedTuple):
    """A sum that was read.

    Attributes:
        value: What it comes to.
        operators: How many operations it has; of a number alone none.
        products: How many of them multiply or divide, or take a percentage of what is before it.
    """

    value: Fraction
    operators: int
    products: int = 0


class _Reader:
    """Recursive descent over the tokens of one sum."""

    def __init__(self, tokens: list[str], percent: Fraction, of_left: bool) -> None:
        self._tokens = tokens
        self._at = 0
        self._percent = percent
        self._of_left = of_left
        self.operators = self.products = 0

    def all(self) -> Fraction | None:
        value = self._sum()
        return value if self._at == len(self._tokens) else None

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _sum(self) -> Fraction | None:
        first = self._at
        value = self._product()
        plain = "%" not in self._tokens[first : self._at]  # an amount, which has percentages
        while value is not None and self._peek() in ("+", "-"):
            sign = self._take()
            first = self._at
            other = self._product()
            if other is None:
                return None
            if plain and self._of_left and self._is_percentage(first):
                other *= value
                self.products += 1
            else:
                plain = plain and "%" not in self._tokens[first : self._at]
            self.operators += 1
            value = value + other if sign == "+" else value - other
        return value

    def _is_percentage(self, first: int) -> bool:
        """Whether what was read from the token ``first`` on is a number with a percent sign."""
        return self._at == first + 2 and self._tokens[first + 1] == "%"

    def _product(self) -> Fraction | None:
        value = self._part()
        while value is not None and self._peek() in ("*", "/"):
            sign = self._take()
            other = self._part()
            if other is None or (sign == "/" and other == 0):
                return None
            self.operators += 1
            self.products += 1
            value = value * other if sign == "*" else value / other
        return value

    def _part(self) -> Fraction | None:
        if self._peek() == "-":
            self._take()
            inner = self._part()
            return None if inner is None else -inner
        value = self._operand()
        while value is not None and self._peek() == "%":
            self._take()
            value *= self._percent
        return value

    def _operand(self) -> Fraction | None:
        token = self._peek()
        if token == "(":
            self._take()
            inner = self._sum()
            return self._closed(inner)
        if token and (token[0].isdigit() or token[0] == "."):
            return _read_number(self._take())
        return None

    def _closed(self, inner: Fraction | None) -> Fraction | None:
        if inner is None or self._peek() != ")":
            return None
        self._take()
        return inner


def _read_number(token: str) -> Fraction | None:
    """A number, or one with a fraction behind it: 3 1/2."""
    if token.isdecimal():
        return Fraction(int(token))
    whole, *parts = token.replace(",", "").split()
    if not parts:
        return Fraction(whole)
    over, under = parts[0].split("/")
    return Fraction(whole) + Fraction(int(over), int(under)) if int(under) else None


def evaluate(text: str) -> Fraction | None:
    """What a sum comes to; None when it cannot be read (or divides by 0)."""
    read = read_sum(text)
    return None if read is None else read.value


def read_sum(text: str, percent: Fraction = HUNDREDTH, of_left: bool = False) -> Sum | None:
    """The sum that all of ``text`` is, None when it is none.

    Args:
        text: Numbers, the four signs (× and ÷ too), parentheses, percent and dollar signs.
        percent: What a percent sign multiplies by; with 1 it is only a unit.
        of_left: A percentage that is added to or taken from an amount is one of this amount, as
            on a pocket calculator: ``200 - 20%`` is 160.
    """
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
    reader = _Reader(tokens, percent, of_left)
    value = reader.all()
    return None if value is None else Sum(value, reader.operators, reader.products)
