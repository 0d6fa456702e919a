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
from turngym.benchmarks.cli.train import Command, configure, default_command
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
