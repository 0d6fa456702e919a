"""Rows of files: JSON lines and the parts of a row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import DataError
from turngym.envs.utils.file_rows import (
    claim_id,
    get_contents,
    get_text,
    parse_json_value,
    parse_row,
    read_rows,
    row_id,
)

TEXTS = st.text(max_size=12)


@given(st.lists(st.dictionaries(TEXTS, TEXTS | st.integers() | st.none(), max_size=3), max_size=5))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    text = "\n  \n".join(json.dumps(row) for row in rows)
    path.write_text(text, encoding="utf-8-sig")
    read = list(read_rows(path))
    assert [row for _, row in read] == rows
    assert [where for where, _ in read] == [f"{path}:{1 + 2 * i}" for i in range(len(rows))]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": ', r"f:3: not JSON \(Expecting value at column \d\); expected one object per"),
        (b'{"a": \n', r"f:3: not JSON .*; expected one object per line"),
        (b"3", r"f:3: a int; expected a JSON object per line"),
        (b'{"a": "\xff"}', r"f:3: not UTF-8"),
        (b"[" * 200_000, r"f:3: JSON that cannot be read .*recursion"),
        (b"1" * 5000, r"f:3: JSON that cannot be read .*digit"),
    ],
)
def test_bad_lines(line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_row(line, "f:3")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            gzip.compress(b'{"id": "0"}\n', mtime=0),
            r"rows: is compressed \(gzip\); unpack it; expected",
        ),
        (b"PAR1\x15\x04\xff", r"rows: is Parquet; expected JSON lines"),
    ],
)
def test_files_of_another_kind_are_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "rows").write_bytes(data)
    with pytest.raises(DataError, match=message):
        list(read_rows(tmp_path / "rows"))


def test_the_line_within_a_text_is_named_on_request() -> None:
    with pytest.raises(DataError, match=r"^f:2: not JSON .* at column 1\); expected a list"):
        parse_json_value(b"[\n}", "f", "a list", lines=True)
    with pytest.raises(DataError, match=r"^f: not JSON"):
        parse_json_value(b"[\n}", "f", "a list")


@pytest.mark.parametrize(
    ("row", "want"),
    [
        ({"contents": ' "A b" \nc\nd'}, ('"A b"', "c\nd")),
        ({"contents": "alone"}, ("alone", "")),
        ({"title": " A ", "text": "b"}, ("A", "b")),
        ({"text": "b"}, ("", "b")),
        ({"contents": "A\nb", "title": "other", "text": "other"}, ("A", "b")),
        ({"title": "\ud800", "text": "b"}, ("?", "b")),
    ],
)
def test_title_and_text(row: dict[str, Any], want: tuple[str, str]) -> None:
    assert get_contents(row, "f:1") == want


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "f:1: no text; expected contents, or title and text. Columns: none"),
        ({"title": "a"}, "no text.*Columns: title"),
        ({"contents": 3, "text": "b"}, "no text"),
        ({"title": None, "text": "b"}, "title is None; expected text"),
        ({"title": " ", "text": "\n"}, "the passage is empty"),
    ],
)
def test_rows_without_a_passage(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        get_contents(row, "f:1")


def test_ids_are_texts_or_integers_and_used_once() -> None:
    assert [row_id({"id": value}, "f:1") for value in (7, "x", "\udfff")] == ["7", "x", "?"]
    for bad in (None, True, "", 1.5, ["x"]):
        with pytest.raises(DataError, match=r"f:1: id is .*; expected text or an integer"):
            row_id({"id": bad}, "f:1")
    seen: dict[str, str] = {}
    claim_id(seen, "x", "f:1")
    with pytest.raises(DataError, match=r"f:2: id 'x' was used before, at f:1"):
        claim_id(seen, "x", "f:2")


@pytest.mark.parametrize(("value", "message"), [(3, "a is 3; expected text"), (" ", "a is empty")])
def test_a_text_is_text(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"f:1: {message}"):
        get_text({"a": value}, "a", "f:1")
    with pytest.raises(DataError, match=r"column 'b' is missing. Columns: a"):
        get_text({"a": value}, "b", "f:1")


def test_a_line_that_breaks_off_is_told_in_one_sentence() -> None:
    with pytest.raises(DataError, match=r"\(Unterminated string starting at column 7\)"):
        parse_json_value(b'{"a": "b', "file.jsonl", "one object per line")
