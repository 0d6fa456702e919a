"""The recipes by name, each an algorithm as a value with its paper's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...envs.errors import BadValueError, UnknownNameError
from ..recipe import Recipe
from .arpo import arpo
from .dapo import dapo
from .drgrpo import drgrpo
from .grpo import grpo
from .gspo import gspo
from .pasa import pasa
from .ppo import ppo
from .reinforcepp import reinforcepp
from .rloo import rloo
from .settings import with_settings
from .sft import sft
from .spo import spo
from .stepdpo import stepdpo
from .tarl import tarl, tarl_ppo, tarl_turns
from .treegrpo import treegrpo


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
_STEP = {"optim.lr": 3e-4, "optim.minibatches": 1}
_CHAINS = {**_STEP, "rollout.n": 8, "groups_per_step": 16}
_SINGLE = {**_STEP, "groups_per_step": 128}
_CRITIC = {"optim.lr": 2e-4, "optim.critic_lr": 1e-3}

RECIPES: dict[str, Entry] = {
    "grpo": Entry(
        factory=grpo,
        summary="group mean as baseline, no critic",
        small={
            **_CHAINS,
            "optim.warmup_steps": 0,
            "loss.kl.coef": 0.0,
            "loss.entropy_coef": 0.0,
        },
    ),
    "drgrpo": Entry(
        factory=drgrpo,
        summary="GRPO without dividing by deviation and length",
        small={**_CHAINS, "loss.aggregate.length": 64},
    ),
    "dapo": Entry(
        factory=dapo,
        summary="clip higher, dynamic sampling, overlong punishment",
        small={**_CHAINS, "optim.warmup_steps": 0, "optim.weight_decay": 0.01},
    ),
    "gspo": Entry(factory=gspo, summary="ratios of whole paths", small=_CHAINS),
    "rloo": Entry(
        factory=rloo,
        summary="mean of the other paths as baseline",
        small={**_CHAINS, "credit.kl_coef": 0.0},
    ),
    "reinforcepp": Entry(
        factory=reinforcepp,
        summary="returns to go, whitened over the batch",
        small={**_SINGLE, "credit.kl_coef": 0.0},
    ),
    "spo": Entry(
        factory=spo,
        summary="one path per prompt, a tracked value as baseline",
        small={**_SINGLE, "tracker.pool": 512, "tracker.first": 0},
    ),
    "ppo": Entry(
        factory=ppo,
        summary="critic and GAE, KL in the reward",
        small={
            **_SINGLE,
            **_CRITIC,
            "optim.warmup_steps": 0,
            "credit.kl_coef": 0.0,
            "loss.policy.entropy_coef": 0.0,
        },
    ),
    "treegrpo": Entry(
        factory=treegrpo,
        summary="trees by random expansion, compared by prompt and by tree",
        small={
            **_STEP,
            "groups_per_step": 16,
            "optim.warmup_steps": 0,
            "loss.kl.coef": 0.0,
            "loss.entropy_coef": 0.0,
        },
    ),
    "arpo": Entry(
        factory=arpo,
        summary="branches where tools made the model uncertain",
        small={**_STEP, "groups_per_step": 16, "rollout.initial": 4, "rollout.budget": 8},
    ),
    "tarl": Entry(
        factory=tarl,
        summary="turns judged by rules or a model, with the outcome",
        small={**_CHAINS, "loss.kl.coef": 0.0},
    ),
    "tarlturns": Entry(
        factory=tarl_turns,
        summary="TARL turn by turn: returns of turns compared, no critic",
        small={**_CHAINS, "loss.kl.coef": 0.0},
    ),
    "tarlppo": Entry(
        factory=tarl_ppo,
        summary="TARL with PPO: critic and GAE, the reward at the end or at the turns",
        small={
            **_SINGLE,
            **_CRITIC,
            "optim.warmup_steps": 0,
            "credit.kl_coef": 0.0,
            "loss.policy.entropy_coef": 0.0,
        },
    ),
    "pasa": Entry(
        factory=pasa,
        summary="session-level PPO, credit through the sessions asked for",
        small={
            **_SINGLE,
            **_CRITIC,
            "optim.epochs": 1,
            "optim.critic_only_steps": 5,
            "credit.kl_coef": 0.0,
            "credit.gamma1": 0.9,
            "loss.value.coef": 1.0,
            "loss.value.clip": 0.5,
            "temperature": 1.0,
        },
    ),
    "sft": Entry(
        factory=sft,
        summary="imitation of the world's expert",
        small={"optim.lr": 5e-4, "optim.warmup_steps": 0},
    ),
    "stepdpo": Entry(
        factory=stepdpo,
        summary="better against worse step at every fork of a tree",
        small={**_STEP, "groups_per_step": 32},
    ),
}
_ALIASES = {"pasasession": "pasa"}


def _plain(name: str) -> str:
    return "".join(c for c in name.lower().replace("+", "p") if c.isalnum())


def find_recipe(name: str) -> tuple[str, Entry]:
    """A registered recipe by its name in any spelling ("Tree-GRPO", "REINFORCE++").

    Raises:
        UnknownNameError: No such recipe; the nearest is named.
    """
    plain = _ALIASES.get(_plain(name), _plain(name))
    if plain not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    return plain, RECIPES[plain]


def register_recipe(name: str, entry: Entry) -> None:
    """Make ``name`` known to the command line and to :func:`make_recipe`.

    Args:
        name: Small letters, digits and underscores; found in any spelling.
        entry: The recipe.

    Raises:
        BadValueError: The name is taken by another recipe, or is not of that form.
    """
    if name != name.lower() or not name.replace("_", "").isalnum():
        raise BadValueError(
            f"register_recipe: the name is {name!r}; expected small letters, digits, underscores."
        )
    key = _plain(name)
    if key in RECIPES and RECIPES[key].factory is not entry.factory:
        raise BadValueError(f"register_recipe: {name!r} is taken; choose another name.")
    RECIPES[key] = entry


def make_recipe(
    name: str, settings: Mapping[str, Any] | None = None, *, small: bool = False
) -> Recipe:
    """The recipe ``name`` with some settings changed.

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
