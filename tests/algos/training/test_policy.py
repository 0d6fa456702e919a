"""Which model a run trains: a small one of our own, or transformers', with the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.training_runs import (
    Killed,
    config,
    final_weights,
    kill_after,
    numbers,
    run,
    same,
    small,
)
from transformers import Qwen3ForCausalLM

from turngym.agents.models.lora import LoraSettings
from turngym.agents.models.qwen3 import Qwen3ForCausalLM as Own
from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.runs.progress import Silent
from turngym.algos.training import policy
from turngym.algos.training.policy import load_policy
from turngym.algos.training.trainer import Trainer


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blank")
    blank_model(
        gym.make("Letters-v0"), folder, BlankSettings(hidden=16, inner=24, vocabulary="bytes")
    )
    return folder


def test_small_models_are_our_own_where_that_does(blank: Path, tiny_model: Path) -> None:
    def kind(**more: Any) -> type:
        return type(load_policy(config(blank, **more), Silent())[0])

    assert kind() is kind(attention="eager") is kind(weights="bfloat16") is Own
    assert kind(attention="flex_attention") is Qwen3ForCausalLM
    assert kind(learner=LearnerSettings(gradient_checkpointing=True)) is Qwen3ForCausalLM
    assert kind(engine="http") is Qwen3ForCausalLM
    assert type(load_policy(config(tiny_model), Silent())[0]).__name__ == "Qwen2ForCausalLM"
    assert type(load_policy(config(blank), Silent(), waits=True)[0]) is Qwen3ForCausalLM


def test_adapters_are_put_on_transformers_models(blank: Path) -> None:
    pytest.importorskip("peft")
    found, _ = load_policy(config(blank, lora=LoraSettings(rank=2)), Silent())
    assert type(found.get_base_model()) is Qwen3ForCausalLM


RECIPES = {
    "grpo": {"loss.kl.coef": 0.01},
    "ppo": {},
    "tarlppo": {},
    "gspo": {},
}
BRIEFLY = (("grpo", "own"), ("ppo", "own"), ("tarlppo", "shared"))
"""Without a critic, with one of its own, and with one on the policy; the others are slow."""


@pytest.mark.parametrize(
    ("name", "critic"),
    [
        pytest.param(name, critic, marks=() if (name, critic) in BRIEFLY else pytest.mark.slow)
        for name in RECIPES
        for critic in ("own", "shared")
    ],
)
def test_runs_have_the_numbers_of_transformers_models(
    name: str, critic: Any, blank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_recipe(name, RECIPES[name], small=True)
    if critic == "shared" and not made.critic:
        pytest.skip("has no critic")
    settings = {"rollout.n": 3, "groups_per_step": 2, **RECIPES[name]}
    setup = config(
        blank,
        recipe=make_recipe(name, settings, small=True),
        learner=LearnerSettings(precision="float32", critic=critic),
    )
    run(setup, tmp_path / "own")
    monkeypatch.setattr(policy, "_may_be_own", lambda _: False)
    run(setup, tmp_path / "theirs")
    assert numbers(tmp_path / "own") == numbers(tmp_path / "theirs")
    assert same(final_weights(tmp_path / "own"), final_weights(tmp_path / "theirs"))


def test_a_run_that_began_with_the_one_goes_on_with_the_other(
    blank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = config(blank, recipe=small(lambda: make_recipe("grpo", {}, small=True)))
    run(setup, tmp_path / "straight")
    with monkeypatch.context() as patch:
        patch.setattr(policy, "_may_be_own", lambda _: False)
        with Trainer(setup, tmp_path / "killed") as trainer:
            kill_after(trainer, 2)
            with pytest.raises(Killed):
                trainer.run()
    run(setup, tmp_path / "killed")
    assert same(final_weights(tmp_path / "straight"), final_weights(tmp_path / "killed"))
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "killed")
