"""The table of recipes by name, which the recipes' own files fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...envs.core.errors import BadValueError, UnknownNameError
from ..core.recipe import Recipe
from .settings import with_settings


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


# One optimiser step per small batch at a rate that moves a few million parameters.
SMALL_STEP = {"optim.lr": 3e-4, "optim.minibatches": 1}
SMALL_CHAINS = {**SMALL_STEP, "rollout.n": 8, "groups_per_step": 16}
SMALL_SINGLE = {**SMALL_STEP, "groups_per_step": 128}
SMALL_CRITIC = {"optim.lr": 2e-4, "optim.critic_lr": 1e-3}

RECIPES: dict[str, Entry] = {}
_ALIASES = {"pasasession": "pasa"}


def _plain(name: str) -> str:
    return "".join(c for c in name.lower().replace("+", "p") if c.isalnum())


def find_recipe(name: str) -> tuple[str, Entry]:
    """Return a registered recipe by its name in any spelling ("Tree-GRPO", "REINFORCE++").

    Raises:
        UnknownNameError: No such recipe; the nearest is named.
    """
    plain = _ALIASES.get(_plain(name), _plain(name))
    if plain not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    return plain, RECIPES[plain]


def recipe(
    summary: str, *, small: Mapping[str, Any] | None = None
) -> Callable[[Callable[[], Recipe]], Callable[[], Recipe]]:
    """Make a function's recipe known by the function's name, see :func:`make_recipe`.

    Args:
        summary: One line for lists.
        small: Settings that suit a model of a few million parameters instead of the paper's.

    Raises:
        BadValueError: The name is taken by another recipe.
    """

    def register(factory: Callable[[], Recipe]) -> Callable[[], Recipe]:
        key = _plain(factory.__name__)
        if key in RECIPES:
            raise BadValueError(f"recipe {factory.__name__!r}: taken; choose another name.")
        RECIPES[key] = Entry(factory=factory, summary=summary, small=small or {})
        return factory

    return register


def make_recipe(
    name: str, settings: Mapping[str, Any] | None = None, *, small: bool = False
) -> Recipe:
    """Return the recipe ``name`` with some settings changed.

    Args:
        name: One of :data:`RECIPES`, see :func:`find_recipe`.
        settings: See :func:`~turngym.algos.recipes.settings.with_settings`.
        small: Start from the settings for a model of a few million parameters (a laptop): a
            larger learning rate, smaller batches, no reference. The papers' settings are for
            models a thousand times larger and would not move a small one.

    Raises:
        UnknownNameError: No such recipe or setting; the nearest is named.
        BadValueError: Settings that do not fit together.
    """
    _, entry = find_recipe(name)
    start = dict(entry.small) if small else {}
    return with_settings(entry.factory(), start | dict(settings or {}))
