"""Every recipe takes three optimisation steps on every registered environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.learning import LADDER

from turngym.agents.models.random_init import BlankSettings, blank_model
from turngym.agents.scripted import text_env
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import RECIPES, make_recipe, with_settings
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError
from turngym.envs.core.registration import all_ids, find_environment

FEW: Mapping[str, Mapping[str, Any]] = {
    "ppo": {"rollout.n": 2},
    "reinforcepp": {"rollout.n": 2},
    "spo": {"tracker.pool": 4, "tracker.first": 1},
    "aepo": {"rollout.initial": 2, "rollout.budget": 4},
    "at2po": {"rollout.initial": 2, "rollout.nodes": 1},
    "spear": {"rollout.n": 3, "tracker.paths": 1},
    "arpo": {"rollout.initial": 2, "rollout.budget": 4},
    "pasa": {"optim.critic_only_steps": 0},
    "tigpo": {"rollout.n": 3, "tracker.wait": 1},
    "dapo": {"rollout.n": 3, "filter.max_rounds": 2},
    "sampo": {"rollout.n": 3, "filter.max_rounds": 2},
}
SIGNAL = ("Bandit-v0", "Password-v0", "Spawn-v0")
"""Where even a model that knows nothing is told apart, so that weights must move."""
OURS = [e for e in all_ids(hidden=True) if find_environment(e).builtin]
MEMBERS = [["Retail-v0", {"max_turns": 4}, 1], ["MathWord-v0", {}, 1]]
FAMILIES = ("grpo", "ppo", "treegrpo", "arpo", "tarl", "pasa")
"""One recipe of each family: what is fast meets every world with two of them, in turns."""
BRIEF = ("Password-v0", "Spawn-v0")
"""Turns, and sessions: what is fast meets them with every recipe."""
LATE = tuple(e for e in LADDER if e != "Keys-v0")
"""Variants of the others, for the slow run."""
KIN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("hgpo", "g2po", "graphgpo", "tigpo"), ("Keys-v0",)),
    "gigpo": ("SearchQA-v0", "Keys-v0"),
    "igpo": ("SearchQA-v0", "Recall-v0", "Bandit-v0"),
    "hcapo": ("Keys-v0",),
    **dict.fromkeys(("opd", "opid", "aepo", "at2po", "spear"), ("Spawn-v0",)),
    "opsd": ("SearchQA-v0", "Spawn-v0", "Keys-v0"),
}
"""Recipes that need something of a world, or differ in little from those that meet both."""
MIXED = ("grpo", "tarl", "tarlppo")
"""Recipes that are tried on a mixture; its members are rows of their own."""
CELLS = [
    pytest.param(
        name,
        env_id,
        marks=()
        if env_id in KIN.get(name, BRIEF)
        or (env_id not in LATE and name in (FAMILIES[at % 6], FAMILIES[(at + 1) % 6]))
        or (env_id == "MixedTasks-v0" and name == "grpo")
        else pytest.mark.slow,
    )
    for at, env_id in enumerate(OURS)
    for name in RECIPES
    if env_id != "MixedTasks-v0" or name in MIXED
]
LITTLE = BlankSettings(hidden=16, layers=1, inner=16, episodes=10)


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Path] = {}

    def folder(env_id: str) -> Path:
        if env_id not in made:
            made[env_id] = tmp_path_factory.mktemp("blank")
            world = EnvConfig(id=env_id, settings=settings_of(env_id)).make()
            blank_model(world, made[env_id], LITTLE)
        return made[env_id]

    return folder


def settings_of(env_id: str) -> dict[str, Any]:
    """The quick suite's settings: its episodes are short, and a few turns are enough here."""
    row = find_environment(env_id)
    quick = row.matrix["quick"].settings if "quick" in row.matrix else {}
    mixed = {"members": MEMBERS} if env_id == "MixedTasks-v0" else {}
    return {**row.smallest, **quick, **mixed}


def refused(name: str, env_id: str) -> str:
    """Why a recipe makes no sense in an environment; empty where it does."""
    world = text_env(EnvConfig(id=env_id, settings=settings_of(env_id)).make())
    if name in ("graphgpo", "tigpo") and world.chance:
        return "draws what an action brings"
    if name == "maxrl" and world.reward_range[0] < 0:
        return "divides by the mean return"
    return "no accepted answers" if name == "igpo" and not world.has_gold else ""


@pytest.mark.parametrize(("name", "env_id"), CELLS)
def test_three_steps(name: str, env_id: str, blank: Any, tmp_path: Path) -> None:
    few = FEW.get(name, {} if "rollout.n" not in RECIPES[name].small else {"rollout.n": 3})
    recipe = make_recipe(name, {"groups_per_step": 2, **few}, small=True)
    if reason := refused(name, env_id):
        with pytest.raises(BadValueError, match=reason):
            recipe.check(text_env(EnvConfig(id=env_id, settings=settings_of(env_id)).make()))
        return
    if name == "opd":  # of the policy itself there is nothing to learn but what it has moved
        recipe = with_settings(recipe, {"teacher_logprobs.model": str(blank(env_id))})
    setup = TrainConfig(
        env=EnvConfig(id=env_id, settings=settings_of(env_id)),
        model=str(blank(env_id)),
        recipe=recipe,
        budget=Budget(steps=3),
        max_tokens=3,
        checkpoint_every=100,
        engine_dtype="float32",
        device="cpu",
        learner=LearnerSettings(precision="float32"),
    )
    with Trainer(setup, tmp_path / "run") as trainer:
        before = {k: v.clone() for k, v in trainer.learner.policy.state_dict().items()}
        for _ in range(3):
            trainer.train_step()
        after = trainer.learner.policy.state_dict()
        steps = trainer.learner.optimizer_steps
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert len(rows) == 3
    signal = any(
        row.get("update/grad_norm", 0.0) > 0 and row.get("update/optimizer_steps", 0) > 0
        for row in rows
    )
    moved = any(not bool((before[k] == after[k]).all()) for k in before)
    assert moved >= signal >= (env_id in SIGNAL and name != "opd")
    if steps:
        assert all(row.get("update/skipped_steps", 0.0) == 0 for row in rows)


def test_a_recipe_whose_parts_do_not_fit_names_the_reason() -> None:
    from turngym.algos.rollouts import Chains

    for name in ("grpo", "treegrpo", "rloo", "stepdpo"):
        with pytest.raises(BadValueError, match="every advantage would be 0"):
            dataclasses.replace(make_recipe(name), rollout=Chains(n=1))
