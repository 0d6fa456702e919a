"""What a folder of PaSa's files holds, what it lacks, and what in it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...core.errors import BadValueError, DataError, EnvFault
from ...tools.retrieval.index.progress import Progress, ignore_progress
from ...utils.file_rows import parse_row, read_lines
from .database import PaperDatabase, read_record
from .layout import AUTO, DATABASE, LAYOUT, Part, find_data_folder, find_zip
from .queries import QueryRow, RowRules, read_row

SAMPLE = 1_000
_MAX_MESSAGES = 20
_TICK = 500
_KINDS = ("queries", "titles", "papers", "examples")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the layout.

    Attributes:
        part: What it is.
        path: Where it is, or would be.
        size: Bytes; None when it is missing.
    """

    part: Part
    path: Path
    size: int | None

    @property
    def name(self) -> str:
        """The last two parts of its path."""
        return "/".join(self.path.parts[-2:])


@dataclass(slots=True)
class Damage:
    """What is wrong with rows or members: how many, and the first of them in words."""

    count: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, error: Exception) -> None:
        """Count one more."""
        self.count += 1
        if len(self.messages) < _MAX_MESSAGES:
            self.messages.append(str(error))


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of a file of queries, or of examples.

    Attributes:
        name: The file and its folder.
        rows: Rows that can be used.
        unanswered: Queries without answers, which cannot.
        damaged: Rows that cannot be read.
        answers: Answers of all queries, repetitions left out.
        repeated: Answers that repeat one of their row.
        with_title: Answers whose id is in ``id2paper.json``.
        with_member: Those whose title has a member in the zip.
    """

    name: str
    rows: int
    unanswered: int
    damaged: Damage
    answers: int = 0
    repeated: int = 0
    with_title: int = 0
    with_member: int = 0


@dataclass(frozen=True, slots=True)
class FoundPapers:
    """The paper database.

    Attributes:
        papers: Ids in ``id2paper.json``.
        with_member: Those whose title has a member in the zip.
        undated: Ids that tell no date; such papers are never found.
        shared_titles: Papers that citations never lead to: an earlier one has their letters.
        members: Members of the zip.
        repeated: Members that a later one of their name hides.
        checked: Members that were read.
        damaged: Members that cannot be used, among those.
        sections: Sections of the members that were read.
        cited: Their citations.
        resolved: Those that belong to a paper of ``id2paper.json``.
    """

    papers: int
    with_member: int
    undated: int
    shared_titles: int
    members: int
    repeated: int
    checked: int
    damaged: Damage
    sections: int
    cited: int
    resolved: int


@dataclass(frozen=True, slots=True)
class PapersReport:
    """What a folder holds.

    Attributes:
        folder: PaSa's folder ``data``.
        files: Of the layout, there or not.
        queries: Rows of the files of queries that are there.
        examples: Rows of the files of examples that are there.
        papers: The database; None when a file of it is missing or cannot be opened.
        faults: What is wrong with whole files.
    """

    folder: Path
    files: tuple[FoundFile, ...]
    queries: tuple[FoundRows, ...]
    examples: tuple[FoundRows, ...]
    papers: FoundPapers | None
    faults: tuple[str, ...]

    @property
    def damaged(self) -> tuple[str, ...]:
        """Everything that is wrong, in words; at most some from each file."""
        messages = [
            text for found in (*self.queries, *self.examples) for text in found.damaged.messages
        ]
        inner = self.papers.damaged.messages if self.papers is not None else []
        return (*self.faults, *messages, *inner)


def check_papers(
    folder: str | Path,
    *,
    every: bool = False,
    sample: int = SAMPLE,
    progress: Progress = ignore_progress,
) -> PapersReport:
    """Look through a folder of PaSa's layout; nothing in it is changed.

    All rows are read, of the zip's members some evenly spread ones or all.

    Args:
        folder: PaSa's folder ``data`` or the one around it.
        every: Read every member of the zip: minutes for half a million.
        sample: Members to read otherwise.
        progress: Told how far it is.

    Raises:
        DataError: There is no such folder.
        BadValueError: ``sample`` is below 1.
    """
    if sample < 1:
        raise BadValueError(f"check_papers: sample is {sample}; expected at least 1.")
    outer = Path(folder).expanduser().absolute()
    if not outer.is_dir():
        raise DataError(f"{outer}: no such folder; expected one with PaSa's files.")
    place = find_data_folder(outer)
    files = tuple(_find_file(place, part) for part in LAYOUT)
    present = [found for found in files if found.size is not None]
    there = {kind: [f for f in present if f.part.kind == kind] for kind in _KINDS}
    faults: list[str] = []
    database = None
    if there["titles"] and there["papers"]:
        try:
            database = PaperDatabase(there["titles"][0].path, there["papers"][0].path)
        except DataError as error:
            faults.append(str(error))
    queries = [_check_queries(f, database, progress) for f in there["queries"]]
    examples = [_check_examples(f, progress) for f in there["examples"]]
    papers = None
    if database is not None:
        papers = _check_papers(database, None if every else sample, progress)
    return PapersReport(place, files, tuple(queries), tuple(examples), papers, tuple(faults))


def _find_file(folder: Path, part: Part) -> FoundFile:
    """The file of a part: in its place, or right in the folder where that is how it is given."""
    path = folder / part.path
    if part.path.startswith((AUTO, DATABASE)) and not path.parent.is_dir():
        path = folder / path.name
    if part.kind == "papers" and not path.is_file():
        with suppress(DataError):
            path = find_zip(path.parent)
    if path.is_file():
        return FoundFile(part, path, path.stat().st_size)
    return FoundFile(part, folder / part.path, None)


def _check_queries(
    found: FoundFile, database: PaperDatabase | None, progress: Progress
) -> FoundRows:
    rules, damaged = RowRules(unanswered="leave_out"), Damage()
    seen: dict[str, str] = {}
    rows: list[QueryRow] = []
    unanswered = 0
    for where, line in _read_lines(found, progress):
        try:
            row = read_row(parse_row(line, where), where, rules)
            if row.qid in seen:
                raise DataError(f"{where}: id {row.qid!r} was used before, at {seen[row.qid]}.")
        except DataError as error:
            damaged.add(error)
            continue
        seen[row.qid] = where
        if row.request.answers:
            rows.append(row)
        else:
            unanswered += 1
    answers = [paper_id for row in rows for paper_id in row.request.answers]
    return FoundRows(
        name=found.name,
        rows=len(rows),
        unanswered=unanswered,
        damaged=damaged,
        answers=len(answers),
        repeated=sum(row.repeated for row in rows),
        with_title=0 if database is None else sum(i in database for i in answers),
        with_member=0 if database is None else sum(map(database.in_zip, answers)),
    )


def _check_examples(found: FoundFile, progress: Progress) -> FoundRows:
    damaged, rows = Damage(), 0
    for where, line in _read_lines(found, progress):
        try:
            if not isinstance(parse_row(line, where).get("messages"), list):
                raise DataError(f"{where}: messages is no list; expected a dialogue.")
        except DataError as error:
            damaged.add(error)
            continue
        rows += 1
    return FoundRows(found.name, rows, 0, damaged)


def _read_lines(found: FoundFile, progress: Progress) -> Iterator[tuple[str, bytes]]:
    done = 0
    for number, (where, line) in enumerate(read_lines(found.path)):
        if number % _TICK == 0:
            progress(found.name, done, found.size or 1)
        done += len(line)
        if line.strip():
            yield where, line
    progress(found.name, done, found.size or 1)


def _check_papers(database: PaperDatabase, sample: int | None, progress: Progress) -> FoundPapers:
    members, titles = database.members, database.titles
    places = members.places()
    if sample is not None and sample < len(places):
        places = [places[i] for i in np.linspace(0, len(places) - 1, sample).astype(int)]
    damaged = Damage()
    sections = cited = lost = 0
    for done, place in enumerate(places):
        if done % _TICK == 0:
            progress("members of the zip", done, len(places))
        try:
            name, raw = members.read(place)
            record = read_record(raw, f"{members.path}: member {name!r}")
        except EnvFault as error:
            damaged.add(error)
            continue
        sections += len(record.sections)
        for given in record.sections.values():
            cited += len(given)
            lost += database.cited_ids(given)[1]
    progress("members of the zip", len(places), len(places))
    return FoundPapers(
        papers=len(titles),
        with_member=database.with_member(),
        undated=titles.undated,
        shared_titles=titles.shared_keys,
        members=len(members),
        repeated=members.repeated,
        checked=len(places),
        damaged=damaged,
        sections=sections,
        cited=cited,
        resolved=cited - lost,
    )
