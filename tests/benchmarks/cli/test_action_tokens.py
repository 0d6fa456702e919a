"""Where ``--max-tokens`` is left out, a run's policy writes as much as it was trained to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.board_helpers import tiny_suite

from turngym.algos.evaluation.defaults import MAX_TOKENS
from turngym.algos.runs.progress import Silent
from turngym.benchmarks.cli.eval import Command as EvalCommand
from turngym.benchmarks.cli.eval import _action_tokens
from turngym.benchmarks.cli.main import main
from turngym.benchmarks.cli.model_options import action_tokens, made_for
from turngym.leaderboard.suites.files import write_suite


class Notes(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def test_a_run_writes_as_much_as_it_was_trained_to(tmp_path: Path) -> None:
    notes = Notes()
    steps = []
    for name, config in (("long", {"max_tokens": 160}), ("short", {"max_tokens": 3})):
        step = tmp_path / name / "checkpoints" / "step-000003"
        step.mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        steps.append(str(step))
    long, short = steps
    assert action_tokens([long], None, notes) == 160
    assert notes.said[0].startswith("--max-tokens 160: ")
    assert action_tokens([short], None, notes) == 3
    notes.said.clear()
    assert action_tokens(["organisation/model", str(tmp_path)], None, notes) == MAX_TOKENS
    assert action_tokens([], None, notes) == MAX_TOKENS
    assert action_tokens([long], 10, notes) == 10
    assert notes.said == []
    assert action_tokens([short, "organisation/model"], None) == MAX_TOKENS  # scores are compared
    assert action_tokens([short, long], None) == 160


def test_eval_and_submit_cut_no_action_of_a_run_short(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out, entry = (str(tmp_path / name) for name in ("run", "scores.json", "entry"))
    words = ["--env", "Bandit-v0", "--steps", "1", "--eval-split", "", "--max-tokens", "70"]
    words += ["--recipe.groups_per_step", "2", "--recipe.rollout.n", "2", "--run-dir", run]
    assert main(["train", "--model", str(tiny_model), *words]) == 0
    assert main(["eval", "--agent", run, "--env", "Bandit-v0", "--n", "2", "--out", out]) == 0
    assert {row["max_tokens"] for row in json.loads(Path(out).read_text())} == {70}
    assert "--max-tokens 70: what this model was trained with" in capsys.readouterr().err
    words = ["--name", "a", "--organisation", "b", "--licence", "MIT", "--out", entry]
    suite = str(write_suite(tiny_suite(), tmp_path))
    assert main(["submit", run, "--suite", suite, *words]) == 0
    card = json.loads((Path(entry) / "entry.json").read_text())["card"]
    assert card["sampling"].endswith("at most 70 tokens")


def test_what_eval_compares_with_a_run_is_not_cut_short(tmp_path: Path) -> None:
    step = tmp_path / "run" / "checkpoints" / "step-000003"
    step.mkdir(parents=True)
    (step / "config.json").write_text("{}")
    (tmp_path / "run" / "config.json").write_text(json.dumps({"max_tokens": 3}))
    short = str(step)
    assert _action_tokens(EvalCommand(agent=(short, "random"))) == 3
    for other in ("starter", "smollm2-135m", "organisation/model"):
        assert _action_tokens(EvalCommand(agent=(short, other))) == MAX_TOKENS
    assert _action_tokens(EvalCommand(agent=(short, "starter"), max_tokens=5)) == 5


def test_a_run_is_known_from_within_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = tmp_path / "run" / "checkpoints" / "step-000003"
    step.mkdir(parents=True)
    env = {"id": "A-v0", "settings": {"size": "micro"}}
    (tmp_path / "run" / "config.json").write_text(json.dumps({"max_tokens": 3, "env": env}))
    monkeypatch.chdir(step.parent)
    assert (action_tokens([step.name], None), made_for(step.name, "A-v0")["size"]) == (3, "micro")
    monkeypatch.chdir(step)
    assert action_tokens(["."], None) == 3
