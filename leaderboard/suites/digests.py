"""Compute the digests of a suite's tasks from the environments, and check them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from ...envs.core.digest import digest_of
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from ..schema.base import OnProgress
from ..schema.suite import Cell, Slot, Suite


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A task of a suite that differs in the installed environments.

    Attributes:
        env: Key of the cell.
        task: Index of the task; None where the whole cell differs.
        what: Description of the difference.
    """

    env: str
    task: int | None
    what: str


def make_cell_env(cell: Cell) -> TextEnv[Any, Any]:
    """Make a fresh environment of a cell.

    Raises:
        UnknownNameError: There is no such environment.
        BadValueError: It is not a text environment of this project.
    """
    find_environment(cell.env_id)
    env = gym.make(cell.env_id, **cell.settings).unwrapped
    if not isinstance(env, TextEnv):
        raise BadValueError(f"{cell.env_id}: is not a turngym text environment (a TextEnv).")
    return env


def task_digest(suite: Suite, cell: Cell, task: int, env: TextEnv[Any, Any]) -> str:
    """Return the hash of a task: rules, limits, content, and the first state of every trial."""
    starts = []
    for trial in range(cell.trials):
        seed = suite.seed_of(Slot(cell.key, task, trial))
        observation, _ = env.reset(seed=seed, options={"split": cell.split, "task": task})
        starts.append((seed, observation, env.digest()))
    content = env.episode.task.digest
    return digest_of((cell.env_id, env.instructions, env.max_turns, content, starts))


def with_digests(suite: Suite, on_progress: OnProgress | None = None) -> Suite:
    """Return the suite with the digests and turn limits of the installed environments.

    Args:
        suite: The suite; its digests may be placeholders of the right number.
        on_progress: Called with the number of finished cells and of all.
    """
    cells = []
    for number, cell in enumerate(suite.cells, start=1):
        env = make_cell_env(cell)
        found = tuple(task_digest(suite, cell, task, env) for task in cell.tasks)
        fields = dict(cell) | {"max_turns": env.max_turns, "digests": found}
        cells.append(Cell(**fields))
        env.close()
        if on_progress is not None:
            on_progress(number, len(suite.cells))
    whole: dict[str, Any] = dict(suite) | {"cells": tuple(cells)}
    return Suite(**whole)


def find_drifts(suite: Suite) -> Iterator[Drift]:
    """Yield every task whose digest differs from the suite's, in order."""
    for cell in suite.cells:
        env = make_cell_env(cell)
        if env.max_turns != cell.max_turns:
            what = f"the turn limit is {env.max_turns}, the suite has {cell.max_turns}"
            yield Drift(env=cell.key, task=None, what=what)
        for task, digest in zip(cell.tasks, cell.digests, strict=True):
            found = task_digest(suite, cell, task, env)
            if found != digest:
                yield Drift(env=cell.key, task=task, what=f"digest {found}, not {digest}")
        env.close()
