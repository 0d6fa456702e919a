"""The paper database: titles by id, and each paper's record read from the zip on demand.

:func:`write_passages` writes it as a passage file, of which ``turngym index build`` makes an index.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ...core.errors import DataError, EnvFault
from ...tools.retrieval.index.progress import Progress, ignore_progress
from ...utils.disk_errors import disk_errors
from ...utils.file_rows import clean
from ..papers import Paper, join_lines, make_title_key
from .title_table import TitleTable
from .zip_members import Members


class Stored(NamedTuple):
    """A paper and what became of its citations.

    Attributes:
        paper: The paper.
        cited: Citations in its record.
        unresolved: Those whose title belongs to no paper of the database; they were dropped.
        in_zip: False for a paper of which only the title is known.
    """

    paper: Paper
    cited: int = 0
    unresolved: int = 0
    in_zip: bool = True


class Record(NamedTuple):
    """A paper's record as the zip has it; citations are titles."""

    title: str
    abstract: str
    sections: Mapping[str, list[str]]


class PaperDatabase:
    """Papers of ``id2paper.json`` and the zip; read-only, safe to share between threads.

    A paper whose title has no member in the zip has neither abstract nor sections. A citation is
    the paper whose title has its letters; of several such papers, the first one in
    ``id2paper.json``. A citation without a paper is dropped, one that comes twice in a section
    counts once. Papers may cite themselves and each other.

    Args:
        titles: ``id2paper.json``.
        papers: The zip.
        kept: Most papers that stay in memory once they were read, the latest ones.
    """

    def __init__(self, titles: Path, papers: Path, *, kept: int = 4096) -> None:
        self.titles, self.members = TitleTable(titles), Members(papers)
        self.digest = f"{self.titles.digest}-{self.members.digest}"
        self._kept = kept
        self._papers: OrderedDict[str, Stored] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.titles)

    def __contains__(self, paper_id: str) -> bool:
        return self.titles.row(paper_id) is not None

    def find(self, paper_id: str) -> Stored | None:
        """The paper of an id without version; None when ``id2paper.json`` lacks it.

        Raises:
            EnvFault: Its member in the zip is damaged; names file and member.
        """
        with self._lock:
            if (known := self._papers.get(paper_id)) is not None:
                self._papers.move_to_end(paper_id)
                return known
        row = self.titles.row(paper_id)
        if row is None:
            return None
        stored = self._read(row)
        with self._lock:
            self._papers[paper_id] = stored
            while len(self._papers) > self._kept:
                self._papers.popitem(last=False)
        return stored

    def in_zip(self, paper_id: str) -> bool:
        """True when the zip has a member for this paper."""
        row = self.titles.row(paper_id)
        if row is None:
            return False
        return self.members.place(make_title_key(self.titles.titles[row])) is not None

    def resolve(self, title: str) -> str | None:
        """Id of the paper with this title; None when there is none."""
        row = self.titles.row_of_key(make_title_key(title))
        return None if row is None else self.titles.ids[row]

    def with_member(self) -> int:
        """Number of papers that the zip has a member for."""
        return self.members.count_among(self.titles.key_hashes)

    def record(self, row: int) -> Record | None:
        """What the zip has of the paper at ``row`` of ``titles``; None without a member.

        Raises:
            EnvFault: The member is damaged.
        """
        key = make_title_key(self.titles.titles[row])
        place = self.members.place(key)
        if place is None:
            return None
        name, raw = self.members.read(place, key)
        return read_record(raw, f"{self.members.path}: member {name!r}")

    def _read(self, row: int) -> Stored:
        paper_id, date = self.titles.ids[row], int(self.titles.dates[row])
        record = self.record(row)
        if record is None:
            return Stored(Paper(paper_id, self.titles.titles[row], date=date), in_zip=False)
        found = {heading: self.cited_ids(cited) for heading, cited in record.sections.items()}
        paper = Paper(
            id=paper_id,
            title=record.title,
            abstract=record.abstract,
            date=date,
            sections={heading: ids for heading, (ids, _) in found.items()},
        )
        cited = sum(len(given) for given in record.sections.values())
        return Stored(paper, cited, sum(lost for _, lost in found.values()))

    def cited_ids(self, cited: list[str]) -> tuple[tuple[str, ...], int]:
        """Ids of cited titles, each once, and how many titles belong to no paper."""
        found = [self.resolve(title) for title in cited]
        ids = dict.fromkeys(paper_id for paper_id in found if paper_id is not None)
        return tuple(ids), found.count(None)


def read_record(raw: bytes, where: str) -> Record:
    """A member's content: an object with ``title``, ``abstract`` and ``sections``.

    ``abstract`` and ``sections`` may be null: nothing is known of them.

    Raises:
        EnvFault: It is something else.
    """
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise EnvFault(f"{where} is no JSON ({error}). Fetch the zip again.") from None
    if not isinstance(value, dict):
        raise EnvFault(f"{where} is a {type(value).__name__}; expected an object.")
    for name in ("title", "abstract", "sections"):
        if name not in value:
            raise EnvFault(f"{where} lacks {name!r}; it has {', '.join(value) or 'nothing'}.")
    title, abstract, sections = value["title"], value["abstract"], value["sections"]
    if not isinstance(title, str) or not title.strip():
        raise EnvFault(f"{where}: title is {_shorten(title)}; expected text.")
    if not isinstance(abstract, str | None):
        raise EnvFault(f"{where}: abstract is {_shorten(abstract)}; expected text.")
    return Record(
        join_lines(clean(title)), clean(abstract or "").strip(), _read_sections(sections, where)
    )


def _read_sections(given: Any, where: str) -> dict[str, list[str]]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise EnvFault(f"{where}: sections is {_shorten(given)}; expected an object.")
    sections: dict[str, list[str]] = {}
    for heading, cited in given.items():
        if not isinstance(cited, list) or not all(isinstance(title, str) for title in cited):
            raise EnvFault(
                f"{where}: section {_shorten(heading)} is {_shorten(cited)}; "
                "expected a list of titles."
            )
        sections.setdefault(join_lines(clean(heading)), []).extend(map(clean, cited))
    return sections


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


_TICK = 1_000


def write_passages(
    database: PaperDatabase, path: str | Path, progress: Progress = ignore_progress
) -> tuple[int, int]:
    """Write ``{"id", "title", "text"}`` per paper, the text being its abstract.

    Papers without a member, or with a damaged one, have no text.

    Args:
        database: The papers.
        path: The file; it must not exist.
        progress: Told how far it is.

    Returns:
        Papers that were written, and those of them with a damaged member.

    Raises:
        DataError: The file is there, or cannot be written.
    """
    out, damaged = Path(path), 0
    if out.exists():
        raise DataError(f"{out}: is there; name a new file, or remove it.")
    scratch = out.with_name(f".{out.name}-unfinished")
    with disk_errors(out.parent):
        try:
            with scratch.open("w", encoding="utf-8") as file:
                for row, paper_id in enumerate(database.titles.ids):
                    if row % _TICK == 0:
                        progress("papers", row, len(database))
                    title, text = database.titles.titles[row], ""
                    try:
                        record = database.record(row)
                        text = "" if record is None else record.abstract
                    except EnvFault:
                        damaged += 1
                    passage = {"id": paper_id, "title": title, "text": text}
                    file.write(json.dumps(passage, ensure_ascii=False) + "\n")
            scratch.replace(out)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    progress("papers", len(database), len(database))
    return len(database), damaged
