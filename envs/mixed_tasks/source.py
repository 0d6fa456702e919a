"""The tasks of several sources in one order, in shares that hold in every prefix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.errors import BadValueError
from ..core.fork import Shared
from ..core.interleave import MAX_TASKS, Mixture, read_walk
from ..core.tasks import SPLITS, Task, TaskSource, get_split_blocks

MIN_TASKS = 100_000
"""Tasks of a split in which some source has no end; more where a finite source needs them."""


class MixedSource(Shared):
    """Tasks of several sources, each called ``source name/its own id``.

    In train, and in any split that has no end in some source, the shares are the weights; a finite
    source begins again when it is through, and what comes again is called ``...#2``, ``#3`` and so
    on (``...#2#`` where a task of the source is called ``...#2`` itself). In other splits every
    task of every source comes once. A source that is a mixture itself keeps the shares of its
    parts, also when it begins again: only tasks that its own order lets change places do.

    Args:
        sources: Sources by name.
        weights: Share of each, above 0, in any unit.

    Raises:
        BadValueError: The weights are so uneven that a split gets too long.
    """

    def __init__(self, sources: Mapping[str, TaskSource[Any]], weights: Sequence[float]) -> None:
        self.sources = dict(sources)
        self.weights = dict(zip(sources, weights, strict=True))
        found = dict.fromkeys(s for source in sources.values() for s in source.sizes())
        order = [s for s in SPLITS if s in found] + [s for s in found if s not in SPLITS]
        self._names: dict[str, tuple[str, ...]] = {}
        self._mixtures: dict[str, Mixture] = {}
        for split in order:
            sizes = {
                n: s.sizes()[split] for n, s in sources.items() if s.sizes().get(split, 0) != 0
            }
            if sizes:
                self._names[split] = tuple(sizes)
                self._mixtures[split] = self._mix(split, sizes)

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of tasks per split."""
        return {split: len(mixture) for split, mixture in self._mixtures.items()}

    def task(self, split: str, index: int) -> Task[Any]:
        """Return the task at ``index``: the source's own under another id."""
        which, row, walk = self._mixtures[split].place(index)
        name = self._names[split][which]
        own = self.sources[name].task(split, row)
        called = self._name_again(split, name, own.id, walk)
        dataset = f"{name}: {own.dataset}" if own.dataset else name
        return Task(f"{name}/{called}", split, index, own.payload, dataset)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index of the task with this id."""
        name, _, own_id = task_id.partition("/")
        if name not in self._names[split]:
            return None
        if self.sources[name].index_of(split, own_id) is not None:
            return self._place(split, name, own_id, 0)
        first, _, count = own_id.rstrip("#").rpartition("#")
        walk = read_walk(count)
        if not walk or self._name_again(split, name, first, walk) != own_id:
            return None
        return self._place(split, name, first, walk)

    def blocks(self, split: str) -> npt.NDArray[np.int64] | None:
        """Return a number per task, see :func:`turngym.envs.core.tasks.get_split_blocks`."""
        plain = len(self._names[split]) == 1 and self._list_parts(split)[0] is None
        return None if plain else self._mixtures[split].blocks()

    def _name_again(self, split: str, name: str, own_id: str, walk: int) -> str:
        """Return what a task of a source is called the ``walk``-th time that it comes again.

        No task has that id as its own, and no other one has it when it comes again: without the
        characters at its end it is the id and the number.
        """
        if not walk:
            return own_id
        called = f"{own_id}#{walk + 1}"
        while self.sources[name].index_of(split, called) is not None:
            called += "#"
        return called

    def _list_parts(self, split: str) -> list[npt.NDArray[np.int64] | None]:
        """Return the blocks of each source that has tasks in the split."""
        return [get_split_blocks(self.sources[name], split) for name in self._names[split]]

    def _place(self, split: str, name: str, own_id: str, walk: int) -> int | None:
        which, mixture = self._names[split].index(name), self._mixtures[split]
        row = self.sources[name].index_of(split, own_id)
        return (
            None if row is None or row >= mixture.sizes[which] else mixture.index(which, row, walk)
        )

    def _mix(self, split: str, sizes: Mapping[str, int | None]) -> Mixture:
        total = sum(self.weights[name] for name in sizes)
        shares = {name: self.weights[name] / total for name in sizes}
        endless = any(size is None for size in sizes.values())
        if split != SPLITS[0] and not endless:
            once = [size for size in sizes.values() if size is not None]
            return Mixture(once, parts=self._list_parts(split))
        due = [(size - 0.5) / shares[n] for n, size in sizes.items() if size is not None]
        tasks = max(0.0, MIN_TASKS if endless else 0.0, *due)
        if tasks > MAX_TASKS:
            raise BadValueError(
                f"MixedTasks: with these weights it takes {tasks:,.0f} tasks until each of the "
                f"{split} tasks has come; expected at most {MAX_TASKS:,}. Give the member with "
                "the smallest weight a larger one."
            )
        counts = [
            max(1, math.floor(tasks * shares[n] + 0.5)) if size is None else size
            for n, size in sizes.items()
        ]
        return Mixture(counts, [shares[name] for name in sizes], self._list_parts(split))
