"""Pages of a site: one protocol, parts of long pages, snippets, and batched requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...core.errors import EnvFault
from ...tools.retrieval.base import Hit, Query, words

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([^()\s]*\)")
_OWN_TAGS = re.compile(r"<(/?(?:information|search|open|answer|think))>", re.IGNORECASE)
MAX_TITLE = 200
_LEAST_FILL = 2
"""A part is at least one over this full before its cut is looked for."""


class Span(NamedTuple):
    """Where a passage of a generated world stands in the text of its page."""

    start: int
    end: int
    passage: str


class Page(NamedTuple):
    """One page; links in ``text`` are written ``[words](address)``."""

    address: str
    title: str
    text: str
    spans: tuple[Span, ...] = ()


class NoPage(NamedTuple):
    """Why there is nothing to show: a page that does not exist or may not be visited."""

    reason: str


class Visit(NamedTuple):
    """A request for the page at ``address``."""

    address: str


class Site(Protocol):
    """Pages that can be searched and opened, many requests at once."""

    def search(self, queries: Sequence[str], k: int) -> Sequence[list[Hit] | EnvFault]:
        """At most ``k`` hits for each query; a hit's id is an address, its text the snippet.

        An :class:`EnvFault` stands for a query that could not be served.
        """
        ...

    def open(self, addresses: Sequence[str]) -> Sequence[Page | NoPage | EnvFault]:
        """The page at each address; an :class:`EnvFault` where the site itself is broken."""
        ...


@dataclass(frozen=True)
class Served:
    """A site as the ``serve`` of a :class:`turngym.envs.core.env.Call`.

    Two of them are equal when they ask the same site, so that the batched vector environment
    serves the requests of all its copies in one call.
    """

    site: Site

    def __call__(self, requests: Sequence[Query | Visit]) -> list[Any]:
        """Hits for each :class:`Query`, a page or why there is none for each :class:`Visit`."""
        replies: list[Any] = [None] * len(requests)
        visits = [i for i, r in enumerate(requests) if isinstance(r, Visit)]
        for k in sorted({r.k for r in requests if isinstance(r, Query)}):
            places = [i for i, r in enumerate(requests) if isinstance(r, Query) and r.k == k]
            found = self.site.search([_get_text(requests[i]) for i in places], k)
            for i, hits in zip(places, found, strict=True):
                replies[i] = hits
        if visits:
            opened = self.site.open([_get_text(requests[i]) for i in visits])
            for i, page in zip(visits, opened, strict=True):
                replies[i] = page
        return replies


def _get_text(request: Query | Visit) -> str:
    return request[0]


def split_into_parts(text: str, most: int) -> list[tuple[int, int]]:
    """Start and end of the parts of ``text``, each of at most ``most`` characters.

    A part ends after a line break where the second half of its room has one, else after a
    sentence, else after a blank, else anywhere. Blanks between parts belong to none.
    """
    parts: list[tuple[int, int]] = []
    at, end = 0, len(text)
    while at < end:
        stop = end if end - at <= most else _find_stop(text, at, at + most)
        last = stop
        while last > at and text[last - 1].isspace():
            last -= 1
        if last > at:
            parts.append((at, last))
        at = stop
    return parts or [(0, 0)]


def find_parts(text: str, most: int, start: int, end: int) -> range:
    """Numbers (from 1) of the parts of ``text`` that hold some of it from ``start`` to ``end``."""
    parts = split_into_parts(text, most)
    inside = [n for n, (a, b) in enumerate(parts, start=1) if a < end and start < b]
    return range(inside[0], inside[-1] + 1) if inside else range(0)


def _find_stop(text: str, start: int, limit: int) -> int:
    low = start + (limit - start) // _LEAST_FILL
    for mark in ("\n", ". ", " "):
        found = text.rfind(mark, low, limit)
        if found >= 0:
            return found + len(mark)
    return limit


def strip_links(text: str) -> str:
    """``text`` with its links replaced by their words."""
    return _LINK.sub(r"\1", text)


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of ``text``, in order."""
    for sentence in _SENTENCE_END.split(text):
        if said := sentence.strip():
            yield said


def pick_sentence(text: str, query: str, but: str = "") -> str:
    """The sentence of ``text`` that shares most words with ``query``, the first among equals.

    Args:
        text: Without links.
        query: What was searched for.
        but: A text whose words do not count (the page's title: it fits every sentence).
    """
    wanted = set(words(query)) - set(words(but))
    best, most = "", -1
    for sentence in split_sentences(text):
        shared = len(wanted.intersection(words(sentence)))
        if shared > most:
            best, most = sentence, shared
    return best


def clip(text: str, most: int) -> str:
    """``text`` on one line, cut after ``most`` characters with "…" as the last."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def escape_tags(text: str) -> str:
    """Return text from outside with what looks like the environment's own tags in parentheses."""
    return _OWN_TAGS.sub(r"(\1)", text)
