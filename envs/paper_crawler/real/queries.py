"""AutoScholarQuery and RealScholarQuery: rows of requests and answers as a source of tasks.

One JSON object per line: ``qid``, ``question``, ``answer`` (titles), ``answer_arxiv_id`` (ids, in
the same order) and ``source_meta.published_time`` (``YYYYMMDD``). Ids lose their version. An
answer whose title has the letters of an earlier one, or its id, is that one again and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import DataError, UnknownNameError
from ...core.fork import Shared
from ...core.settings import check_integer
from ...core.tasks import Task
from ...search_qa.data import dataset_name
from ...utils.file_rows import check_text, claim_id, get_text, make_read_error, read_rows
from ..papers import Request, join_lines, make_title_key
from .arxiv_ids import strip_version
from .layout import find_query_files

_UNANSWERED = ("refuse", "leave_out")
_DAY = "%Y%m%d"
_LONGEST_BACK = 36_500


@dataclass(frozen=True, kw_only=True)
class RowRules:
    """How rows become tasks.

    Attributes:
        unanswered: What a row with an empty list of answers is: ``"refuse"``, an error, or
            ``"leave_out"``, no task but counted. It could only score 0.
        days_back: Days before the row's own that the request is set at; PaSa's program takes 7.

    Raises:
        UnknownNameError: Another word for ``unanswered``.
        BadValueError: ``days_back`` is no number of days.
    """

    unanswered: str = "refuse"
    days_back: int = 0

    def __post_init__(self) -> None:
        if self.unanswered not in _UNANSWERED:
            raise UnknownNameError(
                "choice", self.unanswered, _UNANSWERED, "data_settings, unanswered"
            )
        check_integer("days_back", self.days_back, "data_settings", min=0, max=_LONGEST_BACK)


class QueryRow(NamedTuple):
    """One row.

    Attributes:
        qid: The row's own id.
        request: What it asks; without answers where the row has none.
        repeated: Answers that were dropped as repetitions.
    """

    qid: str
    request: Request
    repeated: int


def read_row(row: Mapping[str, Any], where: str, rules: RowRules) -> QueryRow:
    """The request in a row.

    Args:
        row: The JSON object.
        where: File and line, for errors.
        rules: How rows become tasks.

    Raises:
        DataError: Something is missing, of the wrong type, or does not fit.
    """
    qid = get_text(row, "qid", where).strip()
    text = join_lines(get_text(row, "question", where))
    titles, ids = _read_texts(row, "answer", where), _read_texts(row, "answer_arxiv_id", where)
    if len(titles) != len(ids):
        raise DataError(
            f"{where}: {len(titles)} titles in answer and {len(ids)} ids in answer_arxiv_id; "
            "expected one id per title."
        )
    answers = _drop_repeats(titles, ids)
    if not answers and rules.unanswered == "refuse":
        raise DataError(
            f"{where}: the query {qid!r} has no answers; expected at least one. To leave such "
            "queries out: data_settings={'unanswered': 'leave_out'}."
        )
    request = Request(
        text=text,
        date=_read_date(row, where, rules.days_back),
        answers=tuple(answers),
        titles=tuple(answers.values()),
    )
    return QueryRow(qid, request, len(ids) - len(answers))


def _drop_repeats(titles: list[str], ids: list[str]) -> dict[str, str]:
    """Title by id, each paper once, the first one kept."""
    kept: dict[str, str] = {}
    keys: set[str] = set()
    for title, given in zip(titles, ids, strict=True):
        key, plain = make_title_key(title), strip_version(given)
        if plain in kept or key in keys:
            continue
        kept[plain] = join_lines(title)
        if key:
            keys.add(key)
    return kept


def _read_texts(row: Mapping[str, Any], column: str, where: str) -> list[str]:
    if column not in row:
        raise DataError(
            f"{where}: column {column!r} is missing. Columns: {', '.join(map(str, row)) or 'none'}."
        )
    given = row[column]
    if not isinstance(given, list):
        raise DataError(f"{where}: {column} is {given!r}; expected a list of texts.")
    return [check_text(item, f"{column}[{i}]", where) for i, item in enumerate(given)]


def _read_date(row: Mapping[str, Any], where: str, days_back: int) -> int:
    meta = row.get("source_meta")
    if not isinstance(meta, Mapping):
        raise DataError(
            f"{where}: source_meta is {meta!r}; expected an object with published_time."
        )
    given = meta.get("published_time")
    day = _read_day(given) if isinstance(given, str) else None
    if day is None:
        raise DataError(
            f"{where}: source_meta.published_time is {given!r}; expected a day as '20230614'."
        )
    try:
        return int((day - timedelta(days=days_back)).strftime("%Y%m%d"))
    except OverflowError:
        raise DataError(f"{where}: {given} has no day {days_back} days before it.") from None


def _read_day(text: str) -> date | None:
    if len(text) != 8 or not (text.isascii() and text.isdigit()):
        return None
    try:
        return datetime.strptime(text, _DAY).date()
    except ValueError:
        return None


Stamp = tuple[int, int]


class RequestFiles(Shared):
    """Tasks of query files, a file per split; their ids are the rows' ``qid``.

    Copies and forks share it; a pickle carries paths and reads them again.

    Args:
        files: The file of each split.
        rules: How rows become tasks.

    Attributes:
        left_out: Rows without answers per split, which became no task.
        repeated: Answers per split that were dropped as repetitions of another one of their row.

    Raises:
        DataError: A file that does not hold what it should, an id used twice, or no query.
    """

    def __init__(self, files: Mapping[str, Path], rules: RowRules) -> None:
        self._files = {split: (path, _stamp_file(path)) for split, path in files.items()}
        self._rules = rules
        self._rows: dict[str, list[QueryRow]] = {}
        self._places: dict[str, dict[str, int]] = {}
        self.left_out: dict[str, int] = {}
        self.repeated: dict[str, int] = {}
        ids: dict[str, str] = {}
        for split, (path, stamp) in self._files.items():
            rows = _read(path, stamp, rules)
            for where, row in rows:
                claim_id(ids, row.qid, where)
            kept = [row for _, row in rows if row.request.answers]
            if not rows:
                raise DataError(f"{path}: holds no query; expected one JSON object per line.")
            if not kept:
                raise DataError(
                    f"{path}: all {len(rows)} queries are without answers and left out; expected "
                    "at least one that has some."
                )
            self._rows[split] = kept
            self._places[split] = {row.qid: i for i, row in enumerate(kept)}
            self.left_out[split] = len(rows) - len(kept)
            self.repeated[split] = sum(row.repeated for row in kept)

    def __reduce__(self) -> Any:
        return _reopen, (self._files, self._rules)

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return {split: len(rows) for split, rows in self._rows.items()}

    def task(self, split: str, index: int) -> Task[Request]:
        """The request at ``index``."""
        row = self._rows[split][index]
        return Task(row.qid, split, index, row.request, dataset_name(self._files[split][0]))

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._places[split].get(task_id)


def open_queries(data: Any, rules: RowRules | None = None) -> RequestFiles:
    """The queries in files or folders; see :func:`~.layout.query_files`.

    Raises:
        UnknownNameError: A split that does not exist.
        BadValueError: Something else than paths.
        DataError: Files that are missing or do not hold what they should.
    """
    return RequestFiles(find_query_files(data), RowRules() if rules is None else rules)


def _reopen(files: Mapping[str, tuple[Path, Stamp]], rules: RowRules) -> RequestFiles:
    """The queries of a pickle.

    Raises:
        DataError: A file has changed since.
    """
    for path, stamp in files.values():
        if _stamp_file(path) != stamp:
            raise DataError(f"{path}: the queries have changed since they were pickled.")
    return RequestFiles({split: path for split, (path, _) in files.items()}, rules)


def _stamp_file(path: Path) -> Stamp:
    try:
        stat = path.stat()
    except OSError as error:
        raise make_read_error(path, error) from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=8)
def _read(
    path: Path,
    stamp: Stamp,  # noqa: ARG001 - part of the key
    rules: RowRules,
) -> tuple[tuple[str, QueryRow], ...]:
    """(place, row) of a file; read once per process."""
    return tuple((where, read_row(row, where, rules)) for where, row in read_rows(path))
