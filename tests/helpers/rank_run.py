"""What each process of test_distributed.py runs: jobs that train the tiny model."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import torch
from helpers import letters_world, straggler_world

from turngym.algos.core.recipe import Optim, Recipe
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import Chains
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from turngym.algos.training.trainer import train

assert letters_world.Letters and straggler_world.Stragglers  # noqa: PT018 - registered
STEPS = 3
OPTIM = Optim(lr=3e-3, critic_lr=1e-2, minibatches=2)


def recipe_of(name: str) -> Recipe:
    made = make_recipe(name, {}, small=True)
    return dataclasses.replace(made, rollout=Chains(n=3), groups_per_step=3, optim=OPTIM)


def setup(name: str, model: str, steps: int) -> TrainConfig:
    env = EnvConfig(id="Letters-v0")
    return TrainConfig(
        env=env,
        model=model,
        recipe=recipe_of(name),
        budget=Budget(steps=steps),
        evals=(EvalConfig(name="dev", env=env, n=5),),
        max_tokens=5,
        eval_every=2,
        checkpoint_every=2,
        engine_dtype="float32",
        device="cpu",
        learner=LearnerSettings(precision="float32", micro_batch_tokens=256),
    )


def partial(model: str, steps: int) -> TrainConfig:
    """A run whose steps leave some of their groups to the next ones."""
    made = setup("grpo", model, steps)
    recipe = dataclasses.replace(made.recipe, rollout=Chains(n=2), groups_per_step=6)
    env = EnvConfig(id="Stragglers-v0")
    return dataclasses.replace(made, recipe=recipe, env=env, evals=(), partial_rollouts=0.3)


def rounded(model: str, steps: int) -> TrainConfig:
    """A run whose checkpoints hold the model in bfloat16, while float32 shards learn."""
    return dataclasses.replace(setup("grpo", model, steps), evals=(), weights="bfloat16")


def setup_of(name: str, model: str, steps: int) -> TrainConfig:
    """A run of a recipe by name, ``partial``, or ``rounded``."""
    special = {"partial": partial, "rounded": rounded}
    return special[name](model, steps) if name in special else setup(name, model, steps)


def work(jobs: list[dict[str, Any]]) -> None:
    """Train the model of each job, as the other processes do."""
    torch.set_num_threads(1)
    for job in jobs:
        train(setup_of(job["recipe"], job["model"], job["steps"]), Path(job["folder"]))


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
