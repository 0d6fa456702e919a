"""PaSa's papers and a search engine as the library of PaperCrawler-v0, opened from settings."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from ...core.errors import BadValueError, DataError, UnknownNameError
from ...core.fork import Shared
from ...core.settings import check_integer, check_settings
from ...tools.retrieval.index.factory import open_index
from ...tools.retrieval.index.manifest import Manifest, read_manifest
from ..papers import Paper, Search
from .arxiv import ArxivSearch
from .arxiv_ids import strip_version
from .database import PaperDatabase
from .engines import LocalSearch, SearchEngine, load_title_index
from .layout import find_database_files
from .queries import RequestFiles, RowRules, open_queries
from .serper import SerperSearch

SEARCHES = ("local", "serper", "arxiv")
"""The engines by name; only the first one stays on this machine."""
_PAPER_SETTINGS = ("kept", "look_up")
Settings = Mapping[str, Any] | None
_LOOKED_UP = 4096


class PasaLibrary(Shared):
    """Papers of PaSa's files, found by any engine; shared by copies of the environment.

    An engine on the internet also finds papers that the files lack. They are left out, or, with
    ``look_up``, taken from arXiv's records: then they have no sections.

    Args:
        database: The files.
        engine: What searches.
        look_up: Asks arXiv for papers that the files lack; None to leave them out.
        opened_with: What :func:`open_library` opened it with, for pickles.

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
        opened_with: tuple[str, str, dict[str, Any], dict[str, Any]] | None = None,
    ) -> None:
        self.database, self.engine = database, engine
        self._look_up, self._opened_with = look_up, opened_with
        asked = "" if look_up is None else f"-{look_up.identity}"
        self.identity = f"pasa-{database.digest}-{engine.identity}{asked}"
        self.blocking = engine.blocking or look_up is not None
        self._known: OrderedDict[str, Paper | None] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> Any:
        if self._opened_with is None:
            return super().__reduce__()
        return _reopen, (self.identity, *self._opened_with)

    def find(self, paper_id: str) -> Paper | None:
        """See :meth:`~turngym.envs.paper_crawler.papers.Library.find`.

        Raises:
            EnvFault: A damaged member of the zip, or arXiv gives no answer.
        """
        paper_id = strip_version(paper_id)
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


def open_real(
    *,
    data: Any,
    papers: str | Path,
    search: str = "local",
    search_settings: Settings = None,
    data_settings: Settings = None,
    papers_settings: Settings = None,
) -> tuple[RequestFiles, PasaLibrary]:
    """The tasks in query files, and the library of a paper database.

    Args:
        data: Query file, folder, or ``{split: file}``; see :func:`~.layout.query_files`.
        papers: Folder with ``id2paper.json`` and the zip.
        search: ``"local"``, ``"serper"`` or ``"arxiv"``.
        search_settings: Of the engine: ``{"index": folder}`` for the local one (made by ``turngym
            index build`` over passages whose ids are arXiv ids; left out, titles are searched), or
            the attributes of :class:`~.serper.SerperSearch` or :class:`~.arxiv.ArxivSearch`.
        data_settings: The attributes of :class:`~.queries.RowRules`.
        papers_settings: ``kept``, most papers that stay in memory; ``look_up``, settings of an
            :class:`~.arxiv.ArxivSearch` that is asked for papers that the files lack ({} for its
            own settings; left out, such papers are never found).

    Raises:
        UnknownNameError: A split, an engine or a setting that does not exist.
        BadValueError: A value out of range.
        DataError: Files that are missing or do not hold what they should.
    """
    rules = _check_mapping(data_settings, "data_settings")
    check_settings(RowRules, rules)
    tasks = open_queries(data, RowRules(**rules))
    library = open_library(
        papers, search, search_settings=search_settings, papers_settings=papers_settings
    )
    return tasks, library


def open_library(
    papers: str | Path,
    search: str = "local",
    *,
    search_settings: Settings = None,
    papers_settings: Settings = None,
) -> PasaLibrary:
    """The library alone; one per process for the same settings. See :func:`open_real`.

    Raises:
        UnknownNameError: An engine or a setting that does not exist.
        BadValueError: A value out of range.
        DataError: Files that are missing or do not hold what they should.
    """
    if search not in SEARCHES:
        raise UnknownNameError("search engine", search, SEARCHES, "PaperCrawler search")
    asked = _check_mapping(search_settings, "search_settings")
    kept = _check_mapping(papers_settings, "papers_settings")
    for name in kept:
        if name not in _PAPER_SETTINGS:
            raise UnknownNameError("setting", name, _PAPER_SETTINGS, "papers_settings")
    files = find_database_files(papers)
    stamps: list[object] = [_stamp_file(path) for path in (files.titles, files.papers)]
    if asked.get("index") is not None and search == SEARCHES[0]:
        stamps.append(_read_manifest(asked).identity)
    folder = str(Path(papers).expanduser().absolute())
    return _open(
        folder, search, _serialise_settings(asked), _serialise_settings(kept), tuple(stamps)
    )


@lru_cache(maxsize=4)
def _open(
    folder: str,
    search: str,
    search_settings: str,
    papers_settings: str,
    stamps: tuple[object, ...],  # noqa: ARG001 - part of the key
) -> PasaLibrary:
    asked, kept = json.loads(search_settings), json.loads(papers_settings)
    database = _open_database(folder, kept.get("kept", 4096))
    look_up = kept.get("look_up")
    return PasaLibrary(
        database,
        _make_engine(search, asked, database),
        look_up=None if look_up is None else _make_client(ArxivSearch, look_up, "look_up"),
        opened_with=(folder, search, asked, kept),
    )


def _reopen(
    identity: str, folder: str, search: str, asked: Mapping[str, Any], kept: Mapping[str, Any]
) -> PasaLibrary:
    """Return the library of a pickle.

    Raises:
        DataError: Its files are others than when it was pickled.
    """
    library = open_library(folder, search, search_settings=asked, papers_settings=kept)
    if library.identity != identity:
        raise DataError(
            f"{folder}: the papers or the index have changed since this environment was pickled."
        )
    return library


def _open_database(folder: str, kept: Any) -> PaperDatabase:
    check_integer("kept", kept, "papers_settings", min=1)
    files = find_database_files(folder)
    return PaperDatabase(files.titles, files.papers, kept=kept)


def _make_engine(search: str, settings: Mapping[str, Any], database: PaperDatabase) -> SearchEngine:
    if search == "serper":
        return _make_client(SerperSearch, settings, "search_settings")
    if search == "arxiv":
        return _make_client(ArxivSearch, settings, "search_settings")
    for name in settings:
        if name != "index":
            raise UnknownNameError("setting", name, ("index",), "search_settings of local")
    if settings.get("index") is None:
        made = load_title_index(database.titles)
        return LocalSearch(made, database.titles.date, made.identity)
    identity = _read_manifest(settings).identity
    return LocalSearch(open_index(settings["index"]), database.titles.date, identity)


def _read_manifest(settings: Mapping[str, Any]) -> Manifest:
    """The facts of the index that the local engine searches.

    Raises:
        BadValueError: Something else than a folder was named.
        DataError: It is no index.
    """
    index = settings["index"]
    if not isinstance(index, (str, Path)) or not str(index):
        raise BadValueError(
            f"search_settings: index is {index!r}; expected the folder of an index, made by "
            "turngym index build."
        )
    return read_manifest(index)


def _make_client(kind: type[Any], settings: Any, where: str) -> Any:
    given = _check_mapping(settings, where)
    check_settings(kind, given)
    return kind(**given)


def _check_mapping(given: Any, name: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise BadValueError(f"PaperCrawler {name}: is {given!r}; expected {{name: value}}.")
    return dict(given)


def _serialise_settings(settings: Mapping[str, Any]) -> str:
    """Settings as text, so that equal ones are one library.

    Raises:
        BadValueError: They hold something else than plain values.
    """
    try:
        return json.dumps(settings, sort_keys=True, default=_encode_path)
    except (TypeError, ValueError):
        raise BadValueError(
            f"PaperCrawler settings: {sorted(settings)} hold something else than texts, numbers, "
            "lists and objects."
        ) from None


def _encode_path(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError


def _stamp_file(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size
