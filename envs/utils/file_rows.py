"""Rows of a user's files: JSON lines, the parts of a row, and what a passage row holds.

Every row comes with the place that it was read from, for errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ..core.errors import DataError

Rows = Iterator[tuple[str, Mapping[str, Any]]]


def read_rows(path: Path) -> Rows:
    """Yield (place, object) of JSON lines; blank lines are skipped.

    Raises:
        DataError: A file or a line that cannot be read; says file and line.
    """
    for where, line in read_lines(path):
        if line.strip():
            yield where, parse_row(line, where)


def read_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (place, line) of a file, blank lines too; the first without a byte order mark.

    Raises:
        DataError: The file cannot be opened, or is compressed or Parquet.
    """
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.startswith((b"\x1f\x8b", b"PAR1")):
                kind = "Parquet" if line.startswith(b"PAR1") else "compressed (gzip); unpack it"
                raise DataError(f"{path}: is {kind}; expected JSON lines, one object per line.")
            yield f"{path}:{number}", strip_byte_order_mark(line) if number == 1 else line


def parse_row(line: bytes, where: str) -> dict[str, Any]:
    """Return the object on one line.

    Raises:
        DataError: Not UTF-8, not JSON, or no object.
    """
    return as_object(
        parse_json_value(line.rstrip(), where, "one object per line"), where, " per line"
    )


def parse_json_value(text: bytes, where: str, expected: str, *, lines: bool = False) -> Any:
    """Parse JSON.

    Args:
        text: The bytes, without a byte order mark.
        where: Where they come from, for errors.
        expected: What should stand there, for errors.
        lines: Whether an error adds the line within ``text``.

    Raises:
        DataError: Not UTF-8, or not JSON.
    """
    try:
        return json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason}).") from None
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}" if lines else where
        what = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        raise DataError(
            f"{place}: not JSON ({what} at column {error.colno}); expected {expected}."
        ) from None
    except (ValueError, RecursionError) as error:  # endless numbers, endless nesting
        raise DataError(f"{where}: JSON that cannot be read ({error}).") from None


def as_object(value: Any, where: str, more: str = "") -> dict[str, Any]:
    """Return ``value`` if it is a JSON object; ``more`` completes the error.

    Raises:
        DataError: It is none.
    """
    if not isinstance(value, dict):
        raise DataError(f"{where}: a {type(value).__name__}; expected a JSON object{more}.")
    return value


def strip_byte_order_mark(text: bytes) -> bytes:
    """Remove the byte order mark at the beginning of a file."""
    return text.removeprefix(b"\xef\xbb\xbf")


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        DataError: It cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise make_read_error(path, error) from None


def make_read_error(path: Path, error: BaseException) -> DataError:
    """Make the error of a file that cannot be read."""
    reason = getattr(error, "strerror", None) or str(error)
    return DataError(f"{path}: cannot be read ({reason}).")


def get_text(row: Mapping[str, Any], column: str, where: str) -> str:
    """Return the text in a column, which must hold some."""
    if column not in row:
        raise DataError(
            f"{where}: column {column!r} is missing. Columns: {', '.join(map(str, row)) or 'none'}."
        )
    return check_text(row[column], column, where)


def check_text(value: object, column: str, where: str) -> str:
    """Return ``value`` if it is text that is not blank."""
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} is {value!r}; expected text.")
    if not value.strip():
        raise DataError(f"{where}: {column} is empty.")
    return clean(value)


def clean(text: str) -> str:
    """Replace lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def row_id(row: Mapping[str, Any], where: str) -> str:
    """Return the row's id as text."""
    value = row.get("id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DataError(f"{where}: id is {value!r}; expected text or an integer.")
    return clean(str(value))


def claim_id(ids: dict[str, str], named: str, where: str) -> None:
    """Note an id and where it was used; refuse one that was used before."""
    if named in ids:
        raise DataError(f"{where}: id {named!r} was used before, at {ids[named]}.")
    ids[named] = where


def get_contents(row: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Return a passage's title and text: ``contents`` (first line: title), or both columns.

    Raises:
        DataError: Neither is there as text, or both are blank.
    """
    contents = row.get("contents")
    if contents is None and isinstance(row.get("text"), str):
        title, text = row.get("title", ""), row["text"]
    elif isinstance(contents, str):
        title, _, text = contents.partition("\n")
    else:
        raise DataError(
            f"{where}: no text; expected contents, or title and text. Columns: "
            f"{', '.join(map(str, row)) or 'none'}."
        )
    if not isinstance(title, str):
        raise DataError(f"{where}: title is {title!r}; expected text.")
    if not title.strip() and not text.strip():
        raise DataError(f"{where}: the passage is empty.")
    return clean(title).strip(), clean(text)
