"""``starter`` is a model wherever a command asks for one of an environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.runs.progress import Silent
from turngym.benchmarks.cli import demo
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.model_options import starter
from turngym.benchmarks.cli.starters import StarterScore, score_starter
from turngym.benchmarks.cli.train import Command, configure


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))


def test_eval_scores_the_starter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "scores.json"
    words = ["eval", "--agent", "starter", "random", "--env", "Bandit-v0", "--n", "4"]
    assert main([*words, "--max-tokens", "4", "--out", str(out)]) == 0
    rows = json.loads(out.read_text())
    assert [row["agent"] for row in rows] == ["starter", "random"]
    assert rows[0]["greedy"]["n"] == 4
    assert "unknown agent" not in capsys.readouterr().err


def test_a_word_like_it_is_told_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["eval", "--env", "Bandit-v0"], ["play", "Bandit-v0"]):
        assert main([*words, "--agent", "startr"]) == REFUSED
        assert "Did you mean 'starter'?" in " ".join(capsys.readouterr().err.split())


def test_nothing_is_made_for_options_that_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "--agent", "starter", "no-such-agent", "--env", "Bandit-v0"]
    assert main(words) == REFUSED
    assert "no-such-agent" in capsys.readouterr().err
    assert not (tmp_path / "cache" / "starters").exists()


def test_actions_of_no_tokens_are_refused_before_a_model_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["starters", "--env", "Bandit-v0"], ["probe", "Bandit-v0"]):
        assert main([*words, "--max-tokens", "0"]) == REFUSED
        assert "max_tokens is 0" in capsys.readouterr().err
        assert not (tmp_path / "cache" / "starters").exists()


def test_scores_of_starters_stay_where_a_later_one_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(name: str, *rest: Any) -> StarterScore:
        if name == "Corridor-v0":
            raise KeyboardInterrupt
        return score_starter(name, *rest)

    monkeypatch.setattr("turngym.benchmarks.cli.starters.score_starter", stopped)
    out = tmp_path / "scores.json"
    words = ["starters", "--n", "4", "--max-tokens", "4", "--out", str(out), "--env", "Bandit-v0"]
    assert main([*words, "Corridor-v0"]) == 130
    assert "Bandit-v0" in capsys.readouterr().out
    assert [row["starter"] for row in json.loads(out.read_text())] == ["Bandit-v0"]
    out.write_text("as it was")
    assert main([*words, "Corridor-v0"]) == 130
    assert out.read_text() == "as it was"
    assert main(words) == 0
    assert out.read_text() != "as it was"


def test_play_shows_the_starter_in_the_world_that_it_was_made_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    assert main(["play", "Bandit-v0", "--agent", "starter", "--max-tokens", "2"]) == 0
    assert "turn 1 of" in capsys.readouterr().out
    play = "turngym.benchmarks.cli.play"
    monkeypatch.setattr(f"{play}.starter", lambda *_: str(tiny_model))
    monkeypatch.setattr(f"{play}.made_for", lambda *_: {"size": "micro"})
    short = ["--env.prompt", "none", "--env.max_turns", "1", "--max-tokens", "2"]
    assert main(["play", "SearchQA-v0", "--agent", "starter", *short]) == 0
    assert "--env.size micro: what this model was made for" in capsys.readouterr().err


def test_train_takes_it_for_the_model_that_is_left_out() -> None:
    named, left_out = (
        configure(Command(env="Bandit-v0", model=model, eval_n=2), Silent())
        for model in ("starter", None)
    )
    assert named == left_out
    assert named[0].model == starter("Bandit-v0", Silent())


def test_the_demo_takes_it_for_its_small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str | None] = []
    monkeypatch.setattr(demo, "_show_small_model", lambda command: shown.append(command.model))
    demo.run(demo.Command(model="starter"))
    assert shown == ["starter"]
