"""The statements ``sum = number`` in written steps, each with whether it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from .arithmetic import HUNDREDTH, MAX_CHARS, NUMBER, read_sum

_OF_SUMS = frozenset("-+*/().,$% 0123456789")
_SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "\u00a0": " "})
_PERCENT = re.compile(r"(?<=[\d)])\s*per ?cent\b", re.IGNORECASE)
_TIMES = re.compile(r"(?<=[\d)%])\s*(?:\bof\b|[xX])\s*(?=[\d($]|\.\d)")
_NUMBER = re.compile(rf"\s*-?\s*\$?\s*(?:{NUMBER})(?:\s*%)?(?:/\d+)?", re.ASCII)
_SENTENCE_END = re.compile(r"[.,](?!\d)")
_STOPS = re.compile(r"\A(?:[ ,]|\.(?!\d))+")
_SIGN = re.compile(r"[-+*/]")
_OPERATOR = re.compile(r"\d\s*[-+*/]")
_BULLET = re.compile(r"[-*] +")
_TIMES_HUNDRED = re.compile(r"(\* *100) *% *$")
_DECIMALS = re.compile(r"\.(\d+)")
_ONE_NUMBER = re.compile(NUMBER, re.ASCII)
_HALF = Fraction(1, 2)
_LOOK = 40
"""Characters beside a sum that are looked at."""
_WORD = re.compile(r"([A-Za-z]+)(?:\s+(?:the|all|these|those|this|that))?\Z")
_WORDS_BEFORE = frozenset(
    {"of", "half", "third", "quarter", "double", "twice", "thrice", "triple", "times", "plus"}
    | {"minus", "less", "over", "by", "from", "square", "cube", "root", "cdot", "div"}
)
"""Words that take part in the sum behind them."""
_SIGN_BEFORE = re.compile(r"[\^√∛_±]\Z|\d\s+:\Z")
_AFTER = re.compile(
    r"""\s*[\^²³√|{\[] | \( | ,\d | \s*[-+*/](?![-\s]*[A-Za-z]{2})
      | [A-Za-z]+\s*[-+*/^](?!\s*[A-Za-z]{2})
      | \s+(?: of | dozens? | hundred | thousand | million | billion | lakh | half | halves
             | thirds? | quarters? | times | plus | minus | squared | cubed | over | divided ) \b
      | \s*and\s+(?: an? | one | \d+/\d )""",
    re.VERBOSE | re.IGNORECASE,
)
"""What takes part in the number or sum before it."""
_REMAINDER = re.compile(
    r"[\s,(]*(?:(?:with|and|leaving|leaves)\s+)?(?:an?\s+)?(?:remainder|rem\b|rest\b|r\s?\d)",
    re.IGNORECASE,
)


class _Reading(NamedTuple):
    """One way to read a side; a reading that is not firm tells true statements, no false ones."""

    value: Fraction
    operators: int
    products: int
    decimals: int  # that a number alone is written with
    percent: bool  # whether a percent sign is written
    points: bool  # whether amounts with and without one are taken for percentage points
    firm: bool


def find_equations(text: str) -> list[tuple[bool, Fraction]]:
    """(whether it holds, the number stated) of every ``sum = number`` in ``text``.

    Either side may be the sum, or both; one side at least has an operation, so ``7 = 7`` states
    nothing. A percent sign is ``/ 100`` or a unit of the result, ``of`` and ``x`` between numbers
    multiply, and a percentage added to or taken from an amount is one of it (``200 - 20% = 160``).
    What can be read in several ways holds if it does in one of them, and what is part of more than
    can be read here (``x - 3 = 4``, ``2^3 + 1 = 9``) is never called false.

    What was multiplied or divided may be rounded to the decimals that the result is written with,
    one at least (``10 / 3 = 3.33``, ``1 / 3 = 33%``, not ``7 / 2 = 4``); what it states is the
    number before rounding, so that no number is reached by rounding to it.
    """
    text = _TIMES.sub(" * ", _PERCENT.sub("%", text.translate(_SIGNS)))
    stops = [-1, *(at for at, char in enumerate(text) if char == "="), len(text)]
    found = []
    signed = [_SIGN.search(text, a + 1, b) is not None for a, b in pairwise(stops)]
    for at in range(1, len(stops) - 1):
        if signed[at - 1] or signed[at]:
            judged = _judge(text, stops[at - 1] + 1, stops[at], stops[at + 1])
            if judged is not None:
                found.append(judged)
    return found


def _judge(text: str, least: int, equals: int, most: int) -> tuple[bool, Fraction] | None:
    """What the text around one ``=`` states; None where it states nothing."""
    lefts = list(_read_left(text, least, equals))
    false: Fraction | None = None
    rounded: Fraction | None = None
    for right in _read_right(text, equals + 1, most) if lefts else ():
        for left in lefts:
            if not left.operators and not right.operators:
                continue
            in_points = (left.points and not right.percent) or (right.points and not left.percent)
            if in_points:  # 200 - 20% is no 180; 75 + 5% may be 80%
                continue
            if left.value == right.value:
                return True, right.value
            if (exact := _undo_rounding(left, right)) is not None:
                rounded = exact
            if false is None and left.firm and right.firm:
                false = left.value if right.operators and not left.operators else right.value
    if rounded is not None:
        return True, rounded
    return None if false is None else (False, false)


def _undo_rounding(left: _Reading, right: _Reading) -> Fraction | None:
    """The value of the sum on one side that the number on the other is rounded from, or None."""
    for sum_, number in ((left, right), (right, left)):
        if sum_.products and not number.operators and number.decimals and number.value:
            off = abs(sum_.value - number.value) * 10**number.decimals
            return sum_.value if off <= _HALF else None
    return None


def _read_left(text: str, least: int, stop: int) -> Iterator[_Reading]:
    """Readings of the sum that ends at ``stop``: of what follows a word or end of a sentence."""
    start = stop
    while start > least and stop - start <= MAX_CHARS and text[start - 1] in _OF_SUMS:
        start -= 1
    _, ended, run = text[start:stop].rpartition(". ")
    if not ended and len(run) > MAX_CHARS:
        return
    if not ended and start == least > 0:  # a result, or the sum that the next one continues
        yield from _read_side(run, True)
        number = _NUMBER.match(run)
        run = run[number.end() :] if number else ""
    side = _STOPS.sub("", run)
    fresh = bool(ended) or "," in run[: len(run) - len(side)] or start == least
    before = "" if fresh else text[max(start - _LOOK, least) : start]
    firm = _stands_alone(before, run)
    for reading in _read_side(side, firm):
        bare = not reading.operators and before[-1:].isalpha()
        yield reading._replace(firm=False) if bare else reading
    bullet = _BULLET.match(side)
    if bullet is not None:
        yield from _read_side(side[bullet.end() :], firm and before[-1:] in ("", "\n"))


def _stands_alone(before: str, run: str) -> bool:
    """Whether the sum in ``run`` is all of it: what is before it takes no part."""
    negative = run.lstrip().startswith("-")
    word = _WORD.search(before)
    if word is not None:
        if negative or not run.startswith(" ") or word[1].lower() in _WORDS_BEFORE:
            return False
        return len(word[0]) > 1 or word[0] in "aI"
    if negative:
        return before[-1:] in ("", "\n", ":", ";", ">")
    if before[-1:] == ":" and before[-2:-1].isdigit():  # Step 1: and 12:30
        return run.startswith(" ")
    return not _SIGN_BEFORE.search(before)


def _read_right(text: str, start: int, stop: int) -> Iterator[_Reading]:
    """Readings of what begins at ``start``: of the whole sum, and of its first number."""
    while start < stop and text[start].isspace():
        start += 1
    end = start
    while end < stop and end - start <= MAX_CHARS and text[end] in _OF_SUMS:
        end += 1
    cut = _SENTENCE_END.search(text, start, end)
    whole = text[start : cut.start() if cut else end].rstrip()
    if len(whole) > MAX_CHARS:
        return
    read = False
    for reading in _read_side(whole, _ends(text, start, whole)):
        read = True
        yield reading
    number = _NUMBER.match(text, start, end)
    if number is not None and number[0] != whole:
        yield from _read_side(number[0], not read and _ends(text, start, number[0]))


def _ends(text: str, start: int, side: str) -> bool:
    """Whether the right side that begins at ``start`` is all of it: nothing behind takes part."""
    behind = text[start + len(side) : start + len(side) + _LOOK]
    if "." in side and behind.startswith(("..", "…")):  # 3.33...
        return False
    if _REMAINDER.match(behind) or _AFTER.match(behind):
        return False
    return not (behind[:1].isalpha() and _OPERATOR.search(side))


def _read_side(side: str, firm: bool) -> Iterator[_Reading]:
    """Readings of one side.

    Percent signs are ``/ 100``; or units, where nothing is multiplied; or what is added and taken
    off is a percentage of what is before it.
    """
    ways = [(side, HUNDREDTH, False)]
    if "%" in side:
        if "*" not in side and "/" not in side:
            ways.append((side, Fraction(1), False))
        else:
            ways.append((_TIMES_HUNDRED.sub(r"\1", side), HUNDREDTH, False))
        ways.append((side, HUNDREDTH, True))
    for way, percent, of_left in ways:
        read = read_sum(way, percent, of_left)
        if read is not None:
            decimals = 0 if read.operators else _count_decimals(way, percent)
            points = percent == 1 and len(_ONE_NUMBER.findall(way)) != way.count("%")
            yield _Reading(*read, decimals, "%" in way, points, firm)


def _count_decimals(number: str, percent: Fraction) -> int:
    """Decimals of a number's value as it is written: 2 of 3.25 and of 33%, 3 of 33.3%."""
    point = _DECIMALS.search(number)
    written = len(point[1]) if point else 0
    return written + (2 if "%" in number and percent == HUNDREDTH else 0)
