"""Rows of AutoScholarQuery and RealScholarQuery: a request and the papers that answer it.

One JSON object per line: ``qid``, ``question``, ``answer`` (titles), ``answer_arxiv_id`` (ids, in
the same order) and ``source_meta.published_time`` (``YYYYMMDD``). Ids lose their version. An
answer whose title has the letters of an earlier one, or its id, is that one again and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from ...errors import BadValueError, DataError, UnknownNameError
from ...rows import checked, text_of
from ..papers import Request
from ..titles import one_line, title_key
from .arxiv_ids import plain_id

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
        days = self.days_back
        whole = isinstance(days, int) and not isinstance(days, bool)
        if not whole or not 0 <= days <= _LONGEST_BACK:
            raise BadValueError(
                f"data_settings: days_back is {days!r}; expected a number of days from 0."
            )


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
    qid = text_of(row, "qid", where).strip()
    text = one_line(text_of(row, "question", where))
    titles, ids = _texts(row, "answer", where), _texts(row, "answer_arxiv_id", where)
    if len(titles) != len(ids):
        raise DataError(
            f"{where}: {len(titles)} titles in answer and {len(ids)} ids in answer_arxiv_id; "
            "expected one id per title."
        )
    answers = _distinct(titles, ids)
    if not answers and rules.unanswered == "refuse":
        raise DataError(
            f"{where}: the query {qid!r} has no answers; expected at least one. To leave such "
            "queries out: data_settings={'unanswered': 'leave_out'}."
        )
    request = Request(
        text=text,
        date=_date(row, where, rules.days_back),
        answers=tuple(answers),
        titles=tuple(answers.values()),
    )
    return QueryRow(qid, request, len(ids) - len(answers))


def _distinct(titles: list[str], ids: list[str]) -> dict[str, str]:
    """Title by id, each paper once, the first one kept."""
    kept: dict[str, str] = {}
    keys: set[str] = set()
    for title, given in zip(titles, ids, strict=True):
        key, plain = title_key(title), plain_id(given)
        if plain in kept or key in keys:
            continue
        kept[plain] = one_line(title)
        if key:
            keys.add(key)
    return kept


def _texts(row: Mapping[str, Any], column: str, where: str) -> list[str]:
    if column not in row:
        raise DataError(
            f"{where}: column {column!r} is missing. Columns: {', '.join(map(str, row)) or 'none'}."
        )
    given = row[column]
    if not isinstance(given, list):
        raise DataError(f"{where}: {column} is {given!r}; expected a list of texts.")
    return [checked(item, f"{column}[{i}]", where) for i, item in enumerate(given)]


def _date(row: Mapping[str, Any], where: str, days_back: int) -> int:
    meta = row.get("source_meta")
    if not isinstance(meta, Mapping):
        raise DataError(
            f"{where}: source_meta is {meta!r}; expected an object with published_time."
        )
    given = meta.get("published_time")
    day = _day(given) if isinstance(given, str) else None
    if day is None:
        raise DataError(
            f"{where}: source_meta.published_time is {given!r}; expected a day as '20230614'."
        )
    try:
        return int((day - timedelta(days=days_back)).strftime("%Y%m%d"))
    except OverflowError:
        raise DataError(f"{where}: {given} has no day {days_back} days before it.") from None


def _day(text: str) -> date | None:
    if len(text) != 8 or not (text.isascii() and text.isdigit()):
        return None
    try:
        return datetime.strptime(text, _DAY).date()
    except ValueError:
        return None
