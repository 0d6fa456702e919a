"""What crawler and selector are asked: one prompt per session, one per judged paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..core.fork import Shared
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
        expand: Prompt of a paper's session, from the request and the paper's outline.
        outline: What a paper's session shows of the paper, the same for every request.
        select: The question that a selector answers with True or False.
    """

    instructions: str
    search: Callable[[Request, int], str]
    expand: Callable[[Request, str], str]
    outline: Callable[[Paper], str]
    select: Callable[[Request, Paper], str]


def _write_search(request: Request, most: int) -> str:
    return (
        "Task: find every paper that answers the request below. Write up to "
        f"{most} different search queries, including one aimed at surveys.\n"
        f"Request: {request.text}\n"
    )


def _write_expand(request: Request, outline: str) -> str:
    return (
        "Task: find every paper that answers the request below. Decide which sections of the "
        "current paper are worth following for their references.\n"
        f"Request: {request.text}\n{outline}"
    )


def _write_outline(paper: Paper) -> str:
    sections = json.dumps(list(paper.sections), ensure_ascii=False)
    return f"Title: {paper.title}\nAbstract: {paper.abstract}\nSections: {sections}\n"


def _write_select(request: Request, paper: Paper) -> str:
    return (
        f"Request: {request.text}\nPaper title: {paper.title}\nPaper abstract: {paper.abstract}\n"
        "Does this paper satisfy every requirement of the request? Answer True or False, then a "
        "line starting with Reason:.\nDecision:"
    )


def _write_short_search(request: Request, most: int) -> str:  # noqa: ARG001 - one signature for all
    return f"request: {request.text}\n"


def _write_short_expand(request: Request, outline: str) -> str:
    return f"request: {request.text}\n{outline}"


def _write_short_outline(paper: Paper) -> str:
    sections = "".join(f"- {heading}\n" for heading in paper.sections)
    return f"paper: {paper.title}\n{paper.abstract}\n{sections}"


def _write_short_select(request: Request, paper: Paper) -> str:
    return f"request: {request.text}\npaper: {paper.title}\n{paper.abstract}\nDecision:"


PROMPTS: Mapping[str, Prompts] = {
    "rules": Prompts(RULES, _write_search, _write_expand, _write_outline, _write_select),
    "pasa": Prompts("", _write_search, _write_expand, _write_outline, _write_select),
    "short": Prompts(
        "", _write_short_search, _write_short_expand, _write_short_outline, _write_short_select
    ),
}
"""``rules`` says how to write, ``pasa`` leaves that to imitation as PaSa does, ``short`` has few
words for small models."""


class Outlines(Shared):
    """The outlines of a library's papers as text, written once; copies and forks share them.

    Args:
        write: How a paper's outline is written.
        find: The library's papers.
    """

    most = 20_000
    """Outlines that are kept."""

    def __init__(self, write: Callable[[Paper], str], find: Callable[[str], Paper | None]) -> None:
        self._write = write
        self._find = find
        self._known: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, paper_id: str) -> str:
        text = self._known.get(paper_id)
        if text is None:
            if len(self._known) >= self.most:
                self._known.clear()
            paper = self._find(paper_id) or Paper(paper_id, "")
            text = self._known[paper_id] = self._write(paper)
        return text

    def __reduce__(self) -> Any:
        return Outlines, (self._write, self._find)
