"""Papers and requests, the protocols of who searches and who judges, and how titles compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..core.errors import EnvFault


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper of a library; read-only and shared.

    Attributes:
        id: Without a version: ``"2104.00731"``.
        title: One line.
        abstract: May be empty.
        date: Day of publication as the number ``YYYYMMDD``.
        sections: Ids of the papers that each section cites, by heading and in order; citations
            that the library cannot resolve are left out. No section where none is known.
        topic: Name of its topic; empty where unknown.
        methods: Names of its methods, likewise.
        kind: ``"paper"``, ``"survey"`` or ``"dataset"``.
    """

    id: str
    title: str
    abstract: str = ""
    date: int = 0
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topic: str = ""
    methods: tuple[str, ...] = ()
    kind: str = "paper"


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a user, and the papers that answer it; a task's payload.

    Attributes:
        text: What the user wrote.
        date: Day of the request, ``YYYYMMDD``; only papers of earlier days are found.
        answers: Ids of the annotated answers, each once, in the order of the file.
        oracle: Ids of all papers that answer it, where that is known; else empty.
        source: Id of the paper that the request was made from: it is never found. May be empty.
        titles: Titles of the annotated answers, in the same order; empty where unknown.
    """

    text: str
    date: int
    answers: tuple[str, ...]
    oracle: tuple[str, ...] = ()
    source: str = ""
    titles: tuple[str, ...] = ()


class Search(NamedTuple):
    """A question to a search engine: ``text``, at most ``k`` papers of days before ``before``."""

    text: str
    k: int
    before: int


class Judged(NamedTuple):
    """A question to a selector: does ``paper`` answer ``request``?"""

    request: Request
    paper: Paper


class Library(Protocol):
    """A body of papers and its search engine; shared by copies of the environment.

    Attributes:
        identity: Text that changes with the papers and with how they are searched.
        blocking: True when a search or a look-up may wait for something outside the process.
    """

    identity: str
    blocking: bool

    def find(self, paper_id: str) -> Paper | None:
        """The paper, None when the library does not have it.

        Raises:
            EnvFault: The library is broken (a damaged file, a server that does not answer).
        """
        ...

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """Ids of found papers for each request, best first, each id once.

        Raises:
            EnvFault: The search engine is broken.
        """
        ...


class Selector(Protocol):
    """Judges papers; shared by copies of the environment.

    Attributes:
        identity: Text that changes with how it judges.
        blocking: True when judging may wait for something outside the process.
    """

    identity: str
    blocking: bool

    def probabilities(self, judged: Sequence[Judged]) -> list[float]:
        """Probability that each paper answers its request, in [0, 1].

        The states of episodes hold them: where one depends on what else is judged or was judged
        before, so do their digests, and replays differ.

        Raises:
            EnvFault: The selector is broken.
        """
        ...


def check_probabilities(given: Any, count: int, who: str) -> list[float]:
    """Return what a selector gave for ``count`` papers; ``who`` is its name, for errors.

    Raises:
        EnvFault: Not one number from 0 to 1 per paper.
    """
    try:
        scores = [float(score) for score in given]
    except (TypeError, ValueError):
        scores = []
    if len(scores) != count or not all(0.0 <= score <= 1.0 for score in scores):
        raise EnvFault(
            f"{who} gave {given!r:.200} for {count} papers; expected as many numbers from 0 to 1."
        )
    return scores


def make_title_key(title: str) -> str:
    """The letters of a title, lower-cased; empty for one without letters.

    PaSa compares papers by this key. Digits count for nothing in it, so "GPT-2" and "GPT-3" have
    the same one: a match of ids is the stricter rule.
    """
    return "".join(filter(str.isalpha, title)).lower()


def join_lines(text: str) -> str:
    """Text whose line breaks and runs of blanks are single blanks."""
    return " ".join(text.split())
