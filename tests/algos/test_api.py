"""A run from one call: what it trains, where, and what it refuses."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers.utils import logging

from turngym.algos import train_on
from turngym.algos.runs.metrics import without_times
from turngym.algos.runs.run_dir import read_json, read_metrics
from turngym.envs.core.errors import BadValueError, TurngymError, UnknownNameError


def test_a_diagnostic_world_is_learnt_and_the_same_call_goes_on(tmp_path: Path) -> None:
    given = {"recipe_settings": {"optim.lr": "1e-3"}, "max_tokens": 3, "eval_n": 20}
    first = train_on("Bandit-v0", steps=2, run_dir=tmp_path, **given)
    assert first.steps == 2
    result = train_on("Bandit-v0", steps=4, run_dir=tmp_path, **given)
    assert (result.steps, result.recipe, result.env_id) == (4, "grpo", "Bandit-v0")
    assert len(result.after) == 1
    assert [r["step"] for r in read_metrics(tmp_path / "metrics.jsonl") if "loss/policy" in r] == [
        1,
        2,
        3,
        4,
    ]


@pytest.mark.parametrize("recipe", ["grpo", "ppo"])
def test_a_run_does_not_depend_on_what_torch_was_told_before(
    recipe: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"recipe_settings": {"groups_per_step": 4}, "max_tokens": 3}
    rows = []
    for name in ("usual", "other"):
        monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / name / "cache"))
        if name == "other":
            request.getfixturevalue("other_torch")
        train_on("Bandit-v0", recipe, steps=1, eval_n=4, run_dir=tmp_path / name / "run", **given)
        metrics = read_metrics(tmp_path / name / "run" / "metrics.jsonl")
        rows.append([without_times(row) for row in metrics])
    assert rows[0] == rows[1]
    assert torch.get_default_dtype() == torch.float64
    assert not torch.is_grad_enabled()


@pytest.mark.parametrize("recipe", ["grpo", "ppo"])
def test_a_run_draws_nothing_from_the_caller_s_random_numbers(recipe: str, tmp_path: Path) -> None:
    def states() -> list[str]:
        legacy = np.random.get_state()  # noqa: NPY002
        return [repr(torch.get_rng_state().tolist()), repr(legacy), repr(random.getstate())]

    before = states()
    given: dict[str, Any] = {"recipe_settings": {"groups_per_step": 4}, "max_tokens": 3}
    train_on("Bandit-v0", recipe, steps=1, eval_n=4, run_dir=tmp_path, **given)
    assert states() == before


def test_the_default_folder_names_recipe_world_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    logging.enable_progress_bar()
    train_on("Bandit-v0", "rloo", steps=1, eval_n=4, max_tokens=3, seed=3)
    assert "it/s" not in capfd.readouterr().err, "bars of transformers"
    assert logging.is_progress_bar_enabled(), "as the caller had it"
    (run_dir,) = (tmp_path / "runs").iterdir()
    assert run_dir.name == "rloo-bandit-micro-starter-seed3"
    assert (run_dir / "result.json").is_file()
    assert read_json(run_dir / "config.json")["env"]["settings"] == {"size": "micro"}


def test_of_several_processes_one_says_what_the_starter_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for rank, times in (("0", 1), ("1", 0)):
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(TurngymError, match="File exists"):
            train_on("Bandit-v0", run_dir=tmp_path / "file")
        told = " ".join(capfd.readouterr().err.split())
        assert told.count("what the starter was made for") == times


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"run_dir": 5}, "train_on: run_dir is 5; expected a path or a text or None"),
        ({"run_dir": b"runs"}, "train_on: run_dir is b'runs'; expected"),
        ({"settings": 5}, "train_on: settings is 5; expected"),
        ({"recipe_settings": ["optim.lr"]}, "train_on: recipe_settings is"),
        ({"model": 5}, "train_on: model is 5; expected"),
        ({"actors": "2"}, "train_on: actors is '2'; expected"),
    ],
)
def test_arguments_of_another_kind_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadValueError, match=said):
        train_on("Bandit-v0", **given)


def test_what_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="max_tokens"):
        train_on("Bandit-v0", run_dir=tmp_path / "x", max_token=3)
    with pytest.raises(UnknownNameError, match="Bandit"):
        train_on("Bandits-v0", run_dir=tmp_path / "x")
    with pytest.raises(UnknownNameError, match="unknown engine"):
        train_on("Bandit-v0", run_dir=tmp_path / "x", engine="tensor")
    assert not (tmp_path / "x").exists()
