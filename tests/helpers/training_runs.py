"""Small training runs over the toy environment: configurations, kills, what must be equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from turngym.algos.core.recipe import Optim, Recipe
from turngym.algos.evaluation.result import RunResult
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes.grpo import grpo
from turngym.algos.rollouts import Chains
from turngym.algos.runs.metrics import without_times
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from turngym.algos.training.trainer import Trainer

OPTIM = Optim(lr=3e-3, critic_lr=1e-2, minibatches=2)


def small(make: Callable[[], Recipe], **more: Any) -> Recipe:
    optim = dataclasses.replace(OPTIM, **more)
    return dataclasses.replace(make(), rollout=Chains(n=3), groups_per_step=2, optim=optim)


def config(model: Path, **more: Any) -> TrainConfig:
    env = EnvConfig(id="Letters-v0")
    settings: dict[str, Any] = {
        "env": env,
        "model": str(model),
        "recipe": small(grpo),
        "budget": Budget(steps=4),
        "evals": (EvalConfig(name="dev", env=env, n=4),),
        "max_tokens": 5,
        "eval_every": 2,
        "checkpoint_every": 2,
        "engine_dtype": "float32",
        "device": "cpu",
        "learner": LearnerSettings(precision="float32"),
    }
    return TrainConfig(**{**settings, **more})


def run(setup: TrainConfig, folder: Path) -> RunResult:
    with Trainer(setup, folder) as trainer:
        return trainer.run()


def numbers(folder: Path) -> list[dict[str, object]]:
    return [without_times(row) for row in read_metrics(folder / "metrics.jsonl")]


def final_weights(folder: Path, step: int = 4) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def kill_after(trainer: Trainer, steps: int) -> None:
    inner = trainer.train_step

    def step() -> dict[str, float]:
        if trainer.counters.step == steps:
            raise Killed
        return inner()

    trainer.train_step = step  # type: ignore[method-assign]
