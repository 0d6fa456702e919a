"""arXiv's feeds: Atom, read without anything that a document could declare."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

from ...core.errors import EnvFault
from ...utils.http import excerpt
from ..papers import join_lines
from .arxiv_ids import find_id_in_link

_ATOM = "{http://www.w3.org/2005/Atom}"
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T")
_DEEPEST = 64


class Entry(NamedTuple):
    """One paper of a feed.

    Attributes:
        id: Without version.
        title: On one line.
        abstract: On one line.
        day: Of the first version, ``YYYYMMDD``.
    """

    id: str
    title: str
    abstract: str
    day: int


class _Unsafe(ValueError):
    """A document with declarations, or nested too deeply."""


def read_feed(data: bytes, url: str) -> list[Entry]:
    """The papers of a feed in its order.

    Raises:
        EnvFault: It is no feed, declares a document type or entities, or tells of an error.
    """
    try:
        _check(data)
        feed = ElementTree.fromstring(data)
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:
        raise EnvFault(f"{url}: the reply is no Atom feed ({error}): {excerpt(data)}") from None
    if feed.tag != f"{_ATOM}feed":
        raise EnvFault(f"{url}: the reply is {feed.tag!r}, no Atom feed: {excerpt(data)}")
    return [_read_entry(entry, url) for entry in feed.findall(f"{_ATOM}entry")]


def _read_entry(entry: ElementTree.Element, url: str) -> Entry:
    place, title = _read_text(entry, "id"), _read_text(entry, "title")
    summary, published = _read_text(entry, "summary"), _read_text(entry, "published")
    if "/api/errors" in place:
        raise EnvFault(f"{url} refused the request: {summary or title}")
    paper_id, day = find_id_in_link(place), _DAY.match(published)
    if paper_id is None or not title or day is None:
        raise EnvFault(
            f"{url}: an entry has id {place!r}, title {title!r} and published {published!r}; "
            "expected a link to an abstract, a title and a time."
        )
    return Entry(paper_id, title, summary, int("".join(day.groups())))


def _read_text(entry: ElementTree.Element, name: str) -> str:
    return join_lines(entry.findtext(f"{_ATOM}{name}") or "")


def _check(data: bytes) -> None:
    """Refuse declarations before anything is built from the document.

    Raises:
        ValueError: It has some, or is nested too deeply.
    """
    depth = 0

    def refuse(*_: object) -> None:
        raise _Unsafe("it declares a document type or entities")

    def down(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise _Unsafe("it is nested too deeply")

    def up(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = down
    parser.EndElementHandler = up
    parser.Parse(data, True)
