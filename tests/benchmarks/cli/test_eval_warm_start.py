"""`turngym eval --warm-start`: what is imitated is what a training run would learn from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.training.config import EnvConfig
from turngym.algos.training.supervised import warm_start as module
from turngym.benchmarks.cli.main import INTERRUPTED, REFUSED, main


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A folder that looks like a model's: it is named, but not loaded."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return str(folder)


@pytest.fixture
def imitated(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Settings of the environments that were imitated; the command ends there."""
    found: list[Mapping[str, Any]] = []

    def note(_: str, env: EnvConfig, *__: object, **___: object) -> None:
        found.append(env.settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "warm_start", note)
    return found


def questions(file: Path, asked: str) -> str:
    row = {"id": file.stem, "question": asked, "golden_answers": ["Bern"]}
    file.write_text(json.dumps(row) + "\n")
    return str(file)


def test_scored_questions_are_never_imitated(
    model: str,
    imitated: list[Mapping[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = questions(tmp_path / "mine.jsonl", "What is Zora's capital?")
    held_out = questions(tmp_path / "held_out.jsonl", "What is Swabia's capital?")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "0", "contents": '"Zora"\nIts capital is Bern.'}) + "\n")
    words = ["eval", "--agent", model, "--warm-start", "4", "--n", "1", "--corpus", str(corpus)]
    words += ["--eval-data", f"held={held_out}"]
    assert main([*words, "--data", mine]) == INTERRUPTED
    assert [settings["data"] for settings in imitated] == [mine]
    capsys.readouterr()
    assert main(words) == REFUSED
    assert len(imitated) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "never from those of --eval-data, which are scored" in said


def test_scores_by_task_follow_one_imitation_of_all_tasks(
    model: str, imitated: list[Mapping[str, Any]]
) -> None:
    words = ["eval", "--agent", model, "--warm-start", "4", "--n", "1", "--per-task"]
    words += ["--env", "ScienceWorld-v0", "--size", "micro"]
    assert main(words) == INTERRUPTED
    assert imitated == [{"size": "micro"}]
