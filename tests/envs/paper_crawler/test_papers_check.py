"""What a look through a folder says of whole, partial and damaged folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.pasa_files import members, row, write_database, write_layout, write_rows, write_zip

from turngym.envs.core.errors import BadValueError, DataError
from turngym.envs.paper_crawler.real.check import check_papers


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))


def test_a_whole_folder_is_counted(tmp_path: Path) -> None:
    report = check_papers(write_layout(tmp_path))
    assert report.folder == tmp_path / "data"
    assert [f.name for f in report.files if f.size is None and f.part.needed] == []
    assert [f.rows for f in report.queries] == [3, 3, 3, 1]
    real = report.queries[3]
    assert (real.answers, real.with_title, real.with_member) == (3, 2, 1)
    papers = report.papers
    assert papers is not None
    assert (papers.papers, papers.with_member, papers.members) == (5, 4, 4)
    assert (papers.checked, papers.damaged.count) == (4, 0)
    assert (papers.sections, papers.cited, papers.resolved) == (4, 8, 5)
    assert report.damaged == ()
    inner = check_papers(tmp_path / "data", sample=2).papers
    assert inner is not None
    assert (inner.checked, inner.members) == (2, 4)


def test_damage_is_counted_and_told(tmp_path: Path) -> None:
    folder = write_layout(tmp_path)
    rows = [
        row("a"),
        row("b", answer=[], answer_arxiv_id=[]),
        row("a"),
        row("c", question=3),
        row("d", answer=["One", "one!"], answer_arxiv_id=["2105.90001", "2105.90001v2"]),
    ]
    path = write_rows(folder / "data/AutoScholarQuery/dev.jsonl", rows)
    path.write_text(path.read_text() + "{\n")
    content = {**members(), "x": b"{", "y": b"[]"}
    write_zip(folder / "data/paper_database/cs_paper_2nd.zip", content)
    report = check_papers(folder, every=True)
    dev = report.queries[1]
    assert (dev.rows, dev.unanswered, dev.damaged.count) == (2, 1, 3)
    assert (dev.answers, dev.repeated) == (3, 1)
    assert [text.partition("dev.jsonl:")[2][0] for text in dev.damaged.messages] == ["3", "4", "6"]
    assert report.papers is not None
    assert report.papers.damaged.count == 2
    assert len(report.damaged) == 5


def test_half_a_folder_and_files_of_whole_that_cannot_be_opened(tmp_path: Path) -> None:
    write_rows(tmp_path / "sft_crawler" / "train.jsonl", [{"messages": []}, {"message": 1}])
    report = check_papers(tmp_path)
    assert (report.papers, report.queries) == (None, ())
    assert [f.name for f in report.files if f.size is not None] == ["sft_crawler/train.jsonl"]
    (examples,) = report.examples
    assert (examples.rows, examples.damaged.count) == (1, 1)
    database = write_database(tmp_path / "paper_database")
    (database / "cs_paper_2nd.zip").write_bytes(b"cut")
    report = check_papers(tmp_path)
    assert report.papers is None
    assert "is no readable zip" in report.faults[0]


def test_loose_files_are_found(tmp_path: Path) -> None:
    write_database(tmp_path)
    write_rows(tmp_path / "test.jsonl", [row("a")])
    (tmp_path / "cs_paper_2nd.zip").rename(tmp_path / "papers.zip")
    report = check_papers(tmp_path)
    assert report.papers is not None
    assert [found.rows for found in report.queries] == [1]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        check_papers(tmp_path / "absent")
    with pytest.raises(BadValueError, match="sample is 0"):
        check_papers(tmp_path, sample=0)
