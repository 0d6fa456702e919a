"""What the suites hold, before their digests are computed and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import gymnasium as gym

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, UnknownNameError
from ..schema.suite import Cell, Suite

WORLDS = (
    "Game24-v0",
    "MathWord-v0",
    "PaperCrawler-v0",
    "Retail-v0",
    "ScienceWorld-v0",
    "SearchQA-v0",
    "WebQA-v0",
    "WebShop-v0",
)
METRICS = {"PaperCrawler-v0": "recall"}
"""The score where it is not ``success``: finding papers is a matter of degree."""
KINDS = ("ScienceWorld-v0",)
"""Worlds whose tasks are listed kind by kind: the first ones would be all of one kind."""
UNKNOWN = "0" * 32


def _cell(env_id: str, size: str, count: int, trials: int) -> Cell:
    tasks = _of_every_kind(env_id, size, count) if env_id in KINDS else range(count)
    return Cell(
        key=env_id,
        env_id=env_id,
        settings={"size": size},
        tasks=tuple(tasks),
        trials=trials,
        metric=METRICS.get(env_id, "success"),
        max_turns=1,
        digests=(UNKNOWN,) * len(tasks),
    )


def _of_every_kind(env_id: str, size: str, count: int) -> Sequence[int]:
    """The first task of every kind, then the second of every kind, up to ``count``."""
    world = gym.make(env_id, size=size).unwrapped
    if not isinstance(world, TextEnv) or (total := world.source.sizes()["test"]) is None:
        raise BadValueError(f"{env_id}: has no listed test split to choose from.")
    kinds: dict[str, list[int]] = {}
    for index in range(total):
        kinds.setdefault(world.source.task("test", index).id.rpartition("/")[0], []).append(index)
    turns = [(place, index) for listed in kinds.values() for place, index in enumerate(listed)]
    return sorted(index for _, index in sorted(turns)[:count])


def _suite(name: str, size: str, count: int, trials: int, description: str) -> Suite:
    cells = (_cell(env_id, size, count, trials) for env_id in WORLDS)
    return Suite(name=name, version=1, description=description, cells=tuple(cells))


DRAFTS: Mapping[str, Callable[[], Suite]] = {
    "micro-v1": lambda: _suite(
        *("micro", "micro", 20, 2),
        "Every world at micro size, 20 test tasks, two trials each.",
    ),
    "standard-v1": lambda: _suite(
        *("standard", "full", 50, 4),
        "Every world at its full size, 50 test tasks, four trials each.",
    ),
}


def draft(suite_id: str) -> Suite:
    """The definition of a suite; its digests and turn limits are still to be computed.

    Raises:
        UnknownNameError: No such suite.
    """
    if suite_id not in DRAFTS:
        raise UnknownNameError("suite", suite_id, DRAFTS)
    return DRAFTS[suite_id]()
