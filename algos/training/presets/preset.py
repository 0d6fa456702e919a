"""A preset: the settings of a published run as one value, and as words of the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ...core.recipe import Recipe
    from ..config import TrainConfig


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of the paper.

    Attributes:
        measure: What was measured, and on what.
        value: The preset's own run.
        rival: What it is compared with, empty for nothing.
    """

    measure: str
    value: str
    rival: str = ""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The settings of a published run; where it departs from the paper, ``notes`` say so.

    Attributes:
        name: On the command line.
        paper: Title and arXiv id.
        recipe: The algorithm's name.
        recipe_settings: Settings that differ from the recipe's own.
        model: Hub name of the starting model.
        env: Id of the environment.
        env_settings: Its settings.
        steps: Training steps.
        max_tokens: Most tokens of one action.
        max_context: Most tokens of context and action together: of a whole path.
        sampled_tokens: Most tokens of a path that are sampled; the others are observations.
        trained_paths: Paths of a task that are trained on, where the rollout does not say.
        max_batch: Actions that one device samples at a time.
        micro_batch_tokens: Tokens of one forward pass of training.
        weights: Number format of the weights.
        render: How text becomes tokens.
        gpus: Devices that the paper used or, where that is not known, that suffice.
        published: Figures of the paper; empty where none is at hand.
        notes: What the paper does not state or does in another way.
    """

    name: str
    paper: str
    recipe: str
    recipe_settings: Mapping[str, Any] = field(default_factory=dict)
    model: str
    env: str
    env_settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int
    max_tokens: int
    max_context: int
    sampled_tokens: int
    trained_paths: int | None = None
    max_batch: int = 64
    micro_batch_tokens: int = 16_384
    weights: Literal["float32", "bfloat16"] = "bfloat16"
    render: Literal["auto", "plain", "chat", "inline"] = "auto"
    gpus: int = 8
    published: tuple[Published, ...] = ()
    notes: tuple[str, ...] = ()

    def make_recipe(self) -> Recipe:
        """The algorithm with the preset's settings."""
        from ...recipes import make_recipe

        return make_recipe(self.recipe, self.recipe_settings)

    def config(self, **changes: Any) -> TrainConfig:
        """The run as a value; ``changes`` are fields of :class:`TrainConfig`."""
        from ...learner.settings import LearnerSettings
        from ..config import Budget, EnvConfig, EvalConfig, TrainConfig

        env = EnvConfig(id=self.env, settings=self.env_settings)
        learner = LearnerSettings(
            micro_batch_tokens=self.micro_batch_tokens, gradient_checkpointing=True
        )
        given: dict[str, Any] = {
            "env": env,
            "model": self.model,
            "recipe": self.make_recipe(),
            "budget": Budget(steps=self.steps),
            "evals": (EvalConfig(name="dev", env=env, split="dev"),),
            "max_tokens": self.max_tokens,
            "max_context": self.max_context,
            "max_batch": self.max_batch,
            "weights": self.weights,
            "render": self.render,
            "learner": learner,
        }
        return TrainConfig(**(given | changes))

    def words(self) -> list[tuple[str, str]]:
        """Options of ``turngym train`` with their values; an empty value is a switch."""
        plain = {
            "recipe": self.recipe,
            "model": self.model,
            "env": self.env,
            "steps": self.steps,
            "max-tokens": self.max_tokens,
            "max-context": self.max_context,
            "max-batch": self.max_batch,
            "micro-batch-tokens": self.micro_batch_tokens,
            "weights": self.weights,
            "render": self.render,
        }
        options = [(f"--{name}", str(value)) for name, value in plain.items()]
        options.append(("--gradient-checkpointing", ""))
        settings = dict(self.env_settings)
        if "size" in settings:
            options.append(("--size", str(settings.pop("size"))))
        options += [("--env-arg", f"{k}={_typed(v)}") for k, v in settings.items()]
        options += [("--recipe-arg", f"{k}={v}") for k, v in self.recipe_settings.items()]
        return options


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
