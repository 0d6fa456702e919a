"""arXiv's own search, and its records of single papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from ...core.errors import UnknownNameError
from ...tools.retrieval.base import words
from ..papers import Paper, Search
from .arxiv_ids import read_date
from .atom import Entry, read_feed
from .engines import HttpSearch

_JOINS = ("OR", "AND")
_FIRST_DAY = "19910101"
_BATCH = 100


@dataclass(frozen=True, kw_only=True)
class ArxivSearch(HttpSearch):
    """Searches by arXiv's interface; see :class:`~.engines.HttpSearch` for the other settings.

    The words of the text are looked for in all fields, in papers submitted before the day of the
    limit; the order is arXiv's relevance. Papers are dated again, by their first version and by
    their id, and must be from before the limit by both.

    Attributes:
        url: Address of the interface.
        join: ``"OR"``: papers with any of the words; ``"AND"``: with all of them.
        pause_s: Seconds between two requests; arXiv asks for 3.

    Raises:
        UnknownNameError: Another ``join``.
        BadValueError: A value out of range.
    """

    url: str = "https://export.arxiv.org/api/query"
    join: str = "OR"
    wait_s: float = 3.0
    pause_s: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.join not in _JOINS:
            raise UnknownNameError("join", self.join, _JOINS, "ArxivSearch")

    @property
    def identity(self) -> str:
        """The interface, and how it is asked."""
        return f"arxiv-{self.url}-{self.join}"

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

    def write_query(self, asked: Search) -> str:
        """See :meth:`~.engines.HttpSearch.write_query`."""
        query_words = list(dict.fromkeys(words(asked.text)))
        last = _subtract_day(asked.before)
        if not query_words or last < _FIRST_DAY:
            return ""
        joined = f" {self.join} ".join(f"all:{word}" for word in query_words)
        return f"({joined}) AND submittedDate:[{_FIRST_DAY}0000 TO {last}2359]"

    def _ask(self, asked: Search, query: str) -> list[str]:
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
