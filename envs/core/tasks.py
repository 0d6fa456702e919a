"""Tasks of environments, in disjoint splits, each with an id and a digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .digest import digest_of
from .errors import BadValueError, UnknownNameError

P = TypeVar("P")

SPLITS = ("train", "dev", "test")
ENDLESS = 2**31
"""Number of tasks of an unbounded split that a draw covers."""
_MAX_DIGITS = 100
"""Most digits of an index; Python converts no more than 4,300."""


@dataclass(frozen=True, slots=True)
class Task(Generic[P]):
    """One task; read-only and shared between forks.

    Attributes:
        id: Unique within its source, e.g. ``"dev/12"`` or the id of a dataset's row.
        split: The split that it belongs to.
        index: Its place in the split, from 0.
        payload: What the environment needs to play it (a frozen dataclass).
        dataset: The data set that it is from; empty for generated tasks.
    """

    id: str
    split: str
    index: int
    payload: P
    dataset: str = ""

    @property
    def digest(self) -> str:
        """Stable hash of the id and the payload."""
        return digest_of((self.id, self.split, self.payload))


class TaskSource(Protocol[P]):
    """Where tasks come from: a generated world or a data file."""

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of tasks per split; None for an unbounded one."""
        ...

    def task(self, split: str, index: int) -> Task[P]:
        """Return the task at ``index`` of ``split``; both were checked by :func:`find_task`."""
        ...

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index of the task with this id in ``split``; None if there is none."""
        ...


def find_task(source: TaskSource[P], split: str | None, task: int | str, where: str) -> Task[P]:
    """Look a task up by index or id.

    Args:
        source: Where to look.
        split: The split to look in; None looks an id up in every split, an index in the first.
        task: An index from 0, or a task id.
        where: The caller, for errors.

    Raises:
        UnknownNameError: The split or the id does not exist.
        BadValueError: The index is out of range or of the wrong type.
    """
    if isinstance(task, str):
        return _task_by_id(source, split, task, where)
    if isinstance(task, bool) or not isinstance(task, (int, np.integer)):
        raise BadValueError(
            f"{where}: task is {task!r} ({type(task).__name__}); expected an index or a task id."
        )
    split = get_default_split(source) if split is None else split
    size = get_split_size(source, split, where)
    index = int(task)
    if index < 0 or (size is not None and index >= size):
        top = "any index from 0" if size is None else f"an index from 0 to {size - 1}"
        raise BadValueError(f"{where}: task {index} is not in split {split!r}; expected {top}.")
    return source.task(split, index)


def _task_by_id(source: TaskSource[P], split: str | None, task_id: str, where: str) -> Task[P]:
    splits = list(source.sizes()) if split is None else [split]
    examples: list[str] = []
    for name in splits:
        size = get_split_size(source, name, where) if split is not None else source.sizes()[name]
        if (index := source.index_of(name, task_id)) is not None:
            return source.task(name, index)
        examples += [source.task(name, i).id for i in range(3 if size is None else min(size, 3))]
    place = "any split" if split is None else f"split {split!r}"
    raise UnknownNameError(f"task id in {place}", task_id, examples, where)


def parse_index(split: str, task_id: str, size: int | None) -> int | None:
    """Return the index in an id ``split/index``; None if it is no id of this split.

    Args:
        split: The split that is looked in.
        task_id: The id.
        size: Number of tasks in the split; None if it is unbounded.
    """
    named, _, number = task_id.partition("/")
    if named != split or not (number.isascii() and number.isdigit()):
        return None
    if len(number) > _MAX_DIGITS:
        return None
    index = int(number)
    return index if str(index) == number and (size is None or index < size) else None


def get_default_split(source: TaskSource[P]) -> str:
    """Return the split used when none is named: ``train``, or the first that holds a task."""
    sizes = source.sizes()
    if sizes.get(SPLITS[0]) != 0 and SPLITS[0] in sizes:
        return SPLITS[0]
    return next((split for split, size in sizes.items() if size != 0), SPLITS[0])


def get_split_size(source: TaskSource[P], split: str, where: str) -> int | None:
    """Return the number of tasks in ``split``; None if it is unbounded.

    Raises:
        UnknownNameError: There is no such split.
        BadValueError: The split is empty, or its size is no number of tasks.
    """
    sizes = source.sizes()
    if not isinstance(split, str) or split not in sizes:
        raise UnknownNameError("split", str(split), sizes, where)
    size = sizes[split]
    if size is not None and (not isinstance(size, (int, np.integer)) or size < 0):
        raise BadValueError(
            f"{where}: sizes() says {size!r} for split {split!r}; expected a number of tasks, or "
            "None for a split without end."
        )
    if size == 0:
        raise BadValueError(f"{where}: split {split!r} holds no task; choose another split.")
    return None if size is None else int(size)


def get_split_blocks(source: TaskSource[P], split: str) -> npt.NDArray[np.int64] | None:
    """Return which tasks may be exchanged when a split's order is shuffled.

    A source whose order has a meaning (a mixture of data sets in given shares) has a method
    ``blocks(split)``: one number per task, equal for tasks that may change places.

    Returns:
        The numbers ``[tasks]``; None when all may.
    """
    blocks = getattr(source, "blocks", None)
    return None if blocks is None else blocks(split)


def draw_task(
    source: TaskSource[P], split: str | None, rng: np.random.Generator, where: str
) -> Task[P]:
    """Draw a task uniformly from ``split`` (from the first 2**31 if it is unbounded)."""
    split = get_default_split(source) if split is None else split
    size = get_split_size(source, split, where)
    return source.task(split, int(rng.integers(ENDLESS if size is None else size)))
