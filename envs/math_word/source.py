"""Where problems come from: drawn at random, or a user's own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import BadValueError
from ..tasks import SPLITS, Task
from .generator import Generator
from .problem import Problem

EVAL_TASKS = 500
"""Problems of the dev and of the test split."""
_DUPLICATES = 8


class GeneratedProblems:
    """Problems drawn at random: train has no end, dev and test have 500 each.

    The problem at an index depends on the generator's settings, the seed, the split and the index
    alone. No two splits share a problem, not even with other names in it.
    """

    def __init__(self, generator: Generator, seed: int) -> None:
        self.generator, self.seed = generator, seed
        self._fixed: dict[str, list[Problem]] = {}

    def __deepcopy__(self, memo: Mapping[int, Any]) -> GeneratedProblems:
        return self

    def __reduce__(self) -> Any:
        return generated_problems, (self.generator, self.seed)

    def sizes(self) -> Mapping[str, int | None]:
        """None for train, the fixed number for the others."""
        return {"train": None, "dev": EVAL_TASKS, "test": EVAL_TASKS}

    def task(self, split: str, index: int) -> Task[Problem]:
        """The problem at ``index``."""
        endless = self.sizes()[split] is None
        problem = self._draw(split, index, 0) if endless else self._all(split)[index]
        return Task(f"{split}/{index}", split, index, problem)

    def index_of(self, split: str, task_id: str) -> int | None:
        """The index that a task id names."""
        named, _, number = task_id.partition("/")
        if named != split or not (number.isascii() and number.isdigit()):
            return None
        index, size = int(number), self.sizes()[split]
        fits = str(index) == number and (size is None or index < size)
        return index if fits else None

    def _draw(self, split: str, index: int, retry: int) -> Problem:
        pool = SPLITS.index(split)
        entropy = (self.seed, pool, index, retry)
        problem = self.generator.draw(pool, np.random.Generator(np.random.PCG64(entropy)))
        if problem is None:
            raise BadValueError(
                f"MathWord: no problem fits steps={self.generator.steps}, topics="
                f"{self.generator.topics}, traps={self.generator.traps} in size "
                f"{self.generator.size!r}; allow more of them."
            )
        return problem

    def _all(self, split: str) -> list[Problem]:
        if split not in self._fixed:
            seen: set[str] = set()
            problems = []
            for index in range(EVAL_TASKS):
                problem = self._draw(split, index, 0)
                for retry in range(1, _DUPLICATES):
                    if problem.text not in seen:
                        break
                    problem = self._draw(split, index, retry)
                seen.add(problem.text)
                problems.append(problem)
            self._fixed[split] = problems
        return self._fixed[split]


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
