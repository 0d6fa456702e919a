"""The tasks of several sources in one order, in shares that hold in every prefix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.errors import BadValueError
from ..core.fork import Shared
from ..core.interleave import MAX_TASKS, Mixture
from ..core.tasks import SPLITS, Task, TaskSource

MIN_TASKS = 100_000
"""Tasks of a split in which some source has no end; more where a finite source needs them."""


class MixedSource(Shared):
    """Tasks of several sources, each called ``source name/its own id``.

    In train, and in any split that has no end in some source, the shares are the weights; a finite
    source begins again when it is through, and what comes again is called ``...#2``, ``#3`` and so
    on. In other splits every task of every source comes once.

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
        again = f"#{walk + 1}" if walk else ""
        dataset = f"{name}: {own.dataset}" if own.dataset else name
        return Task(f"{name}/{own.id}{again}", split, index, own.payload, dataset)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index of the task with this id."""
        name, _, own_id = task_id.partition("/")
        if name not in self._names[split]:
            return None
        found = self._place(split, name, own_id, 0)
        if found is None:
            first, _, count = own_id.rpartition("#")
            walk = int(count) - 1 if count.isascii() and count.isdigit() else 0
            if walk > 0 and count == str(walk + 1):
                found = self._place(split, name, first, walk)
        return found

    def blocks(self, split: str) -> npt.NDArray[np.int64] | None:
        """Return a number per task, see :func:`turngym.envs.core.tasks.get_split_blocks`."""
        return self._mixtures[split].blocks() if len(self._names[split]) > 1 else None

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
            return Mixture([size for size in sizes.values() if size is not None])
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
        return Mixture(counts, [shares[name] for name in sizes])
