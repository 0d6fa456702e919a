"""`turngym credit`: what is refused, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngym.benchmarks.cli.main import REFUSED, main


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--continuations", "1"], "multiple of 4"),
        (["--continuations", "6"], "multiple of 4"),
        (["--groups", "1"], "at least 2"),
        (["--workers", "0"], "at least 1"),
        (["--recipe", "nope"], "unknown recipe"),
    ],
)
def test_numbers_are_refused_before_a_model_is_made(
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A starter was made first, which takes minutes in some environments."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["credit", "--env", "Password-v0", *words]) == REFUSED
    assert reason in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_an_earlier_report_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same call with other recipes wrote over what had taken an hour."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "runs" / "credit-password" / "credit.json"
    there.parent.mkdir(parents=True)
    there.write_text("{}")
    assert main(["credit", "--env", "Password-v0"]) == REFUSED
    assert "--out" in capsys.readouterr().err
    assert there.read_text() == "{}"
    assert not (tmp_path / "cache").exists()
