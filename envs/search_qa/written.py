"""A question as it is written in a row of a file, whichever of the formats the row is in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..rows import checked, clean, row_id, text_of
from .questions import Question
from .rows import ANSWER_COLUMNS, rows_of
from .text import as_question


@dataclass(frozen=True, slots=True)
class Written:
    """One row.

    Attributes:
        id: The row's own id; empty without one.
        source: The data set that the row names; empty without one.
        question: The question.
        where: File and line or row.
    """

    id: str
    source: str
    question: Question
    where: str


def read_questions(path: Path) -> Iterator[Written]:
    """The questions of a file in its order.

    Raises:
        UnknownNameError: An unknown file ending.
        DataError: A file that does not hold what it should; says file and line or row.
        MissingExtraError: A parquet file without pyarrow.
    """
    where = ""
    for where, row in rows_of(path, "questions"):
        text = as_question(_question_text(row, where))
        yield Written(
            id=row_id(row, where) if row.get("id") is not None else "",
            source=_source(row, where),
            question=Question(text=text, answers=_answers(row, where)),
            where=where,
        )
    if not where:
        raise DataError(f"{path}: holds no question; expected one row each.")


def _source(row: Mapping[str, Any], where: str) -> str:
    """The row's data set; "/" separates parts of names elsewhere and becomes "_"."""
    given = row.get("data_source")
    if given is None or given == "":
        return ""
    return checked(given, "data_source", where).strip().replace("/", "_")


def _question_text(row: Mapping[str, Any], where: str) -> str:
    if row.get("question") is not None:
        return text_of(row, "question", where)
    extra = row.get("extra_info")
    if isinstance(extra, Mapping) and extra.get("question") is not None:
        return text_of(extra, "question", where)
    prompt = row.get("prompt")
    for message in reversed(prompt if isinstance(prompt, list) else []):
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = text_of(message, "content", where)
            return checked(content.rpartition("Question:")[2], "question", where)
    raise DataError(
        f"{where}: no question; expected a column question, extra_info.question, or a prompt with "
        f"a user message. Columns: {', '.join(map(str, row))}."
    )


def _answers(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    given = next((row[c] for c in ANSWER_COLUMNS if row.get(c) is not None), None)
    if given is None:
        model = row.get("reward_model")
        given = model.get("ground_truth") if isinstance(model, Mapping) else None
        if isinstance(given, Mapping):
            given = given.get("target")
    if given is None:
        raise DataError(
            f"{where}: no answers; expected {', '.join(ANSWER_COLUMNS)} or "
            f"reward_model.ground_truth. Columns: {', '.join(map(str, row))}."
        )
    answers: list[str] = []
    for answer in given if isinstance(given, list) else [given]:
        if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
            raise DataError(f"{where}: answer {answer!r} is not text.")
        if text := clean(str(answer)).strip():
            answers.append(text)
    if not answers:
        raise DataError(f"{where}: no answers; expected at least one that is not empty.")
    return tuple(dict.fromkeys(answers))
