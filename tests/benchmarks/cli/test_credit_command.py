"""`turngym credit`: what is refused, and when."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from helpers.tiny_matrix import column, filled, tiny

from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.matrix.run import lock_folder
from turngym.benchmarks.microscope.sweep import Sweep


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--continuations", "1"], "multiple of 4"),
        (["--continuations", "6"], "multiple of 4"),
        (["--groups", "1"], "at least 2"),
        (["--workers", "0"], "at least 1"),
        (["--recipe", "nope"], "unknown recipe"),
        (["--noise", "99999999999999999999999"], "noise is 99999999999999999999999; expected a"),
        (["--resample", "1"], "expected 0, or at least 2: one has no variance"),
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


def test_two_calls_do_not_measure_into_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each deleted the half-way policy that the other was writing."""
    suite = tiny()
    layout = filled(tmp_path / "matrix", suite, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    column(suite, "Bandit-v0").write(layout.column_file("Bandit-v0"))
    words = ["credit", "--matrix", str(layout.root), "--out", str(tmp_path / "out")]
    answers: list[int] = []

    def measure(*given: object) -> Sweep:
        if not answers:
            answers.append(-1)
            answers.append(main(words))
        return Sweep()

    monkeypatch.setattr("turngym.benchmarks.microscope.sweep.run_sweep", measure)
    assert main(words) == 0
    assert answers == [-1, REFUSED]
    assert "out is being filled by process" in capsys.readouterr().err


def test_a_matrix_is_measured_only_where_the_reports_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first column was measured, and then the folder turned out to be a file."""
    suite = tiny()
    layout = filled(tmp_path / "matrix", suite, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    column(suite, "Bandit-v0").write(layout.column_file("Bandit-v0"))
    file = tmp_path / "file"
    file.touch()
    words = ["credit", "--matrix", str(layout.root), "--workers", "1", "--out", str(file)]
    assert main(words) == REFUSED
    printed = capsys.readouterr()
    assert f"{file}: cannot be a folder" in printed.err
    assert "columns and policies" not in printed.out
    assert main([*words, "--at"]) == REFUSED
    assert "--at: names no policy; expected start, halfway or both." in capsys.readouterr().err


def test_two_measurements_do_not_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one that ended last wrote its report over the other's."""
    monkeypatch.setattr("turngym.benchmarks.cli.credit.make_config", lambda *_: pytest.fail("run"))
    with lock_folder(tmp_path / "lock"):
        assert main(["credit", "--env", "Password-v0", "--out", str(tmp_path)]) == REFUSED
    assert "another folder" in capsys.readouterr().err


def test_a_measurement_is_shown_also_where_its_report_finds_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hours of it were lost with the report."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("turngym.benchmarks.microscope.report.write_report", fail)
    words = ["--groups", "2", "--continuations", "4", "--workers", "1", "--max-tokens", "3"]
    out = ["--env", "Bandit-v0", "--out", str(tmp_path / "out")]
    assert main(["credit", *words, *out]) == REFUSED
    printed = capsys.readouterr()
    assert "grpo" in printed.out
    assert "continuations of" in printed.out
    assert "the disk is full" in printed.err
