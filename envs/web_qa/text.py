"""The words of the web game: prompt, tags, numbered results, parts of pages, replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..tools.action_parsing import TagGrammar
from ..tools.retrieval.base import Hit
from .sites.pages import NoPage, Page, split_into_parts

GRAMMAR = TagGrammar({"search": "query", "open": "address or number [page N]", "answer": "answer"})
STOP = ("</search>", "</open>", "</answer>")

PROMPTS: Mapping[str, str] = {
    "web": (
        "Answer the given question by searching the web. "
        "Reason inside <think> and </think> first every time you get new information. "
        "Search by <search> query </search>: the best results come back between <information> and "
        "</information>, each with a number, a title, an address and a snippet. "
        "Read a page by <open> address </open> or <open> number </open>; the further parts of a "
        "long page by <open> address page 2 </open> and so on. "
        "When you know enough, give the answer inside <answer> and </answer>, without detailed "
        "illustrations. For example, <answer> Beijing </answer>. "
    ),
    "none": "",
}
INVALID = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> "
    "and </search>. If I want to read a page, I should put its address or its number between "
    "<open> and </open>. If I want to give the final answer, I should put the answer between "
    "<answer> and </answer>. Let me try again.\n"
)
NOTHING_FOUND = "Nothing found."
_TARGET = re.compile(r"(\S+)(?:\s+page\s+([0-9]{1,6}))?", re.IGNORECASE)
_NUMBER = re.compile(r"\[?([0-9]{1,6})[\].]?")


class Target(NamedTuple):
    """What an ``<open>`` asks for: an address or the number of a result, and the part."""

    address: str
    number: int | None
    part: int


def read_target(content: str) -> Target | None:
    """The target that the inside of an ``<open>`` names; None when it names none."""
    match = _TARGET.fullmatch(content.strip())
    if match is None:
        return None
    number = _NUMBER.fullmatch(match[1])
    return Target(match[1], int(number[1]) if number else None, int(match[2] or 1))


def write_block(body: str) -> str:
    """Return ``body`` as an information block of the environment."""
    return f"\n\n<information>{body}</information>\n\n"


def write_results(hits: Sequence[Hit], most: int) -> str:
    """The observation after a search, its body cut after ``most`` characters."""
    found = [f"{i}. {hit.title}\n{hit.id}\n{hit.text}" for i, hit in enumerate(hits, start=1)]
    return write_block("\n".join(found)[:most] or NOTHING_FOUND)


def write_page(page: Page, part: int, most: int) -> tuple[str, bool]:
    """The observation after opening ``part`` (from 1) of a page, and whether there is that part.

    A part that does not exist is named together with how many there are.
    """
    parts = split_into_parts(page.text, most)
    if not 1 <= part <= len(parts):
        have = "1 part" if len(parts) == 1 else f"{len(parts)} parts"
        return write_block(f"{page.address} has {have}; there is no part {part}."), False
    start, end = parts[part - 1]
    lines = [page.title, page.address]
    if len(parts) > 1:
        lines.append(f"part {part} of {len(parts)}")
        if part < len(parts):
            lines[-1] += f"; next: <open> {page.address} page {part + 1} </open>"
    lines.append(page.text[start:end] or "The page holds no text.")
    return write_block("\n".join(lines)), True


def write_missing_page(missing: NoPage) -> str:
    """The observation after opening what cannot be shown."""
    return write_block(missing.reason)


def write_missing_result(number: int, results: int) -> str:
    """The observation after opening the number of no result."""
    have = {0: "no result was shown so far", 1: "the last search has one result"}
    said = have.get(results, f"the last search has {results} results")
    return write_block(f"There is no result {number}: {said}. Open an address, or search.")
