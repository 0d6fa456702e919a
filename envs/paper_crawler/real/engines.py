"""What a search engine for papers is, and the one over files of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from ...core.errors import BadValueError, EnvFault
from ...tools.retrieval.base import Corpus, Hit, Retriever
from ...tools.retrieval.bm25 import Bm25
from ...tools.retrieval.http_cache import FoundCache
from ...utils.http import HttpClient, check_url
from ..papers import Search
from .arxiv_ids import strip_version
from .packed import Blank
from .title_table import TitleTable

_FIRST = 16
_MORE = 4


class SearchEngine(Protocol):
    """Finds ids of papers.

    Attributes:
        blocking: True when it waits for something outside the process.
    """

    blocking: ClassVar[bool]

    @property
    def identity(self) -> str:
        """Text that changes with what it searches and how."""
        ...

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """Ids without versions for each request, best first, each once, dates before ``before``.

        Raises:
            EnvFault: It is broken.
        """
        ...


def check_asked(asked: Search) -> None:
    """Refuse a request for no paper.

    Raises:
        BadValueError: ``k`` is below 1.
    """
    if asked.k < 1:
        raise BadValueError(f"search for papers: k is {asked.k}; expected at least 1.")


class Question(NamedTuple):
    """What a service was asked, as the key of what it answered."""

    service: str
    query: str
    k: int


def cache_results(
    folder: str | None, question: Question, ask: Callable[[], list[str]]
) -> list[str]:
    """Ids that are remembered in ``folder``, or asked for; an empty answer is asked for again."""
    if folder is None:
        return ask()
    cache = FoundCache(os.fspath(folder))
    known = cache.read(question.service, [question.query], question.k)
    if question.query in known:
        return [hit.id for hit in known[question.query]]
    ids = ask()
    hits = [Hit(paper_id, "", "", 0.0) for paper_id in ids]
    cache.keep(question.service, {question.query: hits}, question.k)
    return ids


@dataclass(frozen=True, kw_only=True)
class HttpSearch:
    """A search engine behind an address: one request per search, none before that.

    A search that fails is an :class:`EnvFault` after all tries, never an empty list.

    Attributes:
        url: Address of the service.
        timeout_s: Seconds that one try may take.
        attempts: Tries per request.
        wait_s: Seconds before the second try; every further wait is twice as long.
        pause_s: Seconds between two requests.
        cache: Folder where found ids are remembered; None for no memory.

    Raises:
        BadValueError: A value out of range.
    """

    blocking: ClassVar[bool] = True

    url: str
    timeout_s: float = 30.0
    attempts: int = 3
    wait_s: float = 1.0
    pause_s: float = 0.0
    cache: str | None = None
    _client: HttpClient = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_url(self.url, f"{type(self).__name__}: url")
        client = HttpClient(
            owner="search_settings",
            timeout_s=self.timeout_s,
            attempts=self.attempts,
            wait_s=self.wait_s,
            pause_s=self.pause_s,
        )
        object.__setattr__(self, "_client", client)

    @property
    def identity(self) -> str:
        """The service, and how it is asked."""
        raise NotImplementedError

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """See :meth:`SearchEngine.search`; a text without words finds nothing.

        Raises:
            EnvFault: No answer after all tries, or one that is no result of a search.
            BadValueError: ``k`` is below 1.
        """
        found: dict[Search, list[str]] = {}
        for asked in requests:
            check_asked(asked)
            if asked not in found:
                found[asked] = self._find_ids(asked)
        return [list(found[asked]) for asked in requests]

    def write_query(self, asked: Search) -> str:
        """Return the request in the service's language; empty where there is nothing to ask for."""
        raise NotImplementedError

    def _find_ids(self, asked: Search) -> list[str]:
        if not (query := self.write_query(asked)):
            return []
        question = Question(self.identity, query, asked.k)
        return cache_results(self.cache, question, lambda: self._ask(asked, query))

    def _ask(self, asked: Search, query: str) -> list[str]:
        """Return the ids that the service finds, dates before the limit."""
        raise NotImplementedError


def load_title_index(titles: TitleTable) -> Bm25:
    """BM25 over titles alone; the index is cached by the content of their file."""
    corpus = Corpus(ids=titles.ids, titles=titles.titles, texts=Blank(len(titles)))
    return Bm25(corpus, name=titles.name)


@dataclass(frozen=True)
class LocalSearch:
    """A retriever of passages whose ids are arXiv ids, with a date limit.

    The retriever knows no dates, so that it is asked for more until enough are early enough.

    Attributes:
        retriever: Over titles, or over an index with abstracts.
        date: Date of a paper by its id.
        identity: Of the retriever.
    """

    blocking: ClassVar[bool] = False

    retriever: Retriever
    date: Callable[[str], int]
    identity: str

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """See :meth:`SearchEngine.search`; none for a request without words.

        Raises:
            EnvFault: The files of the retriever cannot be read.
            BadValueError: ``k`` is below 1.
        """
        return [self._search(asked) for asked in requests]

    def _search(self, asked: Search) -> list[str]:
        check_asked(asked)
        wanted = max(asked.k, _FIRST)
        while True:
            try:
                hits = self.retriever.search([asked.text], wanted)[0]
            except OSError as fault:
                raise EnvFault(f"the search for papers failed: {fault}") from fault
            ids = dict.fromkeys(strip_version(hit.id) for hit in hits)
            early = [paper_id for paper_id in ids if self.date(paper_id) < asked.before]
            if len(early) >= asked.k or len(hits) < wanted:
                return early[: asked.k]
            wanted *= _MORE
