"""Rows of question and passage files: JSON lines, a JSON list, CSV, parquet.

Every row comes with the place that it was read from, for errors. Parquet is read batch by batch
and only in the columns that mean something here, so that no file is held whole.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ..errors import DataError, MissingExtraError, UnknownNameError

QUESTION_COLUMNS = ("question", "extra_info", "prompt")
"""Where a question may stand, the first that holds one counts."""
ANSWER_COLUMNS = ("golden_answers", "answers", "answer")
"""Where its accepted answers may stand, before Search-R1's ``reward_model``."""
_OTHER_COLUMNS = ("id", "data_source", "reward_model")
_BATCH = 1024
Rows = Iterator[tuple[str, Mapping[str, Any]]]


def rows_of(path: Path, where: str) -> Rows:
    """(place, row) of a file, by its ending.

    Args:
        path: The file.
        where: Who asks, for errors.

    Raises:
        UnknownNameError: An ending that does not exist.
        DataError: A file that does not hold what it should; says file and line or row.
        MissingExtraError: A parquet file without pyarrow.
    """
    if path.suffix not in READERS:
        raise UnknownNameError("file ending", path.suffix, READERS, f"{where} {path}")
    return READERS[path.suffix](path)


def json_rows(path: Path) -> Rows:
    """Objects, one a line; blank lines are skipped."""
    for where, line in lines_of(path):
        row = json_row(line, where)
        if row is not None:
            yield where, row


def lines_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """(place, line) of a file; the first line without a byte order mark."""
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            yield f"{path}:{number}", line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def json_row(line: bytes, where: str) -> Mapping[str, Any] | None:
    """The object in a line; None in a blank one.

    Raises:
        DataError: The line is no object.
    """
    try:
        text = line.decode("utf-8")
        if not text.strip():
            return None
        row = json.loads(text)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason}).") from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: not JSON ({error.msg} at column {error.colno}); expected one object per "
            "line."
        ) from None
    except RecursionError:
        raise DataError(f"{where}: nested too deeply; expected one object per line.") from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: a {type(row).__name__}; expected a JSON object per line.")
    return row


def _list_rows(path: Path) -> Rows:
    with _opened(path) as file:
        try:
            items = json.loads(file.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 ({error.reason}).") from None
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}:{error.lineno}: not JSON ({error.msg} at column {error.colno}); expected "
                "a list of objects. One object per line is a .jsonl file."
            ) from None
    if not isinstance(items, list):
        raise DataError(f"{path}: a {type(items).__name__}; expected a list of objects.")
    for number, row in enumerate(items):
        where = f"{path}: item {number}"
        if not isinstance(row, dict):
            raise DataError(f"{where}: a {type(row).__name__}; expected a JSON object.")
        yield where, row


def _csv_rows(path: Path) -> Rows:
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = list(reader.fieldnames or ())
            _check_columns(names, f"{path}:1", "a first line that names the columns")
            if len(set(names)) != len(names):
                raise DataError(f"{path}:1: columns {names}; expected names of their own.")
            for row in reader:
                line = reader.line_num
                yield f"{path}:{line}", _csv_row(row, f"{path}:{line}")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8.") from None
    except csv.Error as error:
        raise DataError(
            f"{path}: after line {line}: not CSV ({error}); expected cells separated by commas, "
            'those that hold a comma, a quote or a line break within double quotes ("" for ").'
        ) from None


def _csv_row(row: Mapping[Any, Any], where: str) -> Mapping[str, Any]:
    if None in row or None in row.values():
        cells = sum(v is not None for k, v in row.items() if k is not None)
        cells += len(row.get(None, ()))
        named = sum(k is not None for k in row)
        raise DataError(
            f"{where}: {cells} cells; expected {named}, one per column. A cell that holds a comma "
            "stands within double quotes."
        )
    return {k: _several(v, where) if k in ANSWER_COLUMNS else v for k, v in row.items()}


def _several(cell: str, where: str) -> list[Any]:
    """The answers of a cell: a JSON list, or texts separated by ``|``."""
    if not cell.lstrip().startswith("["):
        return cell.split("|")
    try:
        return json.loads(cell)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: the answers {cell!r} begin like a JSON list and are none ({error.msg} at "
            f'column {error.colno}); expected ["one", "two"] or one|two.'
        ) from None


def _parquet_rows(path: Path) -> Rows:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("Reading parquet files", "pyarrow", "data") from None
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_columns(names, str(path), "a parquet file")
            known = (*QUESTION_COLUMNS, *ANSWER_COLUMNS, *_OTHER_COLUMNS)
            wanted = [name for name in names if name in known]
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                for row in batch.to_pylist():
                    yield f"{path}: row {number}", row
                    number += 1
    except (OSError, pyarrow.ArrowException) as error:
        raise unreadable(path, error) from None


READERS = {
    ".jsonl": json_rows,
    ".parquet": _parquet_rows,
    ".csv": _csv_rows,
    ".json": _list_rows,
}
"""How a file is read, by its ending."""


def _check_columns(names: Iterable[str], where: str, what: str) -> None:
    """Refuse a file without a column of questions or one of answers."""
    given = list(names)
    for kind, known in (
        ("questions", QUESTION_COLUMNS),
        ("answers", (*ANSWER_COLUMNS, "reward_model")),
    ):
        if not any(name in given for name in known):
            raise DataError(
                f"{where}: no column of {kind}; expected {what} with one of {', '.join(known)}. "
                f"Columns: {', '.join(given) or 'none'}. Rename the one that holds the {kind}."
            )


def unreadable(path: Path, error: BaseException) -> DataError:
    """The error of a file that cannot be read."""
    reason = getattr(error, "strerror", None) or str(error)
    return DataError(f"{path}: cannot be read ({reason}).")


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None


# ---------------------------------------------------------------- parts of a row


def text_of(row: Mapping[str, Any], column: str, where: str) -> str:
    """The text in a column, which must hold some."""
    if column not in row:
        raise DataError(
            f"{where}: column {column!r} is missing. Columns: {', '.join(map(str, row)) or 'none'}."
        )
    return checked(row[column], column, where)


def checked(value: object, column: str, where: str) -> str:
    """The value, which must be text that is not blank."""
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} is {value!r}; expected text.")
    if not value.strip():
        raise DataError(f"{where}: {column} is empty.")
    return clean(value)


def clean(text: str) -> str:
    """Text without lone surrogates, which JSON can smuggle in and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def row_id(row: Mapping[str, Any], where: str) -> str:
    """The row's id as text."""
    value = row.get("id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DataError(f"{where}: id is {value!r}; expected text or an integer.")
    return clean(str(value))


def claim(ids: dict[str, str], named: str, where: str) -> None:
    """Note an id and where it was used; refuse one that was used before."""
    if named in ids:
        raise DataError(f"{where}: id {named!r} was used before, at {ids[named]}.")
    ids[named] = where
