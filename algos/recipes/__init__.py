"""The recipes by name, each an algorithm as a value with its paper's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...envs.errors import UnknownNameError
from ..recipe import Recipe
from .grpo import grpo
from .ppo import ppo
from .settings import settings_of, with_settings

__all__ = ["RECIPES", "Entry", "grpo", "make_recipe", "ppo", "settings_of", "with_settings"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A registered recipe.

    Attributes:
        factory: Makes it with its paper's settings.
        summary: One line for lists.
        small: Settings that suit a model of a few million parameters instead, see
            :func:`make_recipe`.
    """

    factory: Callable[[], Recipe]
    summary: str
    small: Mapping[str, Any] = field(default_factory=dict)


RECIPES: Mapping[str, Entry] = {
    "grpo": Entry(
        factory=grpo,
        summary="group mean as baseline, no critic (DeepSeekMath; settings of Search-R1)",
        small={
            "rollout.n": 8,
            "groups_per_step": 16,
            "optim.lr": 3e-4,
            "optim.warmup_steps": 0,
            "optim.minibatches": 1,
            "loss.kl.coef": 0.0,
            "loss.entropy_coef": 0.0,
        },
    ),
    "ppo": Entry(
        factory=ppo,
        summary="critic and GAE, KL in the reward (Schulman et al.; settings of Search-R1)",
        small={
            "groups_per_step": 128,
            "optim.lr": 2e-4,
            "optim.critic_lr": 1e-3,
            "optim.warmup_steps": 0,
            "optim.minibatches": 1,
            "credit.kl_coef": 0.0,
            "loss.policy.entropy_coef": 0.0,
        },
    ),
}


def make_recipe(
    name: str, settings: Mapping[str, Any] | None = None, *, small: bool = False
) -> Recipe:
    """The recipe ``name`` with some settings changed.

    Args:
        name: One of :data:`RECIPES`, in any case.
        settings: See :func:`~turngym.algos.recipes.settings.with_settings`.
        small: Start from the settings for a model of a few million parameters (a laptop): a
            larger learning rate, smaller batches, no reference. The papers' settings are for
            models a thousand times larger and would not move a small one.

    Raises:
        UnknownNameError: No such recipe or setting; the nearest is named.
        BadValueError: Settings that do not fit together.
    """
    entry = RECIPES.get(name.lower())
    if entry is None:
        raise UnknownNameError("recipe", name, RECIPES)
    start = dict(entry.small) if small else {}
    return with_settings(entry.factory(), start | dict(settings or {}))
