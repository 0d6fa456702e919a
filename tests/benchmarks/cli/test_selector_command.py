"""`turngym selector`: train, score, draw; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turngym.agents.paper_selector.examples import SelectorRow, read_rows, write_rows
from turngym.benchmarks.cli.main import REFUSED, main


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    words = ("gold", "iron")
    made = [
        SelectorRow(f"request: {a}\npaper: {b} {i}\nDecision:", a == b, f"it is on {b}.")
        for a in words
        for b in words
        for i in range(8)
    ]
    write_rows(path, made)
    return str(path)


def told(capsys: pytest.CaptureFixture[str]) -> str:
    seen = capsys.readouterr()
    return " ".join((seen.out + seen.err).split())


def test_train_and_score(tmp_path: Path, rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, copy = str(tmp_path / "selector"), tmp_path / "copy.jsonl"
    words = ["--rows", rows, "--out", out, "--epochs", "2", "--keep-rows", str(copy)]
    assert main(["selector", "train", *words]) == 0
    assert "trained on 32 rows" in told(capsys)
    assert read_rows(copy) == read_rows(rows)
    kept = json.loads((tmp_path / "selector" / "selector.json").read_text())
    assert kept["settings"]["prompt"] == "short"
    wanted = {"epochs": 2, "lr": 1e-3, "rows": 32, "rationale": False}
    assert wanted.items() <= kept["training"].items()
    assert main(["selector", "eval", out, "--rows", rows]) == 0
    seen = told(capsys)
    assert "selector 32 16 " in seen
    assert "0.9 to 1.0" in seen
    assert (tmp_path / "selector" / "calibration.png").stat().st_size > 10_000

    again = str(tmp_path / "second")
    words = ["--rows", rows, "--model", out, "--out", again, "--lr", "1e-3", "--n", "8"]
    assert main(["selector", "train", *words]) == 0
    kept = json.loads((tmp_path / "second" / "selector.json").read_text())
    wanted = {"epochs": 1, "lr": 1e-3, "rows": 8, "rationale": True}
    assert wanted.items() <= kept["training"].items()
    picture = tmp_path / "new" / "p.png"
    more = ["--probability", "renormalised", "--threshold", "0.3", "--plot", str(picture)]
    assert main(["selector", "eval", again, "--rows", rows, *more]) == 0
    assert picture.exists()
    assert main(["selector", "train", "--rows", rows, "--out", out]) == REFUSED
    assert "holds files" in told(capsys)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["train", "--out", "OUT", "--rows", "none.jsonl"], "none.jsonl"),
        (["train", "--out", "OUT", "--rows", "ROWS", "--size", "micro"], "leave out size"),
        (["train", "--out", "OUT", "--rows", "ROWS", "--lr", "-1"], "lr is -1"),
        (
            ["train", "--out", "OUT", "--rows", "ROWS", "--n", "-3"],
            "--n is -3; expected an integer",
        ),
        (["train", "--out", "OUT", "--env.sise", "micro"], "Did you mean 'size'"),
        (["train", "--out", "OUT", "--data", "ROWS"], "papers is missing"),
        (["eval", "OUT/none", "--rows", "ROWS"], "no such folder"),
        (["eval", "none", "--rows", "ROWS"], "unknown model 'none'"),
        (["eval", "OUT/none", "--rows", "ROWS", "--threshold", "2"], "threshold is 2"),
    ],
)
def test_refusals(
    tmp_path: Path, rows: str, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    places = {"OUT": str(tmp_path / "out"), "ROWS": rows}
    given = [places.get(w, w.replace("OUT", places["OUT"])) for w in words]
    assert main(["selector", *given]) == REFUSED
    assert reason in told(capsys)
