"""A small learner and an update of it on a fixed forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from helpers.branching import branching
from helpers.small_models import model

from turngym.algos.core.protocols import Credits
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe

SIZES: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 4}


def learner(recipe: str = "grpo", **more: Any) -> Learner:
    given: dict[str, Any] = {"precision": "float32", "shared_prefix": False} | more
    settings = LearnerSettings(**{"micro_batch_tokens": 600} | given)
    changes = {"optim.minibatches": 1}
    return Learner(
        model("Qwen2", **SIZES), make_recipe(recipe, changes), pad_id=0, settings=settings
    )


def forest() -> Any:
    return branching(3, groups=6)


def update(made: Learner) -> None:
    grown = forest()
    lengths = [sum(len(t.act_ids) for t in grown.turns(path)) for path in grown]
    rng = np.random.default_rng(0)
    advantages = [rng.normal(size=n).astype(np.float32) for n in lengths]
    annotations = {}
    if "ref_logprobs" in made.recipe.needs:
        annotations["ref_logprobs"] = made.ref_logprobs(grown)
    targets = advantages if made.critic is not None else None
    if made.critic is not None:
        annotations["values"] = made.values(grown)
    made.update(grown, annotations, Credits(advantages=advantages, value_targets=targets))


def trained(made: Learner) -> list[torch.Tensor]:
    return [p for group in made.optimizer.param_groups for p in group["params"]]
