"""Rewards of one episode: the answer's score, and Search-R1's ladder for form and retrieval.

Source: Search-R1's format variant (arXiv 2505.15117) and its release; ``specs/algorithms.md`` 1.7.
Differs from the release: only the model's own text is graded, and a trajectory is validated by who
wrote each part instead of by a chat template's literal marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ..errors import BadValueError, UnknownNameError
from ..text_metrics import exact_match, f1, sub_em

OUTCOMES = {"em": exact_match, "f1": f1}
_BLOCKS = {"search": "information", "python": "result"}  # what answers a tool's call


class Piece(NamedTuple):
    """A part of a trajectory after the prompt."""

    text: str
    by_model: bool


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """What an episode is worth.

    Attributes:
        outcome: "em" or "f1": the score of the answer.
        structure_score: s: a right answer in a malformed trajectory loses it, a wrong answer in a
            well-formed one gains it.
        format_score: f: what a wrong answer in a malformed trajectory gains.
        retrieval_score: q: gained by a wrong answer in a well-formed trajectory whose passages
            hold an accepted answer.
        where: The world that has them, for errors.

    Raises:
        UnknownNameError: Another outcome.
        BadValueError: A score out of range.
    """

    outcome: str = "em"
    structure_score: float = 0.0
    format_score: float = 0.0
    retrieval_score: float = 0.0
    where: str = "SearchQA"

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise UnknownNameError("outcome", self.outcome, OUTCOMES, self.where)
        for name in ("structure_score", "format_score", "retrieval_score"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not 0 <= value <= 1
            ):
                raise BadValueError(f"{self.where}: {name} is {value!r}; expected 0 to 1.")

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest return of an episode."""
        # F1 can be as near to 0 as one likes and still lose the whole structure score.
        low = 0.0 - self.structure_score if self.outcome == "f1" else 0.0
        return low, max(1.0, self.structure_score + self.retrieval_score)

    @property
    def needs_form(self) -> bool:
        """Whether any term depends on the trajectory's form."""
        return bool(self.structure_score or self.format_score or self.retrieval_score)

    def __call__(self, score: float, well_formed: bool, retrieved: bool) -> dict[str, float]:
        """Terms for a given answer.

        Args:
            score: EM or F1 of the answer, in [0, 1].
            well_formed: See :func:`well_formed`.
            retrieved: A passage that was shown holds an accepted answer.
        """
        terms = {"outcome": score, "format": 0.0, "retrieval": 0.0}
        if score > 0:
            terms["format"] = 0.0 if well_formed else 0.0 - self.structure_score
        elif well_formed:
            terms["format"] = self.structure_score
            terms["retrieval"] = self.retrieval_score if retrieved else 0.0
        else:
            terms["format"] = self.format_score
        return terms


def holds_answer(text: str, golds: Sequence[str]) -> bool:
    """Whether a normalised gold that is not empty is a substring of the normalised text."""
    return sub_em(text, golds) > 0


def well_formed(pieces: Iterable[Piece], tools: tuple[str, ...] = ("search",)) -> bool:
    """Whether a trajectory is think, search, information, think, …, think, answer, and no more.

    Outside its tags only blanks may stand. The model writes think, search and answer; information
    is the environment's, as one whole block. With the python tool, a python block and the
    environment's result may stand in the place of search and information.
    """
    state, tags = "start", _tags(tools)
    for text, by_model in pieces:
        state = _after_model(state, text, tags) if by_model else _after_world(state, text)
        if state is None:
            return False
    return state == "end"


_NEXT = {
    ("start", "think"): "thought",
    ("informed", "think"): "thought",
    ("thought", "search"): "search",
    ("thought", "python"): "python",
    ("thought", "answer"): "end",
}


@cache
def _tags(tools: tuple[str, ...]) -> re.Pattern[str]:
    """The tags that count; those of an absent tool are plain text."""
    names = ["think", *tools, *(_BLOCKS[tool] for tool in tools), "answer"]
    return re.compile(rf"<(/?)({'|'.join(names)})>")


def _after_model(state: str, text: str, tags: re.Pattern[str]) -> str | None:
    opened: str | None = None
    done = 0
    for match in tags.finditer(text):
        closing, tag = bool(match[1]), match[2]
        if opened is None:
            if closing or text[done : match.start()].strip() or (state, tag) not in _NEXT:
                return None
            opened = tag
        elif closing and tag == opened:
            state, opened, done = _NEXT[state, opened], None, match.end()
        else:
            return None
    return None if opened or text[done:].strip() else state


def _after_world(state: str, text: str) -> str | None:
    if not text.strip():
        return state
    inner = text.strip()
    block = _BLOCKS.get(state)  # a tool's name is the state after its call
    whole = inner.startswith(f"<{block}>") and inner.endswith(f"</{block}>")
    return "informed" if block and whole else None
