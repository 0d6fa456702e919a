"""How a selector writes: ``True`` or ``False`` first, then what it likes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..papers import Judged
from ..prompts import Prompts
from ..scores import SELECTED_ABOVE

BATCH_RULES = (
    "Answer every numbered question on a line of its own: its number, a colon, then True or "
    "False.\n"
)
"""Stands before a batch of questions, in the styles that say how to write."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_DECISION = re.compile(r"\s*(?:Decision\s*:\s*)?(True|False)\b(.*)")
_LINE = re.compile(r"^[ \t]*(\d+)[ \t]*:(.*)$", re.MULTILINE)


class Decision(NamedTuple):
    """What a selector decided about a paper.

    Attributes:
        accepted: Its decision token. What cannot be read is False.
        score: The probability of True that it reported, else 1 or 0. It orders the frontier, and
            measures take papers above 0.5 as selected.
        error: Why it could not be read; empty when it could.
    """

    accepted: bool
    score: float
    error: str = ""


def read_decision(text: str) -> Decision:
    """The decision that ``text`` begins with.

    ``True`` or ``False`` comes first, after ``Decision:`` if that is written. Where the rest of
    that line is a number, it is the probability of True; anything else is the selector's reasons.
    """
    found = _DECISION.match(text)
    if found is None:
        return _make_unreadable(f"{_shorten(text)} does not begin with True or False")
    accepted, rest = found[1] == "True", found[2].strip()
    if not re.fullmatch(_NUMBER, rest):
        return Decision(accepted, float(accepted))
    score = float(rest)
    if not 0.0 <= score <= 1.0:
        return _make_unreadable(f"{rest} is no probability; expected a number from 0 to 1")
    return Decision(accepted, score)


def read_decisions(text: str, count: int) -> list[Decision]:
    """The decisions of a batch: one per line, ``1: True``; the first line of a number counts."""
    lines: dict[int, str] = {}
    for number, rest in _LINE.findall(text):
        lines.setdefault(int(number[:9]), rest)
    return [
        read_decision(lines[number])
        if number in lines
        else _make_unreadable(f"there is no line '{number}: True' or '{number}: False'")
        for number in range(1, count + 1)
    ]


def write_decision(probability: float) -> str:
    """The text that is read as this probability of True, and as True above 0.5."""
    return f"{probability > SELECTED_ABOVE} {probability!r}"


def write_decisions(probabilities: Iterable[float], *, batch: bool) -> str:
    """The answer to the present question; ``batch`` as in the environment's settings."""
    texts = [write_decision(float(p)) for p in probabilities]
    if batch:
        return "".join(f"{number}: {text}\n" for number, text in enumerate(texts, 1))
    return texts[0]


def write_question(prompts: Prompts, asked: Sequence[Judged], *, batch: bool) -> str:
    """What the selector is shown; empty when nothing is asked."""
    texts = [prompts.select(request, paper) for request, paper in asked]
    if batch:
        return "\n".join(f"Question {number}\n{text}" for number, text in enumerate(texts, 1))
    return texts[0] if texts else ""


def _make_unreadable(error: str) -> Decision:
    return Decision(False, 0.0, error)


def _shorten(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")
