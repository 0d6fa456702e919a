"""Actions as text: steps ``a op b = c`` and expressions, read without running them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from .arithmetic import Numbers, apply

MAX_CHARS = 200
"""Characters that the line of an action may have."""
_MAX_DIGITS = 9
_MAX_DEPTH = 20
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:/[0-9]+)?"
_STEP = re.compile(
    rf"(?P<left>[^=]+)=\s*(?P<result>{_NUMBER})\s*(?:\(\s*left\s*:(?P<rest>[^()]*)\))?"
)
_ONE = re.compile(_NUMBER)
_TOKEN = re.compile(r"\s*(?:([0-9]+(?:\.[0-9]+)?)|([-+*/()]))")
_ANSWER = re.compile(r"answer\s*:\s*", re.IGNORECASE)
_GOAL = re.compile(r"=\s*24(?:\.0+)?$")
_SIGNS = str.maketrans({"\u00d7": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", "\u00b7": "*"})


class UnreadableAction(Exception):
    """A line that cannot be read; the message says why."""


class DivisionByZero(Exception):
    """An expression that divides by zero."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it was written; whether it is right is not asked yet."""

    left: Fraction
    operator: str
    right: Fraction
    result: Fraction
    rest: Numbers | None  # the numbers that it says are left


@dataclass(frozen=True, slots=True)
class Answer:
    """An expression: the numbers in it, and its value, None where it divides by zero."""

    text: str
    numbers: Numbers
    value: Fraction | None


def read_action(text: str) -> Step | Answer:
    """The step or the answer on the last line of ``text`` that is not empty.

    Raises:
        Unread: There is none; the message tells the player why.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        raise UnreadableAction("The action is empty.")
    line = lines[-1].translate(_SIGNS)
    if len(line) > MAX_CHARS:
        raise UnreadableAction(f"The last line has more than {MAX_CHARS} characters.")
    if named := _ANSWER.match(line):
        return _parse_answer(line[named.end() :])
    if found := _STEP.fullmatch(line):
        operands = _parse_operands(found["left"].strip())
        if operands is not None:
            result, rest = _parse_number(found["result"]), _parse_rest(found["rest"])
            return Step(*operands, result, rest)
    answer = _parse_answer(line)
    if len(answer.numbers) < 3:
        raise UnreadableAction("A step needs its result, and an answer all four numbers.")
    return answer


def parse_expression(text: str) -> Answer:
    """The value of an arithmetic expression of + - * / and brackets, exactly.

    Raises:
        Unread: It is none.
    """
    tokens = list(_tokenize(text))
    parser = _Parser(tokens)
    try:
        value = parser.parse_all()
    except DivisionByZero:
        value = None
        parser.check_form()
    found = tuple(sorted(_parse_number(t) for t in tokens if t[0] not in "-+*/()"))
    return Answer(text.strip(), found, value)


def _parse_answer(text: str) -> Answer:
    return parse_expression(_GOAL.sub("", text.strip()))


def _parse_operands(text: str) -> tuple[Fraction, str, Fraction] | None:
    """Two numbers around an operator; blanks tell ``8/3 / 2`` from ``8 / 3/2``."""
    for spaced in (True, False):
        for at in range(1, len(text) - 1):
            left, sign, right = text[:at], text[at], text[at + 1 :]
            if sign not in "+-*/" or spaced != (left[-1] == " "):
                continue
            if _ONE.fullmatch(left.strip()) and _ONE.fullmatch(right.strip()):
                return _parse_number(left.strip()), sign, _parse_number(right.strip())
    return None


def _parse_number(text: str) -> Fraction:
    if sum(c.isdigit() for c in text) > _MAX_DIGITS:
        raise UnreadableAction(f"A number has more than {_MAX_DIGITS} digits.")
    top, _, bottom = text.partition("/")
    if bottom and not int(bottom):
        raise UnreadableAction(f"{text} divides by zero, so it is no number.")
    return Fraction(top) / int(bottom or 1)


def _parse_rest(text: str | None) -> Numbers | None:
    if text is None:
        return None
    parts = text.replace(",", " ").split()
    if not all(_ONE.fullmatch(part) for part in parts):
        raise UnreadableAction("(left: ...) holds something that is no number.")
    return tuple(sorted(map(_parse_number, parts)))


def _tokenize(text: str) -> Iterator[str]:
    at, text = 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise UnreadableAction(f"{text[at:].strip()[:20]!r} is no number, operator or bracket.")
        yield found[1] or found[2]
        at = found.end()


class _Parser:
    """Sums of products of signed numbers and brackets."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._lenient = False

    def parse_all(self) -> Fraction:
        value = self._parse_sum()
        if self._at < len(self._tokens):
            raise UnreadableAction(f"{self._tokens[self._at]!r} stands where an operator should.")
        return value

    def check_form(self) -> None:
        """Read everything again, with 1 for each quotient by zero, to find faults of form."""
        self._at, self._depth, self._lenient = 0, 0, True
        self.parse_all()

    def _take(self, kinds: str) -> str | None:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if token and token in kinds:
            self._at += 1
            return token
        return None

    def _parse_sum(self) -> Fraction:
        value = self._parse_product()
        while sign := self._take("+-"):
            right = self._parse_product()
            value = value + right if sign == "+" else value - right
        return value

    def _parse_product(self) -> Fraction:
        value = self._parse_signed()
        while sign := self._take("*/"):
            result = apply(value, sign, self._parse_signed())
            if result is None and not self._lenient:
                raise DivisionByZero
            value = Fraction(1) if result is None else result
        return value

    def _parse_signed(self) -> Fraction:
        minus = 0
        while self._take("-"):
            minus += 1
        value = self._parse_atom()
        return -value if minus % 2 else value

    def _parse_atom(self) -> Fraction:
        if self._take("("):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise UnreadableAction(f"There are more than {_MAX_DEPTH} brackets in one another.")
            value = self._parse_sum()
            if not self._take(")"):
                raise UnreadableAction("A bracket is not closed.")
            self._depth -= 1
            return value
        if self._at >= len(self._tokens):
            raise UnreadableAction("The expression ends where a number should stand.")
        token = self._tokens[self._at]
        if not token[0].isdigit():
            raise UnreadableAction(f"{token!r} stands where a number should.")
        self._at += 1
        return _parse_number(token)
