"""Where questions come from: drawn from a generated world, or given as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..tasks import SPLITS, Task
from .questions import Drawer, Question
from .world import World, load_world

EVAL_TASKS = 2000
"""Questions of the dev and of the test split."""
_DUPLICATES = 8


class GeneratedQuestions:
    """Questions of a generated world: train has no end, dev and test have 2,000 each.

    The question at an index depends on the world, the kinds, the hop counts, the split and the
    index alone. Dev and test hold no question twice where the world has enough of them.
    """

    def __init__(self, world: World, kinds: tuple[str, ...], hops: tuple[int, ...]) -> None:
        self.world, self.kinds, self.hops = world, kinds, hops
        self.drawer = Drawer(world, kinds, hops)
        self._fixed: dict[str, list[Question]] = {}

    def __deepcopy__(self, memo: Mapping[int, Any]) -> GeneratedQuestions:
        return self

    def __reduce__(self) -> Any:
        return generated_questions, (self.world.key, self.kinds, self.hops)

    def sizes(self) -> Mapping[str, int | None]:
        """None for train, the fixed number for the others."""
        return {"train": None, "dev": EVAL_TASKS, "test": EVAL_TASKS}

    def task(self, split: str, index: int) -> Task[Question]:
        """The question at ``index``."""
        endless = self.sizes()[split] is None
        question = self._draw(split, index, 0) if endless else self._all(split)[index]
        return Task(f"{split}/{index}", split, index, question)

    def index_of(self, split: str, task_id: str) -> int | None:
        """The index that a task id names."""
        named, _, number = task_id.partition("/")
        if named != split or not (number.isascii() and number.isdigit()):
            return None
        index, size = int(number), self.sizes()[split]
        fits = str(index) == number and (size is None or index < size)
        return index if fits else None

    def _draw(self, split: str, index: int, retry: int) -> Question:
        pool = SPLITS.index(split)
        entropy = (self.world.key[1], pool, index, retry)
        return self.drawer.draw(pool, np.random.Generator(np.random.PCG64(entropy)))

    def _all(self, split: str) -> list[Question]:
        if split not in self._fixed:
            seen: set[str] = set()
            questions = []
            for index in range(EVAL_TASKS):
                question = self._draw(split, index, 0)
                for retry in range(1, _DUPLICATES):
                    if question.text not in seen:
                        break
                    question = self._draw(split, index, retry)
                seen.add(question.text)
                questions.append(question)
            self._fixed[split] = questions
        return self._fixed[split]


@lru_cache(maxsize=32)
def generated_questions(
    key: tuple[str, int, float], kinds: tuple[str, ...], hops: tuple[int, ...]
) -> GeneratedQuestions:
    """The source of these settings, one per process."""
    return GeneratedQuestions(load_world(*key), kinds, hops)


class GivenQuestions:
    """Questions that somebody has, as (id, question) rows per split."""

    def __init__(self, rows: Mapping[str, Sequence[tuple[str, Question]]]) -> None:
        self._rows = {split: tuple(rows[split]) for split in rows}
        self._places = {
            split: {task_id: i for i, (task_id, _) in enumerate(given)}
            for split, given in self._rows.items()
        }

    def __deepcopy__(self, memo: Mapping[int, Any]) -> GivenQuestions:
        return self

    def sizes(self) -> Mapping[str, int | None]:
        """Rows per split."""
        return {split: len(given) for split, given in self._rows.items()}

    def task(self, split: str, index: int) -> Task[Question]:
        """The row at ``index``."""
        task_id, question = self._rows[split][index]
        return Task(task_id, split, index, question)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the row with this id."""
        return self._places[split].get(task_id)
