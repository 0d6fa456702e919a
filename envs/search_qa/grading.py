"""Grading of an episode of searching and answering, whatever the tools: SearchQA's and WebQA's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..episode import Episode, Outcome
from ..text_metrics import exact_match, f1
from .questions import Question
from .rewards import OUTCOMES, Piece, Rewards, holds_answer
from .text import last_answer


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


def answer_shown(state: Searched, question: Question) -> bool:
    """Whether an information block holds an accepted answer."""
    return any(holds_answer(block, question.answers) for block in state.shown)


def evidence(state: Searched, question: Question) -> int:
    """How many facts of the plan were shown; without a plan, whether an answer was."""
    if not question.plan:
        return int(answer_shown(state, question))
    return sum(any(p in state.found for p in probe.passages) for probe in question.plan)


def pieces(episode: Episode[Any], action: str | None = None) -> list[Piece]:
    """The trajectory after the prompt; ``action`` is one that ``episode.steps`` lacks."""
    texts = [text for step in episode.steps for text in (step.observation, step.action)]
    if action is not None:
        texts += [episode.observation, action]
    return [Piece(text, by_model=i % 2 == 0) for i, text in enumerate(texts[1:])]


def graded(
    rewards: Rewards,
    state: Searched,
    question: Question,
    action: str,
    well_formed: Callable[[], bool],
) -> Outcome:
    """The outcome of an action that answers, and the answer in ``state``.

    Args:
        rewards: What it is worth.
        state: The episode's state.
        question: The question.
        action: Holds the answer.
        well_formed: Whether the whole trajectory is; only called where a reward depends on it.
    """
    state.answer = last_answer(action) or ""
    score = OUTCOMES[rewards.outcome](state.answer, question.answers)
    form = rewards.needs_form and well_formed()
    terms = rewards(score, form, form and answer_shown(state, question))
    if exact_match(state.answer, question.answers):
        return Outcome.solved("", terms, verdict=1)
    return Outcome.failed("", terms, verdict=-1)


def measures(
    state: Searched, question: Question, well_formed: Callable[[], bool]
) -> dict[str, float]:
    """EM and F1 of the answer, and what was shown on the way to it.

    ``recall`` is the share of the plan's facts that were shown; for real questions, which have no
    plan, whether an accepted answer was.
    """
    said = state.answer
    found = {
        "em": 0.0 if said is None else exact_match(said, question.answers),
        "f1": 0.0 if said is None else f1(said, question.answers),
        "recall": evidence(state, question) / max(len(question.plan), 1),
        "answer_shown": float(answer_shown(state, question)),
        "well_formed": float(said is not None and well_formed()),
    }
    if question.hops:
        found["hops"] = float(question.hops)
    return found
