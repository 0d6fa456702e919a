"""Questions and passages that a user has, in the two published formats.

Questions (``data``), one row each, as JSON lines or parquet:

* FlashRAG: ``id``, ``question``, ``golden_answers`` (a string or a list);
* Search-R1: ``reward_model.ground_truth`` (a string, a list, or ``{"target": string or list}``) and
  the question in ``question``, in ``extra_info.question``, or after "Question:" in the last user
  message of ``prompt``.

``data`` is one file, which is the train split, or ``{split: file}`` for the splits train, dev and
test; to evaluate on a file write ``data={"test": "hotpotqa.jsonl"}``. A row without ``id`` is
called by its file's name and its number from 0.

Passages (``corpus``): JSON lines with ``id`` and ``contents``, whose first line is the title.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError, UnknownNameError
from ..retrieval import Bm25, Corpus
from ..tasks import SPLITS
from .questions import Question
from .text import as_question

_BLOCK_BYTES = 1 << 22
_ENDINGS = (".jsonl", ".parquet")
Rows = Iterator[tuple[str, Mapping[str, Any]]]


def load_questions(
    data: str | Path | Mapping[str, str | Path],
) -> dict[str, list[tuple[str, Question]]]:
    """(id, question) rows per split.

    Raises:
        UnknownNameError: A split or a file ending that does not exist.
        DataError: A file that does not hold what it should; says file and line or row.
        MissingExtraError: A parquet file without pyarrow.
    """
    files = data if isinstance(data, Mapping) else {SPLITS[0]: data}
    if not files:
        raise DataError("SearchQA data: no file was named; expected {split: file}.")
    for split in files:
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "SearchQA data")
    return {split: _questions(Path(files[split])) for split in SPLITS if split in files}


def load_corpus_index(path: str | Path) -> Bm25:
    """BM25 over a passage file; the index is cached by the file's content.

    Raises:
        DataError: A file that does not hold what it should; says file and line.
    """
    path = Path(path).resolve()
    try:
        stat = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    return _index(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _index(path: Path, changed_ns: int, size: int) -> Bm25:  # noqa: ARG001 - part of the key
    digest = _digest(path)
    return Bm25(_corpus(path), name=f"corpus-{digest}", reload=(_same_index, (path, digest)))


def _same_index(path: Path, digest: str) -> Bm25:
    """The index of a pickled environment.

    Raises:
        DataError: The file has changed since.
    """
    if _digest(path) != digest:
        raise DataError(f"{path}: the passages have changed since this environment was pickled.")
    return load_corpus_index(path)


def _corpus(path: Path) -> Corpus:
    ids: dict[str, str] = {}
    titles: list[str] = []
    texts: list[str] = []
    for where, row in _json_rows(path):
        contents = _text(row, "contents", where)
        _claim(ids, _row_id(row, where), where)
        title, _, text = contents.partition("\n")
        titles.append(title.strip())
        texts.append(text)
    if not ids:
        raise DataError(f"{path}: holds no passage; expected JSON lines with id and contents.")
    return Corpus(ids=list(ids), titles=titles, texts=texts)


def _questions(path: Path) -> list[tuple[str, Question]]:
    if path.suffix not in _ENDINGS:
        raise UnknownNameError("file ending", path.suffix, _ENDINGS, f"SearchQA data {path}")
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _json_rows(path)
    ids: dict[str, str] = {}
    questions: list[tuple[str, Question]] = []
    for number, (where, row) in enumerate(rows):
        named = _row_id(row, where) if row.get("id") is not None else f"{path.stem}/{number}"
        _claim(ids, named, where)
        text = as_question(_question_text(row, where))
        questions.append((named, Question(text=text, answers=_answers(row, where))))
    if not questions:
        raise DataError(f"{path}: holds no question; expected one row each.")
    return questions


def _question_text(row: Mapping[str, Any], where: str) -> str:
    if row.get("question") is not None:
        return _text(row, "question", where)
    extra = row.get("extra_info")
    if isinstance(extra, Mapping) and extra.get("question") is not None:
        return _text(extra, "question", where)
    prompt = row.get("prompt")
    for message in reversed(prompt if isinstance(prompt, list) else []):
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = _text(message, "content", where)
            return _checked(content.rpartition("Question:")[2], "question", where)
    raise DataError(
        f"{where}: no question; expected a column question, extra_info.question, or a prompt with "
        f"a user message. Columns: {', '.join(map(str, row))}."
    )


def _answers(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    given = row.get("golden_answers")
    if given is None:
        model = row.get("reward_model")
        given = model.get("ground_truth") if isinstance(model, Mapping) else None
        if isinstance(given, Mapping):
            given = given.get("target")
    if given is None:
        raise DataError(
            f"{where}: no answers; expected golden_answers or reward_model.ground_truth. "
            f"Columns: {', '.join(map(str, row))}."
        )
    answers: list[str] = []
    for answer in given if isinstance(given, list) else [given]:
        if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
            raise DataError(f"{where}: answer {answer!r} is not text.")
        if text := _clean(str(answer)).strip():
            answers.append(text)
    if not answers:
        raise DataError(f"{where}: no answers; expected at least one that is not empty.")
    return tuple(dict.fromkeys(answers))


def _text(row: Mapping[str, Any], column: str, where: str) -> str:
    if column not in row:
        raise DataError(
            f"{where}: column {column!r} is missing. Columns: {', '.join(map(str, row)) or 'none'}."
        )
    return _checked(row[column], column, where)


def _checked(value: object, column: str, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} is {value!r}; expected text.")
    if not value.strip():
        raise DataError(f"{where}: {column} is empty.")
    return _clean(value)


def _clean(text: str) -> str:
    """Text without lone surrogates, which JSON can smuggle in and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _row_id(row: Mapping[str, Any], where: str) -> str:
    value = row.get("id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DataError(f"{where}: id is {value!r}; expected text or an integer.")
    return _clean(str(value))


def _claim(ids: dict[str, str], named: str, where: str) -> None:
    if named in ids:
        raise DataError(f"{where}: id {named!r} was used before, at {ids[named]}.")
    ids[named] = where


def _json_rows(path: Path) -> Rows:
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        for number, line in enumerate(file, start=1):
            where = f"{path}:{number}"
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                row = json.loads(text) if text.strip() else None
            except UnicodeDecodeError as error:
                raise DataError(f"{where}: not UTF-8 ({error.reason}).") from None
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{where}: not JSON ({error.msg} at column {error.colno}); expected one object "
                    "per line."
                ) from None
            if not text.strip():
                continue
            if not isinstance(row, dict):
                raise DataError(
                    f"{where}: a {type(row).__name__}; expected a JSON object per line."
                )
            yield where, row


def _parquet_rows(path: Path) -> Rows:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("Reading parquet files", "pyarrow", "data") from None
    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise _unreadable(path, error) from None
    for number, row in enumerate(table.to_pylist()):
        yield f"{path}: row {number}", row


def _unreadable(path: Path, error: BaseException) -> DataError:
    reason = getattr(error, "strerror", None) or str(error)
    return DataError(f"{path}: cannot be read ({reason}).")


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
