"""Which environments exist: one row each, registered with gymnasium by string entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from .core.errors import BadValueError, UnknownNameError
from .core.tasks import SPLITS


@dataclass(frozen=True, kw_only=True)
class World:
    """The registry's row of one environment.

    Attributes:
        id: Gymnasium id, ``Name-vN``; changed behaviour means a new version.
        entry_point: ``"module:Class"`` of a :class:`TextEnv`.
        expert: ``"module:Class"`` of its scripted expert, which is made with ``mistakes`` and
            ``seed``; empty where there is none, or where the environment makes it itself.
        summary: What it is about, one line.
        sizes: Values that its ``size`` setting takes, the default first.
        splits: Splits of its tasks.
        reward_range: Lowest and highest return of an episode with the default settings.
        hidden: True for diagnostic environments that lists leave out.
        kwargs: Settings that this id fixes.
    """

    id: str
    entry_point: str
    expert: str = ""
    summary: str
    sizes: tuple[str, ...] = ("full", "micro")
    splits: tuple[str, ...] = SPLITS
    reward_range: tuple[float, float] = (0.0, 1.0)
    hidden: bool = False
    kwargs: Mapping[str, Any] = field(default_factory=dict)


REMOTE = "turngym.envs.wrappers.season_env:remote_env"
"""What makes the environments of a sealed season."""
_WORLDS: dict[str, World] = {}


def register_world(world: World) -> None:
    """Make ``gym.make(world.id)`` and ``gym.make_vec(world.id)`` work.

    Gymnasium's wrappers stay out: :class:`TextEnv` enforces the order of calls and the turn limit
    itself, and ``check_text_env`` checks once, in the tests, more than the passive checker would
    check in every process. So ``gym.make`` returns the bare environment, which steps and forks
    faster.

    Raises:
        BadValueError: The id is registered already, for something else.
    """
    spec = gym.registry.get(world.id)
    entry_point = f"{__name__}:{world.entry_point.replace(':', '.')}"
    if spec is None:
        gym.register(
            id=world.id,
            entry_point=entry_point,
            order_enforce=False,
            disable_env_checker=True,
            kwargs=dict(world.kwargs),
            vector_entry_point=f"turngym.envs.wrappers.vector:{world.id}",
        )
    elif (spec.entry_point, spec.kwargs) != (entry_point, dict(world.kwargs)):
        raise BadValueError(
            f"register_world: {world.id!r} is registered already; changed behaviour needs a new "
            "version of the id."
        )
    _WORLDS[world.id] = world


def __getattr__(name: str) -> Callable[..., gym.Env[Any, Any]]:
    """``turngym.envs.registry:module.Class`` is the entry point of that class, see `make_env`."""
    module, _, env_class = name.rpartition(".")
    if not module:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(make_env, f"{module}:{env_class}")


def make_env(entry_point: str, **settings: Any) -> gym.Env[Any, Any]:
    """Make an environment of the class that ``entry_point`` names.

    With the setting ``server`` it is one of a sealed season, which that server steps
    (:class:`turngym.envs.wrappers.season_env.RemoteEnv`).

    Raises:
        UnknownNameError: A setting that the environment does not take.
    """
    env_class: Any = load_env_creator(entry_point)
    if settings.get("server") is None:
        return env_class(**settings)
    remote_env: Any = load_env_creator(REMOTE)
    env_id = next(name for name, row in _WORLDS.items() if row.entry_point == entry_point)
    return remote_env(env_id, env_class, settings)


def load_expert(env_class: type) -> Callable[..., Any] | None:
    """Return the class of the scripted expert of an environment class, or None.

    A class that is not registered has the expert of the nearest registered class it derives from.
    """
    experts = {row.entry_point: row.expert for row in _WORLDS.values()}
    for base in env_class.__mro__:
        if expert := experts.get(f"{base.__module__}:{base.__qualname__}"):
            return load_env_creator(expert)
    return None


def all_ids(*, hidden: bool = False) -> list[str]:
    """Return the ids of the registered environments, sorted; diagnostic ones only on request."""
    return sorted(name for name, world in _WORLDS.items() if hidden or not world.hidden)


def find_world(env_id: str) -> World:
    """Return the row of a registered id.

    Raises:
        UnknownNameError: There is none; names the nearest.
    """
    if env_id not in _WORLDS:
        raise UnknownNameError("environment", env_id, all_ids())
    return _WORLDS[env_id]


register_world(
    World(
        id="SearchQA-v0",
        entry_point="turngym.envs.search_qa.env:SearchQA",
        expert="turngym.envs.search_qa.expert:Expert",
        summary="questions of 1 to 4 hops over a generated world, answered by searching",
    )
)
register_world(
    World(
        id="WebQA-v0",
        entry_point="turngym.envs.web_qa.env:WebQA",
        expert="turngym.envs.web_qa.expert:WebExpert",
        summary="the same questions over a site of linked pages: search, open pages, answer",
    )
)
register_world(
    World(
        id="PaperCrawler-v0",
        entry_point="turngym.envs.paper_crawler.env:PaperCrawler",
        expert="turngym.envs.paper_crawler.baselines:Expert",
        summary="find all papers that answer a request: search, read outlines, follow citations",
        reward_range=(-35.5, 1_500_000.0),
    )
)
register_world(
    World(
        id="Game24-v0",
        entry_point="turngym.envs.game24.env:Game24",
        expert="turngym.envs.game24.expert:Expert",
        summary="make 24 out of four numbers, one exact operation a turn",
    )
)
register_world(
    World(
        id="MathWord-v0",
        entry_point="turngym.envs.math_word.env:MathWord",
        expert="turngym.envs.math_word.expert:Expert",
        summary="word problems of 1 to 6 steps with traps, answered by a number",
    )
)
register_world(
    World(
        id="WebShop-v0",
        entry_point="turngym.envs.web_shop.env:WebShop",
        expert="turngym.envs.web_shop.expert:Expert",
        summary="buy what an instruction describes: search, open items, choose options, buy",
    )
)
register_world(
    World(
        id="MixedTasks-v0",
        entry_point="turngym.envs.mixed_tasks.env:MixedTasks",
        splits=(*SPLITS, "hard"),
        summary="tasks of several worlds in one stream, in given shares (members)",
    )
)
gym.register(
    id="PaperCrawlerIndex-v0",
    entry_point="turngym.envs.paper_crawler.index_env:PaperCrawlerIndex",
)
register_world(
    World(
        id="ScienceWorld-v0",
        entry_point="turngym.envs.science_world.env:ScienceWorld",
        summary="science tasks in a simulated house: heat, circuits, plants, animals, mixing",
        reward_range=(-1.0, 1.0),
    )
)
register_world(
    World(
        id="Retail-v0",
        entry_point="turngym.envs.retail.env:Retail",
        expert="turngym.envs.retail.expert:Expert",
        summary="serve a shop's customers with tools, by its rules, and with their consent",
        splits=(*SPLITS, "hard"),
    )
)

for _name, _summary in (
    ("Bandit", "one turn: which arm pays depends on the sign shown"),
    ("Password", "several turns, one reward at the end"),
    ("Recall", "a letter must be named some turns after it was shown"),
    ("Fork", "many rooms, one good door in each: trees see both kinds of door, chains do not"),
):
    register_world(
        World(
            id=f"{_name}-v0",
            entry_point=f"turngym.envs.diagnostic.{_name.lower()}:{_name}",
            summary=_summary,
            sizes=("micro", "full"),
            hidden=True,
        )
    )
register_world(
    World(
        id="Spawn-v0",
        entry_point="turngym.envs.diagnostic.spawn:Spawn",
        summary="boxes that are asked for become sessions; asking costs, coins lie in the boxes",
        sizes=("micro", "full"),
        reward_range=(-0.4, 1.0),
        hidden=True,
    )
)
