"""Rows in PaSa's file format."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.paper_selector.examples import SelectorRow, read_rows, write_rows
from turngym.envs.core.errors import DataError

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
reasons = texts.map(lambda t: " ".join(t.split())).filter(lambda t: not t.startswith("Reason:"))


@given(st.lists(st.builds(SelectorRow, texts, st.booleans(), reasons), min_size=1, max_size=5))
def test_rows_come_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    assert write_rows(path, rows) == len(rows)
    assert read_rows(path) == rows


def test_the_shape_of_a_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_rows(path, [SelectorRow("Is it?\nDecision:", False, "it is not.")])
    assert json.loads(path.read_text()) == {
        "messages": [
            {"role": "user", "content": "Is it?\nDecision:"},
            {"role": "assistant", "content": "False\nReason: it is not."},
        ]
    }


def line(user="q", said="True\nReason: r", roles=("user", "assistant")):
    contents = zip(roles, (user, said), strict=True)
    return json.dumps({"messages": [{"role": r, "content": c} for r, c in contents]})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no row"),
        ("{", ":1: not JSON"),
        ("\n[1]", ":2: a list; expected"),
        ('{"messages": 3}', ":1: expected"),
        ('{"messages": ["a", "b"]}', ":1: expected"),
        (line(roles=("assistant", "user")), ":1: expected"),
        (line(said=None), ":1: expected"),
        (
            line() + "\n" + line(said="Yes\nReason: r"),
            ":2: the assistant's first line is 'Yes'",
        ),
        (line(said="Trueish"), "expected True or False"),
    ],
)
def test_bad_lines(tmp_path, text, said):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_rows(path)


def test_how_a_file_is_written_changes_no_word(tmp_path):
    """Letters of another encoding were replaced, and trained on."""
    path = tmp_path / "rows.jsonl"
    text = line(user="CAFE?").replace("CAFE", "Caf\u00e9")
    path.write_text(text, encoding="utf-8-sig")
    assert read_rows(path)[0].prompt == "Caf\u00e9?"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=":1: not UTF-8"):
        read_rows(path)


def test_no_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_rows(tmp_path / "rows.jsonl")
