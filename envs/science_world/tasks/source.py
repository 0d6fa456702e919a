"""The variations of the tasks as episodes to draw: which task, which number, which split."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from ...core.errors import BadValueError, UnknownNameError
from ...core.fork import Shared
from ...core.tasks import SPLITS, Task
from .catalogue import TASKS, TaskKind, find_kind
from .params import Mix

WHERE = "ScienceWorld"
MICRO_TASKS = ("6-1", "7-1", "7-2", "7-3")
"""Tasks that the micro house has all it takes for; of 6-1 only what is mixed in the kitchen."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One episode: a task and the number of its variation."""

    task: str
    number: int

    @property
    def kind(self) -> TaskKind:
        """The task."""
        return find_kind(self.task)


def choose_tasks(tasks: str | Iterable[str] | None, size: str) -> tuple[str, ...]:
    """Return the ids of the tasks that a setting names.

    Args:
        tasks: Ids, names or topics ("Electricity"), or one of them; None for all.
        size: Size of the house: the micro house has few tasks.

    Raises:
        UnknownNameError: Nothing is called so, or the micro house does not have it.
        BadValueError: None is named.
    """
    known = tuple(kind.id for kind in TASKS) if size == "full" else MICRO_TASKS
    if tasks is None:
        return known
    found: list[str] = []
    for name in (tasks,) if isinstance(tasks, str) else tasks:
        topic = [kind.id for kind in TASKS if kind.topic.lower() == str(name).lower()]
        ids = [task for task in topic if task in known] or [find_kind(name).id]
        for task in ids:
            if task not in known:
                raise UnknownNameError("task of the micro house", name, known, WHERE)
            found.append(task)
    if not found:
        raise BadValueError(f"{WHERE}: tasks is empty; name a task, or leave it out.")
    return tuple(dict.fromkeys(found))


class Variations(Shared):
    """All variations of some tasks in the original's splits, task by task.

    An id is the task's name and the variation's number: ``"boil/14"``.
    """

    def __init__(self, tasks: tuple[str, ...], size: str) -> None:
        self.tasks, self.size = tasks, size
        self._numbers = {split: [_numbers(task, split, size) for task in tasks] for split in SPLITS}
        self._ends = {
            split: list(accumulate(len(numbers) for numbers in per_task))
            for split, per_task in self._numbers.items()
        }

    def __reduce__(self) -> tuple[object, ...]:
        return make_variations, (self.tasks, self.size)

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of variations per split."""
        return {split: ends[-1] for split, ends in self._ends.items()}

    def task(self, split: str, index: int) -> Task[Variation]:
        """Return the variation at ``index``."""
        ends = self._ends[split]
        at = bisect_right(ends, index)
        first = ends[at - 1] if at else 0
        payload = Variation(self.tasks[at], self._numbers[split][at][index - first])
        return Task(f"{payload.kind.name}/{payload.number}", split, index, payload)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index that a task id names."""
        name, _, number = task_id.rpartition("/")
        for at, task in enumerate(self.tasks):
            if find_kind(task).name == name:
                numbers = list(map(str, self._numbers[split][at]))
                if number in numbers:
                    first = self._ends[split][at - 1] if at else 0
                    return first + numbers.index(number)
        return None


def _numbers(task: str, split: str, size: str) -> tuple[int, ...]:
    kind = find_kind(task)
    numbers = tuple(kind.split(split))
    if size == "full" or task != "6-1":
        return numbers
    return tuple(number for number in numbers if _fits_kitchen(kind.params(number)))


def _fits_kitchen(params: object) -> bool:
    return (
        isinstance(params, Mix)
        and params.place == "kitchen"
        and not any(name.endswith("paint") for name in params.ingredients)
    )


@lru_cache(maxsize=32)
def make_variations(tasks: tuple[str, ...], size: str) -> Variations:
    """Return the variations of some tasks; one object per choice."""
    return Variations(tasks, size)
