"""What may stand behind a number: number words, which multiply it, and units, which do not."""

from __future__ import annotations

import re
from collections.abc import Mapping

MULTIPLES: Mapping[str, int] = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "lakh": 10**5,
    "million": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "trillion": 10**12,
}
"""Number words, which may stand behind digits and behind one another, also in the plural."""
_MULTIPLE = re.compile(rf"\s+({'|'.join(MULTIPLES)})s?\b", re.IGNORECASE | re.ASCII)


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LETTERS = frozenset({"m", "g", "l", "L", "h", "s"})
"""Units of one letter; any other is a variable."""
_SYMBOLS = _split(
    "mm cm dm km mg kg ml cl dl ms hr hrs min mins sec secs ft in inch yd mi lb lbs oz pt gal "
    "sq mph kph kmh kmph rpm kb mb gb hz khz mhz ghz kw kwh kj kpa cal kcal usd eur "
    "gbp cents am pm a.m p.m deg"
)
_LITTLE = frozenset({"of", "in", "at", "on", "to", "by", "is", "as", "or", "so", "an"})
"""Words of two letters; any other two are a product of variables."""
_MEASURES = _split(
    "second minute hour day night week month quarter year time person people child head pupil "
    "student worker item piece unit box bag bottle pack page metre meter kilometre kilometer mile "
    "yard foot feet inch litre liter gallon gram kilogram pound ounce cent dollar euro degree "
    "celsius fahrenheit kelvin"
)
_NUMBERS = frozenset(MULTIPLES) | _split(
    "half halve third fourth fifth sixth seventh eighth ninth tenth twelfth hundredth thousandth "
    "millionth one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty "
    "ninety"
)
"""Words that would change the number; also in the plural."""
_NAMES = _split(
    "squared cubed factorial mod sqrt sin cos tan cot csc log exp alpha beta gamma delta epsilon "
    "theta lambda sigma omega phi psi rho tau"
)
"""Functions and variables."""
_PART = re.compile(r"(°[CFK]?|[A-Za-z]+(?:\.[A-Za-z])?)[²³]?\.?", re.ASCII)
_BETWEEN = re.compile(r"\s*([/-])\s*|\s+")
_DEGREES = re.compile(r"°\s+(?=[CFK]\b)")


def read_multiples(text: str, start: int) -> tuple[int, int]:
    """What the number words at ``start`` multiply by, and where they end."""
    factor = 1
    while (found := _MULTIPLE.match(text, start)) is not None:
        factor *= MULTIPLES[found[1].lower()]
        start = found.end()
    return factor, start


def read_unit(text: str, *, money: bool = False) -> bool | None:
    """Whether the text behind a number is a known unit or other words; None when it is neither.

    A unit of a short list may be attached (``5cm``); words stand behind a blank and have three
    letters or more. Between parts is a blank, or the ``/`` or ``-`` of a rate (``km/h``).

    Args:
        text: What stands behind the number, with the blanks before it; "" is a known unit.
        money: Whether a currency sign stood before the number: of $5m the m is no metre.
    """
    rest = text.strip()
    if not rest:
        return True
    pieces = _BETWEEN.split(_DEGREES.sub("°", rest))  # a part, a sign or None, a part …
    parts: list[str] = []
    for at in range(0, len(pieces), 2):
        found = _PART.fullmatch(pieces[at])
        if found is None or not _may_follow(parts, pieces[at - 1] if at else None, found[1]):
            return None
        parts.append(found[1])
    attached = not text[0].isspace()
    if attached and not _is_symbol(parts[0]):
        return None
    if money and (attached or parts[0] in _LETTERS):
        return None
    return all(map(_is_known, parts))


def _may_follow(parts: list[str], sign: str | None, part: str) -> bool:
    """Whether a part is a word or a unit, and one that may stand behind those before it."""
    if sign is not None:  # of a rate
        symbols = _is_symbol(parts[-1]), _is_symbol(part)
        if sign == "-" and any(symbols):
            return False
        return (symbols[0] or len(parts[-1]) > 2) and (symbols[1] or _is_measure(part))
    if _is_symbol(part):
        return True
    word = part.lower()
    if len(word) < 3:
        return word in _LITTLE or (word == "a" and bool(parts))
    return word not in _NAMES and word not in _NUMBERS and word.removesuffix("s") not in _NUMBERS


def _is_known(part: str) -> bool:
    return _is_symbol(part) or _is_measure(part) or part.lower() in ("per", "square", "cubic")


def _is_symbol(part: str) -> bool:
    return part[0] == "°" or part in _LETTERS or part.lower() in _SYMBOLS


def _is_measure(part: str) -> bool:
    word = part.lower()
    return not _MEASURES.isdisjoint((word, word.removesuffix("s"), word.removesuffix("es")))
