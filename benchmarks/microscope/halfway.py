"""The policy half way: a reference run of a column, that all its rows are measured at."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...algos.core.recipe import Recipe
from ...algos.training.config import Budget, TrainConfig
from ...algos.training.policy_files import save_policy
from ...algos.training.trainer import Trainer
from ...envs.utils.garbage_collection import settled_heap

_ALL_STEPS = 2**31 - 1


def train_halfway(config: TrainConfig, folder: Path) -> None:
    """Train a run to its budget and keep the policy alone.

    Args:
        config: The reference run, with half of a cell's budget.
        folder: Gets the policy and its tokenizer; replaced where it exists.

    Raises:
        TurngymError: Training failed.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    with TemporaryDirectory() as scratch, _open(config, Path(scratch)) as trainer, settled_heap():
        trainer.run()
        save_policy(trainer.learner.whole_policy(), part)
        trainer.tokenizer.save_pretrained(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.replace(folder)


def train_critic(config: TrainConfig, recipe: Recipe) -> Mapping[str, Any]:
    """Return the weights of a recipe's critic after a budget of play by a policy that stays.

    A run that comes to this policy has a critic that learned on the way. This one learned from as
    many tokens, all of this policy.

    Args:
        config: Names the policy; its budget is the critic's.
        recipe: Has a critic.

    Raises:
        TurngymError: Training failed.
    """
    frozen = replace(recipe, optim=replace(recipe.optim, critic_only_steps=_ALL_STEPS))
    own = replace(config, recipe=frozen)
    with TemporaryDirectory() as scratch, _open(own, Path(scratch)) as trainer, settled_heap():
        trainer.run()
        critic = trainer.learner.critic
        assert critic is not None
        return {name: value.detach().clone() for name, value in critic.state_dict().items()}


def bare(config: TrainConfig, budget: Budget, **changes: Any) -> TrainConfig:
    """Return a run without evaluations and checkpoints, under another budget."""
    plain: dict[str, Any] = {"evals": (), "eval_every": 0, "records": "metrics"}
    return replace(config, budget=budget, **plain, **changes)


def _open(config: TrainConfig, scratch: Path) -> Trainer:
    return Trainer(config, scratch / "run")
