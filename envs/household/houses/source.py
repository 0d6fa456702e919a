"""Generated tasks: train and dev in the same rooms, test in rooms of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...core.errors import BadValueError
from ...core.fork import Shared
from ...core.generated_tasks import REMEMBERED
from ...core.tasks import SPLITS, Task, parse_index
from ..engine.game import TASK_TYPES, Game
from .build import Builder, Furnished, Stream, is_playable, weigh
from .micro import SHORT_NAMES, load_micro_statistics
from .statistics import load_statistics

HELD_OUT = 500
"""Tasks in dev and in test."""
SEEN, UNSEEN = 30, 10
"""Rooms of each kind for train and dev, and for test alone."""
_RETRIES = 1000


class HouseTasks(Shared):
    """Tasks of generated rooms, a function of seed, split and index.

    A task is drawn anew until its room allows one of the wanted types and a plan wins it.

    Args:
        size: ``full`` or ``micro``.
        seed: Seed of rooms and tasks.
        kinds: Types of tasks.
    """

    def __init__(self, size: str, seed: int, kinds: tuple[str, ...]) -> None:
        self._given = size, seed, kinds
        self.seed, self.kinds = seed, kinds
        micro = size == "micro"
        statistics = load_micro_statistics() if micro else load_statistics()
        self.builder = Builder(statistics, short=micro, short_names=SHORT_NAMES)
        self._rooms: dict[tuple[int, int], Furnished] = {}
        self._room_kinds = tuple(statistics.rooms)
        counts = {
            (place, task): float(sum(row.goals.get(task, {}).values()))
            for place, row in enumerate(statistics.rooms.values())
            for task in TASK_TYPES
            if task in kinds
        }
        self._types = weigh({key: count for key, count in counts.items() if count})
        self._remembered = lru_cache(REMEMBERED)(self._draw)

    def __reduce__(self) -> Any:
        return load_house_tasks, self._given

    def sizes(self) -> Mapping[str, int | None]:
        """Return None for train, which has no end, and the number of tasks of dev and test."""
        return {"train": None, "dev": HELD_OUT, "test": HELD_OUT}

    def task(self, split: str, index: int) -> Task[Game]:
        """Return the task at ``index``."""
        return Task(f"{split}/{index}", split, index, self._remembered(split, index))

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index that a task id names."""
        return parse_index(split, task_id, self.sizes()[split])

    def room(self, kind: int, number: int) -> Furnished:
        """Return a room by its kind and its number; it is drawn once."""
        if (kind, number) not in self._rooms:
            stream = Stream(self.seed, 1, kind, number)
            self._rooms[kind, number] = self.builder.build_room(self._room_kinds[kind], stream)
        return self._rooms[kind, number]

    def _draw(self, split: str, index: int) -> Game:
        stream = Stream(self.seed, 2, SPLITS.index(split), index)
        first, rooms = (SEEN, UNSEEN) if split == "test" else (0, SEEN)
        for _ in range(_RETRIES):
            kind, task = self._types.draw(stream)
            furnished = self.room(kind, first + int(stream.draw() * rooms))
            if task not in furnished.goals:
                continue
            name = f"{split}/{index}"
            game = self.builder.build_game(name, self._room_kinds[kind], furnished, stream, task)
            if is_playable(game):
                return game
        raise BadValueError(
            f"Household: no room of world_seed {self.seed} allows a task of {self.kinds} "
            f"({_RETRIES} draws); choose more types of tasks or another seed."
        )


@lru_cache(maxsize=8)
def load_house_tasks(size: str, seed: int, kinds: tuple[str, ...]) -> HouseTasks:
    """Return the generated tasks, one object per process."""
    return HouseTasks(size, seed, kinds)
