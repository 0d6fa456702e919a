"""Question files in every format, and what is said about bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.core.errors import DataError
from turngym.envs.search_qa.data import load_questions


def read(path: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(x, q.text, q.answers) for x, q in load_questions(path)["train"]]


@pytest.mark.parametrize("column", ["golden_answers", "answers", "answer"])
@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
def test_every_format_reads_the_same(tmp_path: Path, column: str, ending: str) -> None:
    path = tmp_path / f"q.{ending}"
    given = [
        {"id": "a", "question": "Who, then?", column: ["Ada", 'the "one"']},
        {"id": "b", "question": "year of\nbirth", column: ["1912"]},
    ]
    if ending == "jsonl":
        path.write_text("\n\n".join(map(json.dumps, given)))
    elif ending == "json":
        path.write_text("\ufeff" + json.dumps(given, indent=1), encoding="utf-8")
    elif ending == "csv":
        path.write_text(
            f'\ufeffid,question,{column}\r\na,"Who, then?","Ada| the ""one"""\r\n'
            'b,"year of\nbirth",1912\r\n',
            encoding="utf-8",
        )
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(given), path)
    assert read(path) == [
        ("a", "Who, then?", ("Ada", 'the "one"')),
        ("b", "year of\nbirth?", ("1912",)),
    ]


def test_csv_cells_may_hold_json_lists(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('question,answer,note\nwhen,"[""1912"", 1913]",x\nwho,Ada|Bo||,\n')
    assert read(path) == [("q/0", "when?", ("1912", "1913")), ("q/1", "who?", ("Ada", "Bo"))]


@pytest.mark.parametrize(
    ("ending", "text", "words"),
    [
        (
            "csv",
            "question,reply\nwho,Ada\n",
            r"q\.csv:1: no column of answers; .*Columns: question, r",
        ),
        ("csv", "ask,answer\nwho,Ada\n", r"q\.csv:1: no column of questions"),
        ("csv", "", r"q\.csv:1: no column of questions.*Columns: none"),
        ("csv", "question,answer\n", "holds no question"),
        ("csv", "question,answer,answer\nq,a,b\n", "names of their own"),
        ("csv", "question,answer\nq,a\nwho, then,Ada\n", r"q\.csv:3: 3 cells; expected 2"),
        ("csv", "question,answer\nwho\n", r"q\.csv:2: 1 cells; expected 2"),
        ("csv", "question,answer\n ,Ada\n", r"q\.csv:2: question is empty"),
        ("csv", "question,answer\nwho,|\n", r"q\.csv:2: no answers"),
        ("csv", "question,answer\nwho,['Ada']\n", r"q\.csv:2: the answers .*column 2.*one\|two"),
        ("csv", "id,question,answer\n1,who,A\n1,who,B\n", r"q\.csv:3: id '1' was used before.*:2"),
        ("csv", 'question,answer\nq,a\nwho,"A"x\n', r"after line 2: not CSV"),
        ("csv", "id,question,answer\n,who,A\n", r"q\.csv:2: id is ''"),
        ("json", "[{]", r"q\.json:1: not JSON"),
        ("json", '{"question": "q"}\n{"question": "r"}', r"q\.json:2: not JSON.*\.jsonl file"),
        ("json", '{"question": "q"}', "a dict; expected a list of objects"),
        ("json", "[3]", "item 0: a int"),
        ("json", "[]", "holds no question"),
        ("json", '[{"question": "q", "answer": {"value": "x"}}]', "item 0: answer .* is not text"),
        ("json", '[{"question": "q", "answer": "x", "data_source": 3}]', "data_source is 3"),
    ],
)
def test_bad_files(tmp_path: Path, ending: str, text: str, words: str) -> None:
    path = tmp_path / f"q.{ending}"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        load_questions(path)


def test_odd_bytes(tmp_path: Path) -> None:
    for ending, text in (("csv", b"question,answer\nq,\xe9\n"), ("json", b'["\xe9"]')):
        path = tmp_path / f"q.{ending}"
        path.write_bytes(text)
        with pytest.raises(DataError, match="not UTF-8"):
            load_questions(path)
        with pytest.raises(DataError, match="cannot be read"):
            load_questions(tmp_path / f"none.{ending}")


def test_parquet_is_read_in_parts_and_known_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    given = [
        {"question": f"q{i}", "golden_answers": [f"a{i}"], "metadata": {"x": "y" * 50}}
        for i in range(5000)
    ]
    path = tmp_path / "q.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(given), path, row_group_size=900)
    asked: list[Any] = []
    whole = parquet.ParquetFile.iter_batches

    def noted(self: Any, **more: Any) -> Any:
        asked.append(more)
        return whole(self, **more)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    found = read(path)
    assert [x for x, _, _ in found] == [f"q/{i}" for i in range(5000)]
    assert found[4321][1:] == ("q4321?", ("a4321",))
    assert asked == [{"batch_size": 1024, "columns": ["question", "golden_answers"]}]
    parquet.write_table(pyarrow.table({"question": ["q"], "reply": ["a"]}), path)
    with pytest.raises(DataError, match=r"no column of answers.*Columns: question, reply"):
        load_questions(path)
    bad = [{"question": "q", "golden_answers": ["a"]}] * 2000 + [
        {"question": "", "golden_answers": [""]}
    ]
    parquet.write_table(pyarrow.Table.from_pylist(bad), path, row_group_size=100)
    with pytest.raises(DataError, match=r"q\.parquet: row 2000: question is empty"):
        load_questions(path)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('[{"question": "q", "answer": "x"}]')
    assert len(read(path)) == 1
    path.write_text('[{"question": "q", "answer": "x"}, {"question": "r", "answer": "x"}]')
    assert len(read(path)) == 2


def test_numbers_are_read_as_they_are_meant(tmp_path: Path) -> None:
    """A column of whole numbers with a gap is one of floats, whose point EM would delete."""
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "a", "answer": 42.0}\n{"question": "b", "answer": 2.5}\n')
    assert [answers for *_, answers in read(path)] == [("42",), ("2.5",)]
    for bad in ("NaN", "Infinity", "-1e999"):
        path.write_text(f'{{"question": "a", "answer": {bad}}}\n')
        with pytest.raises(DataError, match="is no number"):
            load_questions(path)


def test_a_cell_that_python_cannot_read_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    for cell in ("[" * 100_000, "[" + "9" * 5000 + "]"):
        path.write_text(f"question,answer\nwho,{cell}\n")
        with pytest.raises(DataError, match="begin like a JSON list"):
            load_questions(path)
