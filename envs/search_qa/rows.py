"""Rows of question files: JSON lines, a JSON list, CSV, parquet.

Every row comes with the place that it was read from, for errors. Parquet is read batch by batch
and only in the columns that mean something here, so that no file is held whole.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError, UnknownNameError
from ..rows import (
    Rows,
    as_object,
    json_rows,
    json_value,
    opened,
    unreadable,
    without_mark,
)

QUESTION_COLUMNS = ("question", "extra_info", "prompt")
"""Where a question may stand, the first that holds one counts."""
ANSWER_COLUMNS = ("golden_answers", "answers", "answer")
"""Where its accepted answers may stand, before Search-R1's ``reward_model``."""
_OTHER_COLUMNS = ("id", "data_source", "reward_model")
_BATCH = 1024


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


def _list_rows(path: Path) -> Rows:
    with opened(path) as file:
        text = without_mark(file.read())
    expected = "a list of objects. One object per line is a .jsonl file"
    items = json_value(text, str(path), expected, lines=True)
    if not isinstance(items, list):
        raise DataError(f"{path}: a {type(items).__name__}; expected a list of objects.")
    for number, item in enumerate(items):
        where = f"{path}: item {number}"
        yield where, as_object(item, where)


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
