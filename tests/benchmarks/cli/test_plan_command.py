"""`turngym plan`, `turngym train --preset` and `turngym merge`: what they print and refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
import tyro

from turngym.agents.models.lora import LoraSettings
from turngym.algos.runs.progress import Silent
from turngym.algos.training.presets import PRESETS
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.cli.model_options import lora
from turngym.benchmarks.cli.train import Command as TrainCommand
from turngym.benchmarks.cli.train import configure, expand_words
from turngym.envs.core.errors import BadValueError, UnknownNameError


def command(*words: str) -> TrainCommand:
    return tyro.cli(TrainCommand, args=expand_words(words))


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in PRESETS)


def test_a_plan_shows_memory_tokens_time_and_the_papers_figures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--gpus", "8", "--memory", "80", "--throughput", "20000"]
    assert main(["plan", "--preset", "tree-grpo-3b", *words]) == 0
    said = capsys.readouterr().out
    for part in (
        "3,085,938,688 parameters",
        "optimiser",
        "activations",
        "engine's cache",
        "fits, ",
        "4,096,000",  # 512 prompts x 4 chains x 2,000 tokens
        "205 s",
        "180 steps",
        "36.8",
        "GRPO 31.8",
    ):
        assert part in said, part


def test_a_plan_counts_what_takes_turns(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--preset", "tree-grpo-1.5b", "--gpus", "1"]
    assert main(["plan", *words, "--offload"]) == 0
    said = capsys.readouterr().out
    for part in ("while the engine plays", "while the learner updates", "hand-over", "logits"):
        assert part in said, part
    assert "together" not in said
    assert main(["plan", *words]) == 0
    said = capsys.readouterr().out
    assert "main memory for each GPU" not in said
    assert main(["plan", *words, "--offload-activations"]) == 0
    said = capsys.readouterr().out
    assert "main memory for each GPU" in said
    assert "together" in said
    assert "what is left for up to two" in " ".join(said.split())


def test_a_plan_that_does_not_fit_names_what_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--preset", "tree-grpo-14b", "--gpus", "4"]) == 0
    said = capsys.readouterr().out
    assert "does not fit" in said
    assert "--gpus 16 suffices" in said
    assert "lower --micro-batch-tokens" in said
    assert "give --throughput" in said
    assert main(["plan", "--preset", "tree-grpo-14b", "--gpus", "4", "--max-batch", "24"]) == 0
    assert "lower --max-batch" in capsys.readouterr().out
    assert main(["plan", "--preset", "tree-grpo-14", "--gpus", "4"]) == REFUSED
    assert "Did you mean 'tree-grpo-14b'" in capsys.readouterr().err


@pytest.mark.parametrize("name", PRESETS)
def test_the_command_line_says_the_same_as_the_value(name: str, tiny_model: Path) -> None:
    made = command("--preset", name)
    chosen = PRESETS[name]
    assert (made.recipe, made.model, made.env) == (chosen.recipe, chosen.model, chosen.env)
    assert made.settings.weights == chosen.weights
    if chosen.env == "SearchQA-v0" and "1.5b" in name:
        words = ("--model", str(tiny_model), "--size", "micro", "--env-arg", "max_turns=2")
        config, folder = configure(command("--preset", name, *words, "--max-tokens", "4"), Silent())
        value = chosen.config(model=str(tiny_model), max_tokens=4)
        assert config.recipe == value.recipe
        assert config.learner == value.learner
        assert config.max_context == value.max_context
        assert config.env.settings["structure_score"] == 0.2
        assert folder.name == f"{name}-searchqa-micro-{tiny_model.name}-seed0"


def test_options_beside_a_preset_take_its_place() -> None:
    words = ("--preset=arpo-14b", "--steps", "3", "--recipe-arg", "rollout.initial=2")
    made = command(*words, "--no-gradient-checkpointing", "--lora-rank", "8")
    assert made.steps == 3
    assert not made.learner.gradient_checkpointing
    assert sorted(made.recipe_arg) == [
        "groups_per_step=64",
        "rollout.budget=12",
        "rollout.initial=2",
    ]
    assert made.lora.lora_rank == 8
    assert command("--recipe", "ppo").settings == TrainCommand().settings


@pytest.mark.parametrize(
    "own",
    [
        ("--corpus", "wiki.jsonl", "--data", "nq"),
        ("--env-arg", "data=nq", "--env-arg", "retriever=http://localhost:8000"),
    ],
)
def test_own_files_beside_a_preset_take_the_place_of_its_generated_world(
    own: tuple[str, ...],
) -> None:
    """They were refused: "size='full' describes the generated world"; nobody had given it."""
    assert command("--preset", "search-r1-grpo-7b", *own).env_options.size is None
    assert command("--preset", "search-r1-grpo-7b", *own[4:]).env_options.size == "full"
    assert command("--preset", "search-r1-grpo-7b", *own, "--size", "micro").env_options.size


def test_adapters_are_asked_for_by_options() -> None:
    assert lora(command("--lora-rank", "0").lora) is None
    assert lora(command("--lora-rank", "8").lora) == LoraSettings(rank=8, alpha=16.0)
    words = ("--lora-rank", "8", "--lora-alpha", "4", "--lora-target", "q_proj")
    assert lora(command(*words).lora) == LoraSettings(rank=8, alpha=4.0, targets=("q_proj",))


def test_bad_presets_are_refused() -> None:
    with pytest.raises(BadValueError, match="expected a name"):
        expand_words(["--preset", "--steps"])
    with pytest.raises(UnknownNameError, match="Did you mean 'pasa-7b'"):
        expand_words(["--preset", "pasa"])
    assert expand_words(["--steps", "3"]) == ["--steps", "3"]


def test_merging_needs_adapters(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["merge", str(tiny_model), str(tmp_path / "out")]) == REFUSED
    assert "nothing to merge" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--gpus", "0"], ["--memory", "-1"], ["--lora-rank", "2"]])
def test_options_that_do_nothing_without_a_preset_are_refused(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *given]) == 2
    assert "--preset" in capsys.readouterr().err


def test_no_devices_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--preset", "arpo-7b", "--gpus", "0"]) == 2
    assert "expected at least 1" in capsys.readouterr().err
