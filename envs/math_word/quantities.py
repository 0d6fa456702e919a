"""Numbers as people write them, read and compared exactly; no floating point anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from .units import read_multiples, read_unit

MAX_CHARS = 200
"""A longer text is no number that anybody would write."""
_DIGITS = r"\d{1,3}(?:,\d{3})+|\d+"
_PLAIN = rf"(?:{_DIGITS})(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"""
    (?P<sign>[-+]?)\s*
    (?:
        (?P<whole>{_DIGITS})\s+(?P<part>\d+)\s*/\s*(?P<of>\d+)   # 3 1/2
      | (?P<over>{_PLAIN})\s*/\s*(?P<under>{_PLAIN})             # 7/2
      | (?P<plain>{_PLAIN})(?:e(?P<power>[-+]?\d{{1,2}}))?       # 3.5
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PERCENT = re.compile(r"\s*(?:%|percent\b|per\ cent\b)", re.IGNORECASE | re.ASCII)
_BEFORE = re.compile(r"(?:[A-Za-z]\s*=\s*)?(?P<sign>[-+]?)\s*(?P<money>[$€£]?)\s*")
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_WRAPPED = re.compile(r"\\(?:boxed|text|mathrm)\s*\{([^{}]*)\}")
_LATEX = str.maketrans({"−": "-", "–": "-", "\u00a0": " "})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that was read.

    Attributes:
        value: What it is worth; of "25%" it is 25.
        percent: Whether a percent sign followed.
        whole: Whether all of the text was read: beside the number it held known units only.
    """

    value: Fraction
    percent: bool = False
    whole: bool = field(default=True, compare=False)

    def equals(self, other: Quantity) -> bool:
        """Equal in value; where one alone has the percent sign, 50% is both 50 and 1/2."""
        if self.value == other.value:
            return True
        if self.percent == other.percent:
            return False
        signed, bare = (self, other) if self.percent else (other, self)
        return signed.value == bare.value * 100


def read_quantity(text: str) -> Quantity | None:
    r"""The one number that ``text`` says, None when it says none or anything beside it.

    Reads integers, thousands separators (1,234), decimals, fractions (7/2), mixed numbers
    (3 1/2), powers of ten (2e3), number words behind (5 thousand), percentages, a currency sign
    before and a unit behind (5cm, 40 km/h, 12 apples; ``12i`` and ``2x-y`` are no quantities), an
    ``x =`` in front, a full stop at the end; of LaTeX the dollar signs, ``\boxed``, ``\text``,
    ``\%``, ``\$`` and fractions of integers.
    """
    if len(text) > MAX_CHARS:
        return None
    text = _drop_latex(text.translate(_LATEX)).strip().rstrip(".").strip()
    before = _BEFORE.match(text)
    start = before.end() if before else 0
    found = _NUMBER.match(text, start)
    if found is None or (found["sign"] and before is not None and before["sign"]):
        return None
    factor, end = read_multiples(text, found.end())
    percent = _PERCENT.match(text, end)
    rest = text[percent.end() if percent else end :]
    money = bool(before and before["money"])
    whole = read_unit(f" {rest}" if percent else rest, money=money)
    value = _make_value(found)
    if whole is None or value is None:
        return None
    negative = "-" in (found["sign"], before["sign"] if before else "")
    return Quantity(-value * factor if negative else value * factor, percent is not None, whole)


def write_number(value: Fraction) -> str:
    """The number as it is written here: an integer, a decimal if it ends soon, else a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    thousand = value * 1000
    if thousand.denominator == 1:
        sign = "-" if value < 0 else ""
        whole, part = divmod(abs(thousand.numerator), 1000)
        return f"{sign}{whole}.{part:03d}".rstrip("0")
    return f"{value.numerator}/{value.denominator}"


def _make_value(found: re.Match[str]) -> Fraction | None:
    if found["whole"] is not None:
        return _divide(found["part"], found["of"], plus=found["whole"])
    if found["over"] is not None:
        return _divide(found["over"], found["under"])
    return _read_plain(found["plain"]) * Fraction(10) ** int(found["power"] or 0)


def _divide(over: str, under: str, plus: str = "0") -> Fraction | None:
    divisor = _read_plain(under)
    return None if divisor == 0 else _read_plain(plus) + _read_plain(over) / divisor


def _read_plain(digits: str) -> Fraction:
    return Fraction(digits.replace(",", ""))


def _drop_latex(text: str) -> str:
    text = text.strip()
    for left, right in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if text.startswith(left) and text.endswith(right) and len(text) > len(left + right):
            text = text[len(left) : -len(right)]
            break
    text = text.replace("\\%", "%").replace("\\$", "$").replace("\\!", "").replace("{,}", ",")
    for space in ("\\,", "\\;", "\\ ", "~"):
        text = text.replace(space, " ")
    text = _FRACTION.sub(r"\1/\2", text)
    while (inner := _WRAPPED.sub(r" \1", text)) != text:
        text = inner
    return text
