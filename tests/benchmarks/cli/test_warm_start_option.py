"""`--warm-start` of `train`, `eval` and `demo`: what is imitated, and what is refused before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.training.config import EnvConfig
from turngym.algos.training.supervised import warm_start as module
from turngym.benchmarks.cli.main import INTERRUPTED, REFUSED, main

TRAIN = ("train", "--env", "Letters-v0", "--warm-start", "4")


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*TRAIN, "--recipe", "opd"], "there is no teacher to learn from"),
        (
            [*TRAIN, "--steps", "-1"],
            "expected at least one limit, none below 0",
        ),
        (["demo", "--minutes", "-1"], "expected at least one limit, none below 0"),
        (["demo", "--warm-start", "-1"], "expected 0 or more"),
    ],
)
def test_what_cannot_be_is_refused_before_minutes_of_imitation(
    tiny_model: Path,
    imitated: list[Mapping[str, Any]],
    words: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*words, "--model", str(tiny_model)]) == REFUSED
    assert says in " ".join(capsys.readouterr().err.split())
    assert imitated == []


def test_a_run_that_fits_imitates(tiny_model: Path, imitated: list[Mapping[str, Any]]) -> None:
    assert main([*TRAIN, "--model", str(tiny_model)]) == INTERRUPTED
    assert imitated == [{}]
