"""Tasks generated from their index: train is unbounded, the other splits are not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .fork import Shared
from .randomness import make_generator
from .tasks import SPLITS, Task, parse_index

_RETRIES = 8
REMEMBERED = 4096
"""Tasks of an endless split that are kept: the copies of a group ask for the same one again."""


class Worded(Protocol):
    """A payload that is identified by its text."""

    @property
    def text(self) -> str:
        """Text of the task."""
        ...


P = TypeVar("P", bound=Worded)


class DrawnTasks(Shared, Generic[P]):
    """A task source whose payloads depend only on the seed, the split and the index.

    No text occurs twice in dev or test, if there are enough texts. Payloads are shared by all who
    ask for the same task, so nobody may change one.

    Args:
        seed: Seed of all draws.
        held_out: Number of tasks in dev and in test.
    """

    def __init__(self, seed: int, held_out: int) -> None:
        self.seed = seed
        self.held_out = held_out
        self._fixed: dict[str, list[P]] = {}
        self._begin_memory()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_remembered"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin_memory()

    def _begin_memory(self) -> None:
        self._remembered = lru_cache(REMEMBERED)(self._draw_first)

    @abstractmethod
    def draw(self, pool: int, random: np.random.Generator) -> P:
        """Draw a payload of split number ``pool``."""

    def sizes(self) -> Mapping[str, int | None]:
        """Return None for train, the fixed number of tasks for the other splits."""
        return {"train": None, "dev": self.held_out, "test": self.held_out}

    def task(self, split: str, index: int) -> Task[P]:
        """Return the task at ``index``."""
        endless = self.sizes()[split] is None
        payload = self._remembered(split, index) if endless else self._all(split)[index]
        return Task(f"{split}/{index}", split, index, payload)

    def forget(self) -> None:
        """Forget the tasks of endless splits that were drawn; they are drawn again alike."""
        self._remembered.cache_clear()

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index of a task id."""
        return parse_index(split, task_id, self.sizes()[split])

    def _draw_first(self, split: str, index: int) -> P:
        return self._draw(split, index, 0)

    def _draw(self, split: str, index: int, retry: int) -> P:
        pool = SPLITS.index(split)
        return self.draw(pool, make_generator(self.seed, pool, index, retry))

    def _all(self, split: str) -> list[P]:
        if split not in self._fixed:
            seen: set[str] = set()
            payloads = []
            for index in range(self.held_out):
                payload = self._draw(split, index, 0)
                for retry in range(1, _RETRIES):
                    if payload.text not in seen:
                        break
                    payload = self._draw(split, index, retry)
                seen.add(payload.text)
                payloads.append(payload)
            self._fixed[split] = payloads
        return self._fixed[split]
