"""The table of recipes by name, which the recipes' own files fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


# A rate that moves a few million parameters, and four optimiser steps per batch: in the second pass
# the policy is no longer the one that sampled, so ratios and clips act (on 1 to 2 % of the tokens
# of micro SearchQA). The warm-up keeps the first steps, of full size by Adam's scale, from spoiling
# a good start. Measured against one step of 3e-4 per batch: equal success after 40 batches.
SMALL_STEP = {
    "optim.lr": 2e-4,
    "optim.epochs": 2,
    "optim.minibatches": 2,
    "optim.warmup_steps": 10,
}
SMALL_CHAINS = {**SMALL_STEP, "rollout.n": 8, "groups_per_step": 16}
SMALL_SINGLE = {**SMALL_STEP, "groups_per_step": 128}
SMALL_DISTILL = {"optim.lr": 2e-4, "optim.warmup_steps": 10, "groups_per_step": 128}
SMALL_HINTS = {"annotators.context_logprobs.intro": ""}
SMALL_CRITIC = {"optim.critic_lr": 1e-3}


class SameGradient(NamedTuple):
    """Says which other recipe gives the same update on the same rollouts, and why."""

    equals: str
    why: str


ONE_GRADIENT: Mapping[str, SameGradient] = {
    "arpo": SameGradient(
        "grpo",
        "its soft advantage is GRPO's over all paths of the prompt: only which paths are played "
        "differs",
    ),
    "cispo": SameGradient(
        "grpo",
        "in four optimiser steps hardly a ratio leaves the clip range, so its bounded weight and "
        "the clip differ on 1 to 2 % of the tokens; many updates on a batch tell them apart",
    ),
    "dapo": SameGradient(
        "grpo",
        "on groups that its filter keeps, clip-higher and the missing KL turn an update by less "
        "than a tenth of a radian; answers that are too long for it do not occur in small models",
    ),
    "dppo": SameGradient(
        "grpo",
        "in four optimiser steps hardly a probability moves by .2 or a ratio leaves the clip "
        "range, so mask and clip drop next to nothing; many updates on a batch tell them apart",
    ),
    "opid": SameGradient(
        "grpo",
        "a small model that has not learned to read demonstrations shifts next to nothing when it "
        "is given one",
    ),
    "spear": SameGradient(
        "grpo",
        "the update on a step's own rollouts is GRPO's without KL; what sets it apart is the "
        "update on stored paths that follows some of them, and a bonus for numbers of turns",
    ),
    "hcapo": SameGradient(
        "grpo",
        "a small model hardly reads the end that it is told, so its ratios are near 1, and in "
        "successes of about equal length the second term repeats the first",
    ),
}
"""Recipes whose whole update, with their small settings and on the same rollouts, has a cosine of
more than .99 with another recipe's: where such rows differ in a table, the rollouts differ."""

_ADVICE = (
    "One of your own is known once its file is imported: --plugin FILE on the command line, and "
    "beside --config too."
)

RECIPES: dict[str, Entry] = {}
_ALIASES = {"pasasession": "pasa"}


def _plain(name: str) -> str:
    return "".join(c for c in name.lower().replace("+", "p") if c.isalnum())


def find_recipe(name: str) -> tuple[str, Entry]:
    """Return a registered recipe by its name in any spelling ("Tree-GRPO", "REINFORCE++").

    Raises:
        UnknownNameError: No such recipe; the nearest is named.
        BadValueError: Something else than a name.
    """
    if not isinstance(name, str):
        raise BadValueError(
            f"recipe: got a {type(name).__name__}; expected the name of a registered one "
            "(@recipe registers a function under its name). A recipe as a value goes into "
            "turngym.algos.train, as TrainConfig(recipe=...)."
        )
    plain = _ALIASES.get(_plain(name), _plain(name))
    if plain not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES, advice=_ADVICE)
    return plain, RECIPES[plain]


def recipe(
    summary: str, *, small: Mapping[str, Any] | None = None
) -> Callable[[Callable[[], Recipe]], Callable[[], Recipe]]:
    """Make a function's recipe known by the function's name, see :func:`make_recipe`.

    The same function again, as after a cell of a notebook is run again, takes its own place.

    Args:
        summary: One line for lists.
        small: Settings that suit a model of a few million parameters instead of the paper's.

    Raises:
        BadValueError: There is no summary, or the name is taken by another recipe.
    """
    if not isinstance(summary, str):
        raise BadValueError(
            f"@recipe: the summary is {summary!r:.100}; expected a text, in brackets behind the "
            'decorator: @recipe("what it is").'
        )

    def register(factory: Callable[[], Recipe]) -> Callable[[], Recipe]:
        key = _plain(factory.__name__)
        before = RECIPES.get(key)
        if before is not None and _place(before.factory) != _place(factory):
            raise BadValueError(
                f"recipe {factory.__name__!r} of {factory.__module__}: the name is taken by "
                f"{before.factory.__name__!r} of {before.factory.__module__}; choose another name."
            )
        RECIPES[key] = Entry(factory=factory, summary=summary, small=small or {})
        return factory

    return register


def _place(factory: Callable[[], Recipe]) -> tuple[str, ...]:
    """Return where a function is written; every cell of a notebook is a file of its own."""
    module, code = factory.__module__, getattr(factory, "__code__", None)
    file = "" if module == "__main__" or code is None else code.co_filename
    return module, factory.__qualname__, file


def make_recipe(
    name: str, settings: Mapping[str, Any] | None = None, *, small: bool = False
) -> Recipe:
    """Return the recipe ``name`` with some settings changed.

    Args:
        name: One of :data:`RECIPES`, see :func:`find_recipe`.
        settings: See :func:`~turngym.algos.recipes.settings.with_settings`.
        small: Start from the settings for a model of a few million parameters (a laptop): a
            larger learning rate and smaller batches of four optimiser steps. The papers' settings
            are for models a thousand times larger and would not move a small one.

    Raises:
        UnknownNameError: No such recipe or setting; the nearest is named.
        BadValueError: Settings that do not fit together, or a recipe that is registered under
            another name than its own.
    """
    key, entry = find_recipe(name)
    start = dict(entry.small) if small else {}
    made: Any = entry.factory()
    if not isinstance(made, Recipe):
        raise BadValueError(
            f"recipe {name!r}: {entry.factory.__module__}.{entry.factory.__name__} returned a "
            f"{type(made).__name__}; expected a Recipe."
        )
    if _plain(made.name) != key:
        own = entry.factory.__name__
        raise BadValueError(
            f"recipe {own!r}: {entry.factory.__module__}.{own} returned a Recipe with the name "
            f"{made.name!r}, which results, tables and the board would show; expected the name "
            f"that it is registered under: replace(..., name={own!r})."
        )
    return with_settings(made, start | dict(settings or {}))
