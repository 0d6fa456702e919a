"""Rows of AutoScholarQuery and RealScholarQuery, their files and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from helpers.pasa_files import row, write_layout, write_rows
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.core.tasks import find_task
from turngym.envs.paper_crawler.papers import make_title_key
from turngym.envs.paper_crawler.real.arxiv_ids import (
    UNDATED,
    find_id_in_link,
    read_date,
    strip_version,
)
from turngym.envs.paper_crawler.real.queries import RowRules, open_queries


def test_a_folder_of_pasa_is_its_auto_scholar_queries(tmp_path: Path) -> None:
    source = open_queries(write_layout(tmp_path))
    assert source.sizes() == {"train": 3, "dev": 3, "test": 3}
    task = find_task(source, None, "AutoScholarQuery_dev_1", "test")
    assert (task.split, task.index, task.dataset) == ("dev", 1, "AutoScholarQuery")
    request = task.payload
    assert request.date == 20230614
    assert request.answers == ("2105.90001", "2203.90417")
    assert request.titles[0] == "GripLedger: Gated Recall for Tactile Policies"
    inner = open_queries(tmp_path / "data")
    assert inner.task("dev", 1).digest == task.digest
    real = open_queries({"test": tmp_path / "data" / "RealScholarQuery"})
    assert real.task("test", 0).dataset == "RealScholarQuery"
    assert real.sizes() == {"test": 1}
    one = open_queries(str(tmp_path / "data" / "AutoScholarQuery" / "dev.jsonl"))
    assert one.sizes() == {"train": 3}


def test_versions_go_and_repeated_titles_and_ids_count_once(tmp_path: Path) -> None:
    given = row(
        "a",
        answer=["GPT-2", "GPT-3", "Other", "New title", "1984", "2001"],
        answer_arxiv_id=["2105.00001v2", "2105.00002", "cs/0309040v1", "2105.00001", "1.1", "1.2"],
    )
    source = open_queries(write_rows(tmp_path / "q.jsonl", [given]))
    request = source.task("train", 0).payload
    assert request.answers == ("2105.00001", "cs/0309040", "1.1", "1.2")
    assert request.titles == ("GPT-2", "Other", "1984", "2001")
    assert source.repeated == {"train": 2}


def test_queries_without_answers_are_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    rows = [row("a"), row("b", answer=[], answer_arxiv_id=[]), row("c")]
    path = write_rows(tmp_path / "q.jsonl", rows)
    with pytest.raises(DataError, match=r"q\.jsonl:2: the query 'b' has no answers"):
        open_queries(path)
    source = open_queries(path, RowRules(unanswered="leave_out"))
    assert source.sizes() == {"train": 2}
    assert source.left_out == {"train": 1}
    assert source.index_of("train", "c") == 1
    assert source.index_of("train", "b") is None
    write_rows(path, rows[1:2])
    with pytest.raises(DataError, match=r"q\.jsonl: all 1 queries are without answers"):
        open_queries(path, RowRules(unanswered="leave_out"))


def test_the_day_can_be_set_back_as_pasa_does(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "q.jsonl", [row("a", source_meta={"published_time": "20240305"})])
    assert open_queries(path).task("train", 0).payload.date == 20240305
    assert open_queries(path, RowRules(days_back=7)).task("train", 0).payload.date == 20240227


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"qid": 7}, "qid is 7; expected text"),
        ({"qid": " "}, "qid is empty"),
        ({"question": None}, "question is None"),
        ({"answer": "GripLedger"}, "answer is 'GripLedger'; expected a list"),
        ({"answer": ["a"]}, "1 titles in answer and 2 ids"),
        ({"answer": ["a", 3]}, r"answer\[1\] is 3"),
        ({"answer_arxiv_id": ["2105.90001", None]}, r"answer_arxiv_id\[1\] is None"),
        ({"answer_arxiv_id": None}, "answer_arxiv_id is None"),
        ({"source_meta": "20230614"}, "source_meta is '20230614'; expected an object"),
        ({"source_meta": {}}, "published_time is None"),
        ({"source_meta": {"published_time": "2023-06-14"}}, "expected a day as '20230614'"),
        ({"source_meta": {"published_time": "20230231"}}, "expected a day"),
        ({"source_meta": {"published_time": 20230614}}, "expected a day"),
        ({"qid": "first"}, "id 'first' was used before, at .*q.jsonl:1"),
    ],
)
def test_bad_rows_are_told_with_file_and_line(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    path = write_rows(tmp_path / "q.jsonl", [row("first"), {**row("second"), **changes}])
    with pytest.raises(DataError, match=rf"q\.jsonl:2: .*{reason}"):
        open_queries(path)


@pytest.mark.parametrize("column", ["qid", "question", "answer", "answer_arxiv_id"])
def test_missing_columns_are_named(tmp_path: Path, column: str) -> None:
    given = {name: value for name, value in row("a").items() if name != column}
    with pytest.raises(DataError, match=rf"q\.jsonl:1: column '{column}' is missing"):
        open_queries(write_rows(tmp_path / "q.jsonl", [given]))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"qid": ', "not JSON"),
        (b"[1]", "a list; expected a JSON object"),
        (b'{"qid": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "JSON that cannot be read"),
    ],
)
def test_damaged_lines_are_told(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(json.dumps(row("a")).encode() + b"\n\n" + line + b"\n")
    with pytest.raises(DataError, match=rf"q\.jsonl:3: {reason}"):
        open_queries(path)


def test_places_that_hold_nothing_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    for data, error, reason in (
        (empty, DataError, "holds no query"),
        (tmp_path, DataError, "no AutoScholarQuery"),
        (tmp_path / "absent.jsonl", DataError, "cannot be read"),
        ({}, BadValueError, "no file was named"),
        ({"train": 3}, BadValueError, "expected the path"),
        ({"trian": empty}, UnknownNameError, "Did you mean 'train'"),
    ):
        with pytest.raises(error, match=reason):
            open_queries(data)
    layout = write_layout(tmp_path / "pasa")
    with pytest.raises(DataError, match=r"holds no dev\.jsonl"):
        open_queries({"dev": layout / "data" / "RealScholarQuery"})
    with pytest.raises(DataError, match="used before"):
        open_queries({s: layout / "data/AutoScholarQuery/dev.jsonl" for s in ("train", "dev")})
    with pytest.raises(UnknownNameError, match="leave_out"):
        RowRules(unanswered="leaveout")
    with pytest.raises(BadValueError, match="days_back"):
        RowRules(days_back=-1)


def test_copies_share_and_pickles_read_again(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "q.jsonl", [row("a"), row("b")])
    source = open_queries(path)
    assert copy.deepcopy(source) is source
    stored = pickle.dumps(source)
    assert len(stored) < 1_000
    again = pickle.loads(stored)
    assert [again.task("train", i) for i in range(2)] == [source.task("train", i) for i in range(2)]
    write_rows(path, [row("a")])
    with pytest.raises(DataError, match="have changed"):
        pickle.loads(stored)


def test_title_key_keeps_letters_only() -> None:
    assert make_title_key("GPT-2: é, 日本\n2") == "gpté日本"
    assert make_title_key("GPT-2") == make_title_key("gpt 3")
    assert make_title_key("1984") == ""


@given(st.text(), st.text(alphabet=" -:.,0123456789\n"))
def test_title_key_ignores_what_is_no_letter(title: str, noise: str) -> None:
    key = make_title_key(title)
    assert make_title_key(noise.join(title)) == key
    assert make_title_key(make_title_key(title)) == "".join(filter(str.isalpha, key))


@pytest.mark.parametrize(
    ("text", "plain", "date"),
    [
        ("2104.00731v12", "2104.00731", 20210401),
        (" arXiv:0704.0001 ", "0704.0001", 20070401),
        ("cs/0309040v2", "cs/0309040", 20030901),
        ("solv-int/9701001", "solv-int/9701001", 19970101),
        ("math.AG/9912001v1", "math.AG/9912001", 19991201),
        ("2113.00001", "2113.00001", UNDATED),
        ("whatever", "whatever", UNDATED),
    ],
)
def test_ids_and_their_dates(text: str, plain: str, date: int) -> None:
    assert strip_version(text) == plain
    assert read_date(plain) == date


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("https://arxiv.org/abs/2104.00731", "2104.00731"),
        ("http://www.arxiv.org/pdf/2104.00731v3.pdf", "2104.00731"),
        ("https://arxiv.org/html/2104.00731v1", "2104.00731"),
        ("https://arxiv.org/abs/cs/0309040v1", "cs/0309040"),
        ("https://arxiv.org/list/cs.CL/2104", None),
        ("https://arxiv.org.evil.example/abs/2104.00731", None),
        ("https://example.org/abs/2104.00731", None),
        ("https://arxiv.org/abs/2104.007", None),
        ("http://[broken", None),
    ],
)
def test_ids_in_links(link: str, found: str | None) -> None:
    assert find_id_in_link(link) == found
