"""`turngym retail`."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngym.benchmarks.cli.main import main
from turngym.envs.retail.tasks.generated import DIGESTS


def test_tasks_are_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retail", "tasks", "--size", "micro", "--split", "hard"]) == 0
    assert DIGESTS["micro"]["hard"] in capsys.readouterr().out


def test_tasks_that_differ_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(DIGESTS["micro"], "hard", "0" * 32)
    assert main(["retail", "tasks", "--size", "micro", "--split", "hard"]) == 2
    assert "expected " + "0" * 32 in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--size", "huge"], ["--split", "trian"]])
def test_names_that_do_not_exist(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retail", "tasks", *words]) == 2
    assert words[1] in capsys.readouterr().err


def test_a_folder_that_is_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retail", "export", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "tau-bench checkout" in capsys.readouterr().err
