"""Options that would change nothing beside others are refused, with the others named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tyro
from helpers.prompting_help import write_world

from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import EvalConfig
from turngym.benchmarks.cli.arguments import expand_dotted
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.train import Command, configure, default_command, expand_words
from turngym.envs.core.errors import BadValueError


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == REFUSED
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("split", ["dev", "train"])
def test_a_split_beside_files_to_score_is_refused(
    split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write_world(tmp_path)
    words = ["eval", "--agent", "null", "--corpus", made["corpus"], "--split", split]
    said = refused([*words, "--eval-data", f"mine={made['data']}"], capsys)
    assert f"--split {split}: does not go with --eval-data" in said


def test_a_split_and_files_to_evaluate_take_each_others_place(
    tiny_model: Path, tmp_path: Path
) -> None:
    made = write_world(tmp_path)
    words = ["--data", made["data"], "--corpus", made["corpus"], "--model", str(tiny_model)]
    words += ["--env.prompt", "none", "--env.max_turns", "2", "--max-tokens", "6"]

    def evals(*given: str) -> tuple[EvalConfig, ...]:
        options = expand_dotted(given)
        command = tyro.cli(Command, args=options, default=default_command(options) or Command())
        config = configure(command, Silent())[0]
        (tmp_path / "config.json").write_text(json.dumps(config.resolved("digest")))
        return config.evals

    files = ["--eval-data", f"mine={made['data']}"]
    with pytest.raises(BadValueError, match="--eval-split test: does not go with --eval-data"):
        evals(*words, *files, "--eval-split", "test")
    assert [one.name for one in evals(*words, *files)] == ["mine"]
    saved = ["--config", str(tmp_path)]
    assert [one.split for one in evals(*saved, "--eval-split", "train")] == ["train"]
    assert [one.name for one in evals(*saved, *files)] == ["mine"]


def test_no_evaluation_goes_with_none_in_between_and_with_what_a_preset_says() -> None:
    none = ["--eval-split", "", "--eval-every", "0"]
    assert expand_words(none) == none
    preset = [*none[:2], "--preset", "pasa-7b"]
    assert expand_words(preset)[-4:] == preset


SUBMIT = ["--name", "a", "--organisation", "b", "--licence", "MIT", "--out", "entry"]
UNREAD = [
    ("eval --agent expert --env Letters-v0 --max-batch 3", "--max-batch: goes with an agent that"),
    ("eval --agent null random --env Letters-v0 --device cpu", "--device: goes with an agent"),
    ("play Letters-v0 --agent random --temperature .5", "--temperature needs an --agent that is a"),
    ("play Letters-v0 --agent random --engine vllm", "--engine needs an --agent that is a model"),
    ("train --eval-split= --eval-n 9", '--eval-n: does nothing with --eval-split ""'),
    (
        "train --eval-every 5 --transcripts 9 --eval-split=",
        "--eval-every, --transcripts: do nothing",
    ),
    ("submit expert --max-tokens 9", "--max-tokens needs a source that is a model"),
    ("submit played.jsonl --device cpu", "--device needs a source that is a model"),
    ("submit expert --fill-missing", "--fill-missing needs a source that is a file of"),
    ("papers draw --size micro --temperature 1", "--temperature needs an --agent that is a model"),
    ("papers curve --size micro --n 1 --max-batch 9", "--max-batch needs an --agent that is a"),
    ("armap pairs --out p --player random --max-tokens 8", "--max-tokens needs a --player that is"),
    ("armap train --pairs p --out r --model m --env WebShop-v0", "--env needs --model starter"),
    ("drrn --out d --eval-n 0 --eval-split test", "--eval-split needs --eval-n above 0"),
    ("selector train --out s --rows r --split dev", "--split needs questions of an environment"),
    ("papers check folder --all --sample 9", "--sample needs --all left out"),
    ("fidelity household folder --runs 3", "--runs needs --live"),
    ("selector eval folder --rows r --seed 3", "--seed needs questions of an environment"),
]


@pytest.mark.parametrize(("words", "said"), UNREAD)
def test_options_that_nobody_reads_are_refused(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused([*words.split(), *SUBMIT * words.startswith("submit")], capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("drrn --out d --size micro --eval-n -3", "n is -3; expected at least 1"),
        ("drrn --out d --size micro --eval-split tset", "unknown split 'tset'"),
        ("leaderboard season s --home h --session-s -1", "season s: session_s: Input should be"),
    ],
)
def test_numbers_and_splits_are_refused_before_the_work(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "turngym.algos.training.supervised.drrn.train_drrn", lambda *_: pytest.fail("trained")
    )
    assert said in refused(words.split(), capsys)
    assert not (tmp_path / "h").exists()


def test_the_model_of_prompting_agents_has_an_engine(
    tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", "--agent", "greedy", "--env", "Letters-v0", "--n", "1", "--max-batch", "3"]
    assert main([*words, "--model", str(tiny_model), "--device", "cpu"]) == 0
    where = ["--endpoint", "http://localhost:9/v1", "--model-name", "m"]
    assert "--max-batch: goes with" in refused([*words, *where], capsys)
