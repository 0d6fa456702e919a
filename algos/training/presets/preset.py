"""A preset: the settings of a published run, as a configuration and as command line options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ...core.recipe import Recipe
    from ..config import TrainConfig


SHARED = ("max_tokens", "max_context", "max_batch", "weights", "render")
"""Fields of a preset that :class:`TrainConfig` and the command line have under the same name."""


@dataclass(frozen=True, slots=True)
class Published:
    """A number that the paper reports.

    Attributes:
        measure: The metric and the data set.
        value: The result of the preset's run.
        rival: The baseline's result, empty for none.
    """

    measure: str
    value: str
    rival: str = ""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The settings of a published run; ``notes`` list where they differ from the paper.

    Attributes:
        name: Name on the command line.
        paper: Title and arXiv id.
        recipe: The algorithm's name.
        recipe_settings: Settings that differ from the recipe's own.
        model: Hub name of the starting model.
        env: Id of the environment.
        env_settings: The environment's settings.
        steps: Training steps.
        max_tokens: Maximum tokens of one action.
        max_context: Maximum tokens of a whole path, observations and actions.
        sampled_tokens: Maximum sampled tokens of a path; the others are observations.
        trained_paths: Paths of a task that are trained on, if not the maximum of the rollout.
        max_batch: Actions that one device samples concurrently.
        micro_batch_tokens: Tokens of one forward pass of training.
        weights: Number format of the weights.
        render: How text becomes tokens.
        gpus: Devices that the paper used or, where it does not say, that suffice.
        published: Results that the paper reports, if known.
        notes: What the paper does not state, or does differently.
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
        """Return the recipe with the preset's settings."""
        from ...recipes import make_recipe

        return make_recipe(self.recipe, self.recipe_settings)

    def config(self, **changes: Any) -> TrainConfig:
        """Return the configuration of the run; ``changes`` are fields of :class:`TrainConfig`."""
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
            "learner": learner,
            **{name: getattr(self, name) for name in SHARED},
        }
        return TrainConfig(**(given | changes))

    def options(self) -> list[tuple[str, str]]:
        """Return options of ``turngym train`` with their values; an empty value is a flag."""
        names = ("recipe", "model", "env", "steps", *SHARED, "micro_batch_tokens")
        options = [(f"--{name.replace('_', '-')}", str(getattr(self, name))) for name in names]
        options.append(("--gradient-checkpointing", ""))
        for name, value in self.env_settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            options.append(("--size", text) if name == "size" else ("--env-arg", f"{name}={text}"))
        return options + [("--recipe-arg", f"{k}={v}") for k, v in self.recipe_settings.items()]
