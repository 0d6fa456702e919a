"""arXiv's own search, and its records of single papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar
from urllib.parse import urlencode

from ...core.errors import UnknownNameError
from ...tools.retrieval.base import words
from ...utils.http import HttpClient, check_url
from ..papers import Paper, Search
from .arxiv_ids import read_date
from .atom import Entry, read_feed
from .engines import Question, cache_results, check_asked

_JOINS = ("OR", "AND")
_FIRST_DAY = "19910101"
_BATCH = 100


@dataclass(frozen=True, kw_only=True)
class ArxivSearch:
    """Searches by arXiv's interface, one request per search; nothing is asked before that.

    The words of the text are looked for in all fields, in papers submitted before the day of the
    limit; the order is arXiv's relevance. Papers are dated again, by their first version and by
    their id, and must be from before the limit by both. A search that fails is an
    :class:`EnvFault` after all tries, never an empty list.

    Attributes:
        url: Address of the interface.
        join: ``"OR"``: papers with any of the words; ``"AND"``: with all of them.
        timeout_s: Seconds that one try may take.
        attempts: Tries per request.
        wait_s: Seconds before the second try; every further wait is twice as long.
        pause_s: Seconds between two requests; arXiv asks for 3.
        cache: Folder where found ids are remembered; None for no memory.

    Raises:
        UnknownNameError: Another ``join``.
        BadValueError: A value out of range.
    """

    blocking: ClassVar[bool] = True

    url: str = "https://export.arxiv.org/api/query"
    join: str = "OR"
    timeout_s: float = 30.0
    attempts: int = 3
    wait_s: float = 3.0
    pause_s: float = 3.0
    cache: str | None = None
    _client: HttpClient = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_url(self.url, "ArxivSearch: url")
        if self.join not in _JOINS:
            raise UnknownNameError("join", self.join, _JOINS, "ArxivSearch")
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
        """The interface, and how it is asked."""
        return f"arxiv-{self.url}-{self.join}"

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """See :meth:`~.engines.SearchEngine.search`; a text without words finds nothing.

        Raises:
            EnvFault: No answer after all tries, or one that is no feed.
            BadValueError: ``k`` is below 1.
        """
        found: dict[Search, list[str]] = {}
        for asked in requests:
            check_asked(asked)
            if asked not in found:
                query = self._query(asked)
                found[asked] = self._ids(asked, query) if query else []
        return [list(found[asked]) for asked in requests]

    def papers(self, ids: Sequence[str]) -> dict[str, Paper]:
        """Records of papers by id: title, abstract and date, without sections.

        Returns:
            Those that arXiv has.

        Raises:
            EnvFault: No answer after all tries, or one that is no feed.
        """
        found: dict[str, Paper] = {}
        for start in range(0, len(ids), _BATCH):
            some = ids[start : start + _BATCH]
            fields = {"id_list": ",".join(some), "max_results": len(some)}
            for entry in self._feed(fields):
                found[entry.id] = Paper(entry.id, entry.title, entry.abstract, read_date(entry.id))
        return {paper_id: found[paper_id] for paper_id in ids if paper_id in found}

    def _query(self, asked: Search) -> str:
        """The question in arXiv's language; empty where there is nothing to ask for."""
        query_words = list(dict.fromkeys(words(asked.text)))
        last = _subtract_day(asked.before)
        if not query_words or last < _FIRST_DAY:
            return ""
        joined = f" {self.join} ".join(f"all:{word}" for word in query_words)
        return f"({joined}) AND submittedDate:[{_FIRST_DAY}0000 TO {last}2359]"

    def _ids(self, asked: Search, query: str) -> list[str]:
        question = Question(self.identity, query, asked.k)
        return cache_results(self.cache, question, lambda: self._found(asked, query))

    def _found(self, asked: Search, query: str) -> list[str]:
        fields = {
            "search_query": query,
            "start": 0,
            "max_results": asked.k,
            "sortBy": "relevance",
            "sortOrder": "descending",
        }
        early = (e.id for e in self._feed(fields) if max(e.day, read_date(e.id)) < asked.before)
        return list(dict.fromkeys(early))[: asked.k]

    def _feed(self, fields: dict[str, object]) -> list[Entry]:
        return read_feed(self._client.send(f"{self.url}?{urlencode(fields)}"), self.url)


def _subtract_day(day: int) -> str:
    """``YYYYMMDD`` of the day before; for a number that is no day, the number before it."""
    try:
        return (datetime.strptime(f"{day:08d}", "%Y%m%d") - timedelta(days=1)).strftime("%Y%m%d")
    except (ValueError, OverflowError):
        return f"{day - 1:08d}"
