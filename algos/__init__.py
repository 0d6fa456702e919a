"""Algorithms: rollout x credit x loss, the learner, and the training loop.

A run takes three lines; the same call again resumes an interrupted one:

    from turngym.algos import train_on

    result = train_on("SearchQA-v0", "grpo", settings={"size": "micro"}, max_tokens=16)
    print(result.before[0].success.mean, result.after[0].success.mean)

or, with everything in sight, some more:

    from turngym.agents.starter import ensure_starter
    from turngym.algos import Budget, EnvConfig, EvalConfig, TrainConfig, make_recipe, train

    env = EnvConfig(id="SearchQA-v0", settings={"size": "micro"})
    result = train(
        TrainConfig(
            env=env,
            model=str(ensure_starter("SearchQA-v0")),
            recipe=make_recipe("grpo", {"optim.lr": 3e-4}, small=True),
            budget=Budget(steps=40),
            evals=(EvalConfig(name="dev", env=env, split="dev", n=200),),
            max_tokens=16,
        ),
        "runs/first",
    )
    print(result.before[0].success.mean, result.after[0].success.mean)

The names below load their modules when first used, so that importing this stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import train_on
    from .core.recipe import Optim, Recipe
    from .evaluation.evaluate import EvalSet, Evaluation, evaluate_model, evaluate_policy
    from .evaluation.lm_agent import TokenAgent
    from .evaluation.result import RunResult
    from .learner.learner import Learner
    from .learner.settings import LearnerSettings
    from .recipes import make_recipe
    from .training.config import Budget, EnvConfig, EvalConfig, TrainConfig
    from .training.trainer import Trainer, train

_HOMES = {
    "training.config": ("Budget", "EnvConfig", "EvalConfig", "TrainConfig"),
    "evaluation.evaluate": ("EvalSet", "Evaluation", "evaluate_model", "evaluate_policy"),
    "learner.learner": ("Learner",),
    "learner.settings": ("LearnerSettings",),
    "core.recipe": ("Optim", "Recipe"),
    "recipes": ("make_recipe",),
    "evaluation.result": ("RunResult",),
    "api": ("train_on",),
    "evaluation.lm_agent": ("TokenAgent",),
    "training.trainer": ("Trainer", "train"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Budget",
    "EnvConfig",
    "EvalConfig",
    "EvalSet",
    "Evaluation",
    "Learner",
    "LearnerSettings",
    "Optim",
    "Recipe",
    "RunResult",
    "TokenAgent",
    "TrainConfig",
    "Trainer",
    "evaluate_model",
    "evaluate_policy",
    "make_recipe",
    "train",
    "train_on",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
