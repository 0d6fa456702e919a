"""Digests of a suite's tasks, computed from the worlds, and the check that they still hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from ...envs.core.digest import digest_of
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from ..schema.suite import Cell, Slot, Suite

Tick = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A task of a suite that is another one in the worlds as they are installed.

    Attributes:
        env: Key of the cell.
        task: Index of the task; None where the whole cell differs.
        what: What differs, in words.
    """

    env: str
    task: int | None
    what: str


def make_world(cell: Cell) -> TextEnv[Any, Any]:
    """Make a fresh environment of a cell.

    Raises:
        UnknownNameError: No such world.
        BadValueError: Not a text world of this project.
    """
    find_environment(cell.env_id)
    world = gym.make(cell.env_id, **cell.settings).unwrapped
    if not isinstance(world, TextEnv):
        raise BadValueError(f"{cell.env_id}: is no text environment of turngym (a TextEnv).")
    return world


def task_digest(suite: Suite, cell: Cell, task: int, world: TextEnv[Any, Any]) -> str:
    """Return the hash of a task: rules, limits, content, and the first state of every trial."""
    starts = []
    for trial in range(cell.trials):
        seed = suite.seed_of(Slot(cell.key, task, trial))
        observation, _ = world.reset(seed=seed, options={"split": cell.split, "task": task})
        starts.append((seed, observation, world.digest()))
    content = world.episode.task.digest
    return digest_of((cell.env_id, world.instructions, world.max_turns, content, starts))


def with_digests(suite: Suite, tell: Tick | None = None) -> Suite:
    """Return the suite with the digests and turn limits of the installed environments.

    Args:
        suite: Its digests may be anything of the right number.
        tell: Told the cells that are done, and how many there are.
    """
    cells = []
    for number, cell in enumerate(suite.cells, start=1):
        world = make_world(cell)
        found = tuple(task_digest(suite, cell, task, world) for task in cell.tasks)
        fields = dict(cell) | {"max_turns": world.max_turns, "digests": found}
        cells.append(Cell(**fields))
        world.close()
        if tell is not None:
            tell(number, len(suite.cells))
    whole: dict[str, Any] = dict(suite) | {"cells": tuple(cells)}
    return Suite(**whole)


def find_drifts(suite: Suite) -> Iterator[Drift]:
    """Yield every task that starts otherwise than the suite says, in order."""
    for cell in suite.cells:
        world = make_world(cell)
        if world.max_turns != cell.max_turns:
            what = f"the turn limit is {world.max_turns}, the suite says {cell.max_turns}"
            yield Drift(env=cell.key, task=None, what=what)
        for task, digest in zip(cell.tasks, cell.digests, strict=True):
            found = task_digest(suite, cell, task, world)
            if found != digest:
                yield Drift(env=cell.key, task=task, what=f"digest {found}, not {digest}")
        world.close()
