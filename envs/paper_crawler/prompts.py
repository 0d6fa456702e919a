"""What crawler and selector are asked: one prompt per session, one per judged paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .papers import Paper, Request

RULES = (
    "You look for scientific papers. Write each search as [Search] query and each section that you "
    "follow as [Expand] its name, one per line. Write [StopSearch] or [StopExpand] when nothing "
    "else is worth it.\n"
)


class Prompts(NamedTuple):
    """Texts of one style.

    Attributes:
        instructions: What stands before every session's prompt.
        search: Prompt of a search session, from the request and the most queries it may take.
        expand: Prompt of a paper's session.
        select: The question that a selector answers with True or False.
    """

    instructions: str
    search: Callable[[Request, int], str]
    expand: Callable[[Request, Paper], str]
    select: Callable[[Request, Paper], str]


def _search(request: Request, most: int) -> str:
    return (
        "Task: find every paper that answers the request below. Write up to "
        f"{most} different search queries, including one aimed at surveys.\n"
        f"Request: {request.text}\n"
    )


def _expand(request: Request, paper: Paper) -> str:
    return (
        "Task: find every paper that answers the request below. Decide which sections of the "
        "current paper are worth following for their references.\n"
        f"Request: {request.text}\nTitle: {paper.title}\nAbstract: {paper.abstract}\n"
        f"Sections: {json.dumps(list(paper.sections), ensure_ascii=False)}\n"
    )


def _select(request: Request, paper: Paper) -> str:
    return (
        f"Request: {request.text}\nPaper title: {paper.title}\nPaper abstract: {paper.abstract}\n"
        "Does this paper satisfy every requirement of the request? Answer True or False, then a "
        "line starting with Reason:.\nDecision:"
    )


def _short_search(request: Request, most: int) -> str:  # noqa: ARG001 - one signature for all
    return f"request: {request.text}\n"


def _short_expand(request: Request, paper: Paper) -> str:
    sections = "".join(f"- {heading}\n" for heading in paper.sections)
    return f"request: {request.text}\npaper: {paper.title}\n{paper.abstract}\n{sections}"


def _short_select(request: Request, paper: Paper) -> str:
    return f"request: {request.text}\npaper: {paper.title}\n{paper.abstract}\nDecision:"


PROMPTS: Mapping[str, Prompts] = {
    "rules": Prompts(RULES, _search, _expand, _select),
    "pasa": Prompts("", _search, _expand, _select),
    "short": Prompts("", _short_search, _short_expand, _short_select),
}
"""``rules`` says how to write, ``pasa`` leaves that to imitation as PaSa does, ``short`` has few
words for small models."""
