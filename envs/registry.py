"""Which worlds exist: one data object each, registered with gymnasium by string entry points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from .errors import BadValueError, UnknownNameError
from .tasks import SPLITS


@dataclass(frozen=True, kw_only=True)
class World:
    """One registered world.

    Attributes:
        id: Gymnasium id, ``Name-vN``; changed behaviour means a new version.
        entry_point: ``"module:Class"`` of a :class:`TextEnv`.
        summary: What it is about, one line.
        sizes: Values that its ``size`` setting takes, the default first.
        splits: Splits of its tasks.
        reward_range: Lowest and highest return of an episode with the default settings.
        hidden: True for diagnostic worlds that lists leave out.
        kwargs: Settings that this id fixes.
    """

    id: str
    entry_point: str
    summary: str
    sizes: tuple[str, ...] = ("full", "micro")
    splits: tuple[str, ...] = SPLITS
    reward_range: tuple[float, float] = (0.0, 1.0)
    hidden: bool = False
    kwargs: Mapping[str, Any] = field(default_factory=dict)


_WORLDS: dict[str, World] = {}


def register_world(world: World) -> None:
    """Make ``gym.make(world.id)`` and ``gym.make_vec(world.id)`` work.

    Gymnasium's wrappers stay out: :class:`TextEnv` enforces the order of calls and the turn limit
    itself, and ``check_text_env`` checks once, in the tests, more than the passive checker would
    check in every process. So ``gym.make`` returns the bare world, which steps and forks faster.

    Raises:
        BadValueError: The id is registered already, for something else.
    """
    spec = gym.registry.get(world.id)
    if spec is None:
        gym.register(
            id=world.id,
            entry_point=world.entry_point,
            order_enforce=False,
            disable_env_checker=True,
            kwargs=dict(world.kwargs),
            vector_entry_point=f"turngym.envs.vector:{world.id}",
        )
    elif (spec.entry_point, spec.kwargs) != (world.entry_point, dict(world.kwargs)):
        raise BadValueError(
            f"register_world: {world.id!r} is registered already; changed behaviour needs a new "
            "version of the id."
        )
    _WORLDS[world.id] = world


def all_ids(*, hidden: bool = False) -> list[str]:
    """Ids of the registered worlds, sorted; the diagnostic ones only on request."""
    return sorted(name for name, world in _WORLDS.items() if hidden or not world.hidden)


def find_world(env_id: str) -> World:
    """The data object of a registered id.

    Raises:
        UnknownNameError: There is none; names the nearest.
    """
    if env_id not in _WORLDS:
        raise UnknownNameError("environment", env_id, all_ids())
    return _WORLDS[env_id]


def registered_as(world: type) -> str:
    """The id under which a class of worlds is registered.

    Raises:
        UnknownNameError: Under none.
    """
    entry_point = f"{world.__module__}:{world.__name__}"
    for name, registered in _WORLDS.items():
        if registered.entry_point == entry_point:
            return name
    raise UnknownNameError("world", entry_point, all_ids())


register_world(
    World(
        id="SearchQA-v0",
        entry_point="turngym.envs.search_qa.env:SearchQA",
        summary="questions of 1 to 4 hops over a generated world, answered by searching",
    )
)
register_world(
    World(
        id="WebQA-v0",
        entry_point="turngym.envs.web_qa.env:WebQA",
        summary="the same questions over a site of linked pages: search, open pages, answer",
    )
)
register_world(
    World(
        id="PaperCrawler-v0",
        entry_point="turngym.envs.paper_crawler.env:PaperCrawler",
        summary="find all papers that answer a request: search, read outlines, follow citations",
        reward_range=(-35.5, 1_500_000.0),
    )
)
register_world(
    World(
        id="Game24-v0",
        entry_point="turngym.envs.game24.env:Game24",
        summary="make 24 out of four numbers, one exact operation a turn",
    )
)
register_world(
    World(
        id="MathWord-v0",
        entry_point="turngym.envs.math_word.env:MathWord",
        summary="word problems of 1 to 6 steps with traps, answered by a number",
    )
)
register_world(
    World(
        id="WebShop-v0",
        entry_point="turngym.envs.web_shop.env:WebShop",
        summary="buy what an instruction describes: search, open items, choose options, buy",
    )
)
register_world(
    World(
        id="MixedTasks-v0",
        entry_point="turngym.envs.mixed:MixedTasks",
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
