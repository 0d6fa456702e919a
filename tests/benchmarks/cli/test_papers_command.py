"""`turngym papers`: a folder of PaSa's files, and the page on them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from helpers.pasa_files import members, write_layout, write_zip

from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.paper_crawler.papers import Search
from turngym.envs.paper_crawler.real import open_real

PAGE = Path(__file__).parents[3] / "docs" / "real-papers.md"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")


def told(capsys: pytest.CaptureFixture[str]) -> str:
    seen = capsys.readouterr()
    return " ".join((seen.out + seen.err).split())


def test_the_command_prints_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_layout(tmp_path)
    assert main(["papers", "check", str(folder)]) == 0
    seen = told(capsys)
    assert "sft_crawler/train.jsonl missing, not needed sessions to imitate" in seen
    assert "RealScholarQuery/test 1 0 0 3 0 66.7% 33.3%" in seen
    assert "members of the zip 4" in seen
    assert "citations that resolve 62.5%" in seen
    (folder / "data/RealScholarQuery/test.jsonl").unlink()
    content = {**members(), "broken [member]": b"{"}
    write_zip(folder / "data/paper_database/cs_paper_2nd.zip", content)
    assert main(["papers", "check", str(folder), "--all"]) == REFUSED
    seen = told(capsys)
    assert "RealScholarQuery/test.jsonl missing 50 queries" in seen
    assert "damaged among them 1" in seen
    assert "member 'broken [member]' is no JSON" in seen


def test_the_command_writes_passages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_layout(tmp_path), tmp_path / "passages.jsonl"
    assert main(["papers", "passages", str(folder), "--out", str(out)]) == 0
    assert f"5 papers in {out}. Next: turngym index build --corpus {out}" in told(capsys)
    first = json.loads(out.read_text().splitlines()[0])
    assert first == {
        "id": "2105.90001",
        "title": "GripLedger: Gated Recall for Tactile Policies",
        "text": "A memory of touches with gates.",
    }
    assert main(["papers", "passages", str(folder), "--out", str(out)]) == REFUSED
    assert "is there; name a new file" in told(capsys)


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["papers", "check", str(tmp_path / "absent")]) == REFUSED
    assert "no such folder" in told(capsys)


def test_what_the_page_says_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_layout(tmp_path / "path/to/pasa")
    page = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
        for command in block.splitlines():
            assert main(shlex.split(command)[1:]) == 0
    given = re.findall(r"`(data_settings|search_settings|papers_settings)=({.+?})`", page)
    settings = {name: json.loads(told.replace("'", '"')) for name, told in given}
    assert settings["search_settings"] == {"index": "papers-index"}
    tasks, library = open_real(
        data={"test": "path/to/pasa/data/RealScholarQuery"},
        papers="path/to/pasa/data/paper_database",
        search="local",
        **settings,
    )
    assert tasks.task("test", 0).payload.date == 20240924
    assert library.search([Search("gates", 3, 20240924)]) == [["2105.90001"]]
