"""Where questions come from: drawn from a generated world, or given as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.errors import DataError
from ..core.fork import Shared
from ..core.generated_tasks import DrawnTasks
from ..core.interleave import Mixture, read_walk
from ..core.tasks import Task
from .questions import Drawer, Question
from .world.world import World, load_world

EVAL_TASKS = 2000
"""Questions of the dev and of the test split."""


class GeneratedQuestions(DrawnTasks[Question]):
    """Questions of a generated world: train has no end, dev and test have 2,000 each.

    The question at an index depends on the world, the kinds, the hop counts, the split and the
    index alone. Dev and test hold no question twice where the world has enough of them.
    """

    def __init__(self, world: World, kinds: tuple[str, ...], hops: tuple[int, ...]) -> None:
        super().__init__(world.key[1], EVAL_TASKS)
        self.world, self.kinds, self.hops = world, kinds, hops
        self.drawer = Drawer(world, kinds, hops)

    def __reduce__(self) -> Any:
        return generated_questions, (self.world.key, self.kinds, self.hops)

    def draw(self, pool: int, random: np.random.Generator) -> Question:
        """A question of split number ``pool``."""
        return self.drawer.draw(pool, random)


@lru_cache(maxsize=32)
def generated_questions(
    key: tuple[str, int, float], kinds: tuple[str, ...], hops: tuple[int, ...]
) -> GeneratedQuestions:
    """The source of these settings, one per process."""
    return GeneratedQuestions(load_world(*key), kinds, hops)


def has_kinds(source: object) -> bool:
    """Whether the questions of a source are of several kinds."""
    return isinstance(source, GeneratedQuestions) and len(source.kinds) > 1


class QuestionSets:
    """The questions of one split: one data set, or several in the order of a mixture.

    Args:
        rows: (id, question) rows by data set, ids unique over all of them.
        weights: Share of each data set; None for their sizes.

    Raises:
        DataError: A row's id looks like that of another one when it comes again.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[tuple[str, Question]]],
        weights: Sequence[float] | None = None,
    ) -> None:
        self.names = tuple(rows)
        self._rows = tuple(tuple(given) for given in rows.values())
        self.mixture = Mixture([len(given) for given in self._rows], weights)
        self._places = {
            row_id: (which, row)
            for which, given in enumerate(self._rows)
            for row, (row_id, _) in enumerate(given)
        }
        for row_id in self._places if self._again else ():
            if (again := self._parsed(row_id)) is not None and self.mixture.index(
                *again
            ) is not None:
                raise DataError(
                    f"SearchQA data: id {row_id!r} is also what {row_id.rpartition('#')[0]!r} is "
                    "called when weights let it come again; expected ids without '#' and a number."
                )

    def __len__(self) -> int:
        return len(self.mixture)

    def __getitem__(self, index: int) -> tuple[str, Question]:
        which, row, walk = self.mixture.place(index)
        row_id, question = self._rows[which][row]
        return (f"{row_id}#{walk + 1}" if walk else row_id), question

    def dataset(self, index: int) -> str:
        """Name of the data set of a task."""
        return self.names[self.mixture.place(index)[0]]

    def index_of(self, task_id: str) -> int | None:
        """The task of this id."""
        if task_id in self._places:
            return self.mixture.index(*self._places[task_id], 0)
        again = self._parsed(task_id)
        return None if again is None else self.mixture.index(*again)

    def blocks(self) -> npt.NDArray[np.int64] | None:
        """See :meth:`GivenQuestions.blocks`."""
        return self.mixture.blocks() if len(self.names) > 1 else None

    @property
    def _again(self) -> bool:
        return any(self.mixture.walks(which) > 1 for which in range(len(self.names)))

    def _parsed(self, task_id: str) -> tuple[int, int, int] | None:
        """(data set, row, walk) of ``id#2`` and the like."""
        row_id, _, count = task_id.rpartition("#")
        walk = read_walk(count)
        return (*self._places[row_id], walk) if walk and row_id in self._places else None


class GivenQuestions(Shared):
    """Questions that somebody has, per split."""

    def __init__(self, splits: Mapping[str, QuestionSets]) -> None:
        self._splits = dict(splits)

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return {split: len(given) for split, given in self._splits.items()}

    def task(self, split: str, index: int) -> Task[Question]:
        """The question at ``index``."""
        given = self._splits[split]
        task_id, question = given[index]
        return Task(task_id, split, index, question, given.dataset(index))

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._splits[split].index_of(task_id)

    def blocks(self, split: str) -> npt.NDArray[np.int64] | None:
        """A number per task of a mixture, see :func:`turngym.envs.core.tasks.get_split_blocks`."""
        return self._splits[split].blocks()
