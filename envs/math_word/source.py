"""Where problems come from: drawn at random, or a user's own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..drawn_tasks import DrawnTasks
from ..errors import BadValueError
from ..tasks import Task
from .generator import Generator
from .problem import Problem

EVAL_TASKS = 500
"""Problems of the dev and of the test split."""


class GeneratedProblems(DrawnTasks[Problem]):
    """Problems drawn at random: train has no end, dev and test have 500 each.

    The problem at an index depends on the generator's settings, the seed, the split and the index
    alone. No two splits share a problem, not even with other names in it.
    """

    def __init__(self, generator: Generator, seed: int) -> None:
        super().__init__(seed, EVAL_TASKS)
        self.generator = generator

    def __reduce__(self) -> Any:
        return generated_problems, (self.generator, self.seed)

    def draw(self, pool: int, random: np.random.Generator) -> Problem:
        """A problem of split number ``pool``.

        Raises:
            BadValueError: No problem fits the settings.
        """
        problem = self.generator.draw(pool, random)
        if problem is None:
            raise BadValueError(
                f"MathWord: no problem fits steps={self.generator.steps}, topics="
                f"{self.generator.topics}, traps={self.generator.traps} in size "
                f"{self.generator.size!r}; allow more of them."
            )
        return problem


@lru_cache(maxsize=32)
def generated_problems(generator: Generator, seed: int) -> GeneratedProblems:
    """The source of these settings, one per process."""
    return GeneratedProblems(generator, seed)


class GivenProblems:
    """Problems that somebody has, per split.

    Args:
        splits: (id, problem) rows by split, ids unique in all of them.
        left_out: Rows that were left out because nothing here can grade them.
    """

    def __init__(
        self, splits: Mapping[str, Sequence[tuple[str, Problem]]], left_out: int = 0
    ) -> None:
        self._splits = {split: tuple(rows) for split, rows in splits.items()}
        self._places = {
            split: {row_id: i for i, (row_id, _) in enumerate(rows)}
            for split, rows in self._splits.items()
        }
        self.left_out = left_out

    def __deepcopy__(self, memo: Mapping[int, Any]) -> GivenProblems:
        return self

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return {split: len(rows) for split, rows in self._splits.items()}

    def task(self, split: str, index: int) -> Task[Problem]:
        """The problem at ``index``."""
        row_id, problem = self._splits[split][index]
        return Task(row_id, split, index, problem)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._places[split].get(task_id)
