"""`turngym index`: from a passage file to an answer, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turngym.benchmarks.cli.main import REFUSED, main


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"id": "a", "contents": '"Ada Brook"\nAda Brook was born in Lum Tor. [bold]She[/] paints.'},
        {"id": "b", "contents": '"Red Lamp"\nRed Lamp is a novel.'},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def told(capsys: pytest.CaptureFixture[str]) -> str:
    seen = capsys.readouterr()
    return " ".join((seen.out + seen.err).split())


def test_build_describe_search(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "index")
    assert main(["index", "build", "--corpus", str(corpus), "--out", out]) == 0
    assert "kind bm25 passages 2" in told(capsys)
    assert main(["index", "info", out]) == 0
    assert "passages 2" in told(capsys)
    assert main(["index", "search", out, "--query", "where was ada born", "--k", "1"]) == 0
    seen = told(capsys)
    assert '1. "Ada Brook" id a' in seen
    assert "[bold]She[/] paints." in seen
    assert "Red Lamp" not in seen
    assert main(["index", "search", out, out, "--query", "novel"]) == 0
    assert '1. "Red Lamp" id b' in told(capsys)
    assert main(["index", "search", out, "--query", "zzz"]) == 0
    assert "nothing found" in told(capsys)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["build", "--corpus", "CORPUS", "--out", "OUT", "--kind", "flat"], "needs --encoder"),
        (["build", "--corpus", "CORPUS", "--out", "OUT", "--encoder", "x"], "bm25 needs none"),
        (["build", "--corpus", "CORPUS", "--out", "OUT", "--set", "k1=2"], "no setting 'k1'"),
        (["build", "--corpus", "nowhere.jsonl", "--out", "OUT"], "nowhere.jsonl"),
        (["build", "--corpus", "CORPUS", "--out", "/proc/x"], "/proc/x: cannot be"),
        (["build", "--corpus", "CORPUS", "--out", "CORPUS"], "corpus.jsonl: cannot be"),
        (["info"], "no folder was named"),
        (["info", "OUT"], "not an index"),
        (["search", "OUT", "--query", "x"], "turngym index build"),
    ],
)
def test_refusals(
    words: list[str],
    reason: str,
    tmp_path: Path,
    corpus: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"CORPUS": str(corpus), "OUT": str(tmp_path / "index")}
    assert main(["index", *(places.get(w, w) for w in words)]) == REFUSED
    assert reason in told(capsys)


def test_a_changed_corpus_is_told(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "index")
    assert main(["index", "build", "--corpus", str(corpus), "--out", out]) == 0
    corpus.write_text(corpus.read_text().replace("Lum Tor", "Rum Tor"))
    assert main(["index", "info", out]) == REFUSED
    assert "built for another corpus" in told(capsys)


def test_an_index_is_searched_in_place_of_its_passages(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, asked = str(tmp_path / "index"), tmp_path / "q.jsonl"
    row = {"id": "q", "question": "where was ada born", "golden_answers": ["Lum Tor"]}
    asked.write_text(json.dumps(row) + "\n")
    assert main(["index", "build", "--corpus", str(corpus), "--out", out]) == 0
    words = ["eval", "--agent", "expert", "--eval-data", f"mine={asked}", "--corpus", out]
    assert main(words) == 0
    assert "mine" in told(capsys)
