"""Rewards and metrics of an episode of searching and answering, SearchQA's and WebQA's.

The answer's score, and Search-R1's ladder for form and retrieval.

Source: Search-R1's format variant (arXiv 2505.15117) and its release; ``specs/algorithms.md`` 1.7.
Differs from the release: only the model's own text is graded, and a trajectory is validated by who
wrote each part instead of by a chat template's literal marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from ..core.episode import Episode, Outcome
from ..core.errors import UnknownNameError
from ..core.settings import check_number
from .answer_metrics import exact_match, f1, sub_em
from .questions import Question
from .text import find_last_answer

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
        where: The environment that has them, for errors.

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
            check_number(name, getattr(self, name), self.where, min=0, max=1)

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
            well_formed: See :func:`is_well_formed`.
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


def is_well_formed(pieces: Iterable[Piece], tools: tuple[str, ...] = ("search",)) -> bool:
    """Whether a trajectory is think, search, information, think, …, think, answer, and no more.

    Outside its tags only blanks may stand. The model writes think, search and answer; information
    is the environment's, as one whole block. With the python tool, a python block and the
    environment's result may stand in the place of search and information.
    """
    return form_so_far(pieces, tools) == "end"


def form_so_far(pieces: Iterable[Piece], tools: tuple[str, ...] = ("search",)) -> str | None:
    """What a trajectory of that form waits for, as the name of a state; None once it has left it.

    Args:
        pieces: As those of :func:`is_well_formed`.
        tools: Likewise.
    """
    state, usual, tags = "start", _compile_usual(tools), _compile_tags(tools)
    for text, by_model in pieces:
        if not by_model:
            state = _advance_by_env(state, text)
        elif match := usual.fullmatch(text):  # then the tags in it are known
            state = _NEXT.get((_NEXT.get((state, "think"), ""), match[1]))
        else:
            state = _advance_by_model(state, text, tags)
        if state is None:
            return None
    return state


_NEXT = {
    ("start", "think"): "thought",
    ("informed", "think"): "thought",
    ("thought", "search"): "search",
    ("thought", "python"): "python",
    ("thought", "answer"): "end",
}


@cache
def _compile_tags(tools: tuple[str, ...]) -> re.Pattern[str]:
    """The tags that count; those of an absent tool are plain text."""
    names = ["think", *tools, *(_BLOCKS[tool] for tool in tools), "answer"]
    return re.compile(rf"<(/?)({'|'.join(names)})>")


@cache
def _compile_usual(tools: tuple[str, ...]) -> re.Pattern[str]:
    """One block of thinking and one block that acts, without any "<" between their tags."""
    acts = "|".join((*tools, "answer"))
    return re.compile(rf"\s*<think>[^<]*</think>\s*<({acts})>[^<]*</\1>\s*")


def _advance_by_model(state: str, text: str, tags: re.Pattern[str]) -> str | None:
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


def _advance_by_env(state: str, text: str) -> str | None:
    inner = text.strip()
    if not inner:
        return state
    block = _BLOCKS.get(state)  # a tool's name is the state after its call
    if block is None:
        return None
    whole = inner.startswith(f"<{block}>") and inner.endswith(f"</{block}>")
    return "informed" if whole else None


class Searched(Protocol):
    """What grading reads of an episode's state.

    Attributes:
        found: Ids of the passages that were shown.
        shown: Texts of the information blocks.
        answer: What was answered; None before.
    """

    found: tuple[str, ...]
    shown: tuple[str, ...]
    answer: str | None


def is_answer_shown(state: Searched, question: Question) -> bool:
    """Whether an information block holds an accepted answer; the last one does most often."""
    return any(holds_answer(block, question.answers) for block in reversed(state.shown))


def count_evidence(state: Searched, question: Question) -> int:
    """How many facts of the plan were shown; without a plan, whether an answer was."""
    if not question.plan:
        return int(is_answer_shown(state, question))
    count = 0
    for probe in question.plan:
        for passage in probe.passages:
            if passage in state.found:
                count += 1
                break
    return count


def iterate_pieces(episode: Episode[Any], action: str | None = None) -> Iterator[Piece]:
    """Yield the trajectory after the prompt; ``action`` is one that ``episode.steps`` lacks."""
    for i, step in enumerate(episode.steps):
        if i:
            yield Piece(step.observation, False)
        yield Piece(step.action, True)
    if action is not None:
        if episode.steps:
            yield Piece(episode.observation, False)
        yield Piece(action, True)


def grade_answer(
    rewards: Rewards,
    episode: Episode[Any],
    action: str,
    is_formed: Callable[[Iterable[Piece]], bool],
) -> Outcome:
    """The outcome of an action that answers, and the answer in the episode's state.

    Args:
        rewards: What it is worth.
        episode: The episode; its state is one of :class:`Searched`, its payload the question.
        action: Holds the answer.
        is_formed: Whether a trajectory is well formed; only called where a reward depends on it.
    """
    state, question = episode.state, episode.task.payload
    state.answer = find_last_answer(action) or ""
    score = OUTCOMES[rewards.outcome](state.answer, question.answers)
    form = rewards.needs_form and is_formed(iterate_pieces(episode, action))
    terms = rewards(score, form, form and is_answer_shown(state, question))
    exact = score if rewards.outcome == "em" else exact_match(state.answer, question.answers)
    if exact:
        return Outcome.solved("", terms, verdict=1)
    return Outcome.failed("", terms, verdict=-1)


def compute_metrics(
    episode: Episode[Any],
    is_formed: Callable[[Iterable[Piece]], bool],
    *,
    by_kind: bool = False,
) -> dict[str, float]:
    """EM and F1 of the answer, and what was shown on the way to it.

    ``recall`` is the share of the plan's facts that were shown; for real questions, which have no
    plan, whether an accepted answer was. ``answer_shown`` is whether an accepted answer was, as a
    text: a number that must be counted seldom is.

    Args:
        episode: The episode.
        is_formed: Whether its pieces have the form that the prompt asks for.
        by_kind: Add EM under the name of the question's kind too, as ``em_counting``.
    """
    state, question = episode.state, episode.task.payload
    said = state.answer
    em = 0.0 if said is None else exact_match(said, question.answers)
    found = {
        "em": em,
        "f1": em if em or said is None else f1(said, question.answers),  # an equal one scores 1
        "recall": count_evidence(state, question) / max(len(question.plan), 1),
        "answer_shown": float(is_answer_shown(state, question)),
        "well_formed": float(said is not None and is_formed(iterate_pieces(episode))),
    }
    if question.hops:
        found["hops"] = float(question.hops)
    if by_kind and question.kind:
        found[f"em_{question.kind}"] = em
    return found
