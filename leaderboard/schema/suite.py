"""A suite: a frozen, versioned list of environments, tasks, seeds and limits that entries play."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from ...envs.core.digest import digest_of
from ...envs.core.errors import UnknownNameError
from .base import Form

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")]

SECRET_SEEDS = 2**64
"""Suites with a seed from here are drawn from a secret; public suites have small ones."""


class Slot(NamedTuple):
    """One episode that every run of an entry must hold.

    Attributes:
        env: Key of the cell.
        task: Index of the task in the cell's split.
        trial: Which of the trials of the task, from 0.
    """

    env: str
    task: int
    trial: int


class Cell(Form):
    """One environment of a suite, with its tasks.

    Attributes:
        key: Name of the cell in entries and tables, unique in the suite; the env id where the
            suite holds the environment once.
        env_id: Registered id.
        settings: Constructor settings of the environment.
        split: Split of the tasks.
        tasks: Indexes of the tasks.
        trials: Episodes per task, each with a seed of its own.
        metric: The environment's metric, from 0 to 1, that is the score; ``success`` by default.
        max_turns: Turn limit of an episode.
        digests: One per task: a hash of rules, task and starting states (see
            :mod:`turngym.leaderboard.suites.digests`).
    """

    key: Key
    env_id: str
    settings: dict[str, Any] = Field(default_factory=dict)
    split: str = "test"
    tasks: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    trials: int = Field(default=1, ge=1, le=64)
    metric: str = "success"
    max_turns: int = Field(ge=1)
    digests: tuple[Digest, ...]

    @model_validator(mode="after")
    def _whole(self) -> Cell:
        if len(set(self.tasks)) != len(self.tasks):
            raise ValueError("a task is listed twice")
        if len(self.digests) != len(self.tasks):
            raise ValueError(f"{len(self.digests)} digests for {len(self.tasks)} tasks")
        return self

    @property
    def digest(self) -> str:
        """Return the hash of the cell and all its tasks, which entries refer to."""
        return digest_of(self.model_dump())

    def slots(self) -> Iterator[Slot]:
        """Yield every episode of one run on this cell, in order."""
        for task in self.tasks:
            for trial in range(self.trials):
                yield Slot(self.key, task, trial)

    def digest_of_task(self, task: int) -> str:
        """Return the digest of the task with this index.

        Raises:
            UnknownNameError: The cell does not hold it.
        """
        if task not in self.tasks:
            raise UnknownNameError("task", task, self.tasks, self.key)
        return self.digests[self.tasks.index(task)]


class Suite(Form):
    """A frozen list of cells. Every change needs a new version; the old board stays.

    Attributes:
        format: Version of this layout.
        name: Short name.
        version: From 1.
        description: Purpose of the suite.
        seed: Root of the seeds of its episodes.
        max_action_chars: Longest action that an entry may hold.
        cells: The environments.
    """

    format: Literal[1] = 1
    name: Slug
    version: int = Field(ge=1)
    description: str
    seed: int = Field(default=0, ge=0)
    max_action_chars: int = Field(default=100_000, ge=1)
    cells: tuple[Cell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Suite:
        if len({cell.key for cell in self.cells}) != len(self.cells):
            raise ValueError("two cells have the same key")
        return self

    @property
    def id(self) -> str:
        """Return name and version, as in ``micro-v3``."""
        return f"{self.name}-v{self.version}"

    @property
    def digest(self) -> str:
        """Return the hash of the content."""
        return digest_of(self.model_dump())

    @property
    def seeded_by(self) -> str:
        """Return the name that the seeds of the episodes are drawn with."""
        return self.name

    def by_key(self) -> Mapping[str, Cell]:
        """Return the cells by key."""
        return {cell.key: cell for cell in self.cells}

    def slots(self) -> Iterator[Slot]:
        """Yield every episode of one run, in order."""
        for cell in self.cells:
            yield from cell.slots()

    def seed_of(self, slot: Slot) -> int:
        """Return the seed of an episode.

        It is below 2**52, so that every JSON reader represents it exactly; where the suite's own
        seed is secret, that is longer than any public one, it has 128 bits, so that nobody finds
        it by search.
        """
        drawn = digest_of((self.seeded_by, self.version, self.seed, *slot))
        return int(drawn if self.seed >= SECRET_SEEDS else drawn[:13], 16)


class SuitePart(Suite):
    """One environment of a suite as a suite of its own, with the same tasks and seeds.

    Attributes:
        base: Name of the whole suite.
    """

    base: Slug

    @property
    def seeded_by(self) -> str:
        """Return the name of the whole suite: its episodes are these."""
        return self.base


def parts_of(suite: Suite) -> Iterator[SuitePart]:
    """Yield a suite per environment of a suite of several: ``micro-v3`` has ``micro-webqa-v3``.

    An agent that was made for one environment has its own board there, instead of a mean over many
    that it never saw.
    """
    if len(suite.cells) == 1:
        return
    for cell in suite.cells:
        word = re.sub(r"[^a-z0-9]+", "-", re.sub(r"-v\d+$", "", cell.key).lower()).strip("-")
        fields = dict(suite) | {
            "name": f"{suite.name}-{word}"[:40].strip("-"),
            "description": f"{cell.key} of {suite.id}.",
            "cells": (cell,),
        }
        yield SuitePart(base=suite.name, **fields)
