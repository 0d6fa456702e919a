"""`turngym train --config RUN` says a saved run again, but for the options beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tyro

from turngym.algos.recipes import RECIPES, make_recipe
from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import plain_data
from turngym.benchmarks.cli import saved_config
from turngym.benchmarks.cli.arguments import expand_dotted
from turngym.benchmarks.cli.env_options import EnvOptions
from turngym.benchmarks.cli.train import Command, configure, default_command


def test_own_files_beside_a_saved_run_take_the_place_of_its_generated_world(
    tiny_model: Path, tmp_path: Path
) -> None:
    """Its size and hops could not be left out, and were refused beside the files."""
    small = EnvOptions(size="micro", hops=(1,), env_arg=("max_turns=1",))
    run = Command(env="SearchQA-v0", env_options=small, model=str(tiny_model))
    (tmp_path / "config.json").write_text(json.dumps(configure(run, Silent())[0].resolved("d")))

    def settings(*words: str) -> list[str]:
        found = default_command(expand_dotted(["--config", str(tmp_path), *words]))
        assert found is not None
        return sorted(word.partition("=")[0] for word in found.env_options.env_arg)

    assert settings("--data", "nq", "--corpus", "wiki.jsonl") == ["max_turns"]
    assert settings("--env.data", "nq") == ["max_turns"]
    assert settings("--env.top_k", "2") == ["hops", "max_turns", "size"]


def test_a_run_is_said_again_by_its_configuration(tiny_model: Path, tmp_path: Path) -> None:
    words = ["--env", "Letters-v0", "--env.count", "4", "--model", str(tiny_model)]
    words += ["--recipe", "ppo", "--recipe.optim.lr", "0.25", "--recipe.loss.policy.clip.high=0.3"]
    words += [
        "--steps",
        "3",
        "--tokens",
        "900",
        "--seed",
        "5",
        "--eval-n",
        "4",
        "--max-tokens",
        "7",
    ]
    words += ["--optimizer", "adamw", "--lora-rank", "2", "--keep", "1", "--critic", "shared"]
    command = tyro.cli(Command, args=expand_dotted(words))
    config, _ = configure(command, Silent())
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config.resolved("digest")))

    def again(*more: str) -> dict[str, Any]:
        given = ["--config", str(file), *more]
        made = tyro.cli(Command, args=expand_dotted(given), default=default_command(given))
        return configure(made, Silent())[0].resolved("digest")

    assert again() == config.resolved("digest")
    other = again("--seed", "6", "--micro-batch-tokens", "99")
    assert (other["seed"], other["learner"]["micro_batch_tokens"]) == (6, 99)
    assert other["recipe"] == config.resolved("digest")["recipe"]
    assert default_command(["--seed", "3"]) is None
    # what the run had changed itself
    other = again("--recipe.optim.lr", "0.5", "--env.count", "5")
    assert other["recipe"]["optim"]["lr"] == 0.5
    assert other["recipe"]["loss"]["policy"]["clip"]["high"] == 0.3
    assert other["env"]["settings"] == {"count": 5}
    assert again("--recipe-arg", "optim.lr=0.5")["recipe"]["optim"]["lr"] == 0.5
    assert again("--lora-rank", "0")["lora"] is None
    assert again("--lora-rank", "4", "--lora-rslora")["lora"]["rslora"] is True
    # another recipe has its own settings, those for small models too
    plain = ["--env", "Letters-v0", "--env.count", "4", "--model", str(tiny_model)]
    plain += ["--recipe", "drgrpo"]
    fresh = configure(tyro.cli(Command, args=expand_dotted(plain)), Silent())[0]
    other = again("--recipe", "drgrpo")
    assert other["recipe"] == fresh.resolved("digest")["recipe"]
    assert (again()["learner"]["critic"], other["learner"]["critic"]) == ("shared", "own")


def test_every_recipe_of_a_run_is_said_again() -> None:
    """Also those whose annotators or shapers the settings for small models change."""
    for name in RECIPES:
        made = make_recipe(name, small=True)
        found = json.loads(json.dumps(plain_data(made)))
        said, changes = saved_config._recipe(found, "here")
        again = {key: json.loads(value) for key, _, value in (c.partition("=") for c in changes)}
        assert make_recipe(said, again) == made
