"""PaSa's papers and a search engine, as the library of PaperCrawler-v0."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from ...errors import DataError
from ..papers import Paper, Search
from .arxiv import ArxivSearch
from .arxiv_ids import plain_id
from .database import PaperDatabase
from .engines import SearchEngine

Reopen = tuple[Callable[..., "PasaLibrary"], tuple[Any, ...]]
_LOOKED_UP = 4096


class PasaLibrary:
    """Papers of PaSa's files, found by any engine; shared by copies of the environment.

    An engine on the internet also finds papers that the files lack. They are left out, or, with
    ``look_up``, taken from arXiv's records: then they have no sections.

    Args:
        database: The files.
        engine: What searches.
        look_up: Asks arXiv for papers that the files lack; None to leave them out.
        reopen: Function and arguments that give this library again, for pickles.

    Attributes:
        identity: Text that changes with the papers and with how they are searched.
        blocking: True when a search or a look-up waits for the internet.
    """

    def __init__(
        self,
        database: PaperDatabase,
        engine: SearchEngine,
        *,
        look_up: ArxivSearch | None = None,
        reopen: Reopen | None = None,
    ) -> None:
        self.database, self.engine = database, engine
        self._look_up, self._reopen = look_up, reopen
        asked = "" if look_up is None else f"-{look_up.identity}"
        self.identity = f"pasa-{database.digest}-{engine.identity}{asked}"
        self.blocking = engine.blocking or look_up is not None
        self._known: OrderedDict[str, Paper | None] = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, memo: Mapping[int, Any]) -> PasaLibrary:
        return self

    def __reduce__(self) -> Any:
        if self._reopen is None:
            return super().__reduce__()
        return _same_library, (self.identity, *self._reopen)

    def find(self, paper_id: str) -> Paper | None:
        """See :meth:`~turngym.envs.paper_crawler.papers.Library.find`.

        Raises:
            EnvFault: A damaged member of the zip, or arXiv gives no answer.
        """
        paper_id = plain_id(paper_id)
        stored = self.database.find(paper_id)
        if stored is not None:
            return stored.paper
        return self._outside([paper_id]).get(paper_id)

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """See :meth:`~turngym.envs.paper_crawler.papers.Library.search`.

        Raises:
            EnvFault: The engine gives no answer.
        """
        found = self.engine.search(requests)
        strange = dict.fromkeys(i for ids in found for i in ids if i not in self.database)
        outside = self._outside(list(strange))
        return [[i for i in ids if i not in strange or i in outside] for ids in found]

    def _outside(self, ids: list[str]) -> dict[str, Paper]:
        """Papers that the files lack and arXiv has; asked for together and remembered."""
        if self._look_up is None or not ids:
            return {}
        with self._lock:
            known = {i: self._known[i] for i in ids if i in self._known}
        if missing := [i for i in ids if i not in known]:
            fresh = self._look_up.papers(missing)
            known |= {i: fresh.get(i) for i in missing}
            with self._lock:
                self._known.update((i, known[i]) for i in missing)
                while len(self._known) > _LOOKED_UP:
                    self._known.popitem(last=False)
        return {i: paper for i, paper in known.items() if paper is not None}


def _same_library(
    identity: str, reopen: Callable[..., PasaLibrary], arguments: tuple[Any, ...]
) -> PasaLibrary:
    """The library of a pickle.

    Raises:
        DataError: Its files are others than when it was pickled.
    """
    library = reopen(*arguments)
    if library.identity != identity:
        raise DataError(
            f"{library.database.titles.path.parent}: the papers or the index have changed since "
            "this environment was pickled."
        )
    return library
