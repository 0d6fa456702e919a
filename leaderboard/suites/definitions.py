"""What the suites hold, before their digests are computed and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import gymnasium as gym

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.registration import EnvironmentSpec, LeaderboardCell, registered_environments
from ..schema.suite import Cell, Suite

UNKNOWN = "0" * 32


def _cell(row: EnvironmentSpec, size: str, count: int, trials: int) -> Cell:
    about = row.leaderboard or LeaderboardCell()
    tasks = _of_every_kind(row.id, size, count) if about.every_kind else range(count)
    return Cell(
        key=row.id,
        env_id=row.id,
        settings={"size": size},
        tasks=tuple(tasks),
        trials=trials,
        metric=about.metric,
        max_turns=1,
        digests=(UNKNOWN,) * len(tasks),
    )


def _of_every_kind(env_id: str, size: str, count: int) -> Sequence[int]:
    """The first task of every kind, then the second of every kind, up to ``count``."""
    env = gym.make(env_id, size=size).unwrapped
    if not isinstance(env, TextEnv) or (total := env.source.sizes()["test"]) is None:
        raise BadValueError(f"{env_id}: has no listed test split to choose from.")
    kinds: dict[str, list[int]] = {}
    for index in range(total):
        kinds.setdefault(env.source.task("test", index).id.rpartition("/")[0], []).append(index)
    turns = [(place, index) for listed in kinds.values() for place, index in enumerate(listed)]
    return sorted(index for _, index in sorted(turns)[:count])


def _suite(name: str, version: int, size: str, count: int, trials: int, description: str) -> Suite:
    """Return a suite of every environment of the package whose row has a leaderboard cell.

    Environments that others register are left out: a suite is frozen, and replayed by anybody.
    """
    rows = (row for row in registered_environments() if row.builtin and row.leaderboard)
    cells = (_cell(row, size, count, trials) for row in sorted(rows, key=lambda row: row.id))
    return Suite(name=name, version=version, description=description, cells=tuple(cells))


DRAFTS: Mapping[str, Callable[[], Suite]] = {
    "micro-v3": lambda: _suite(
        *("micro", 3, "micro", 20, 2),
        "Every environment at micro size, 20 test tasks, two trials each.",
    ),
    "standard-v4": lambda: _suite(
        *("standard", 4, "full", 50, 4),
        "Every environment at its full size, 50 test tasks, four trials each.",
    ),
}
"""The newest version of each suite. The file of an older one stays where an environment that has
not changed since has a board of it with rows."""


def draft(suite_id: str) -> Suite:
    """The definition of a suite; its digests and turn limits are still to be computed.

    Raises:
        UnknownNameError: No such suite.
    """
    if suite_id not in DRAFTS:
        raise UnknownNameError("suite", suite_id, DRAFTS)
    return DRAFTS[suite_id]()
