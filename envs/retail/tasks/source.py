"""The generated tasks as a source: made once, kept on disk, read when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...disk_cache import cached_arrays, pack_strings, source_digest, unpack_strings
from ...errors import DataError
from ...tasks import Task, numbered
from ..shop.build import SPLITS, make_shop
from ..shop.tables import Shop
from .digests import DIGESTS
from .make import COUNTS, make_tasks, task_id, tasks_digest
from .payload import RetailTask, read_task, task_json

_HERE = Path(__file__).parents[1]


@lru_cache(maxsize=1)
def _code() -> str:
    """Hash of the code that tasks come from."""
    files = sorted(str(path.relative_to(_HERE)) for path in _HERE.rglob("*.py"))
    return source_digest(_HERE, *files)


@lru_cache(maxsize=16)
def _texts(size: str, world_seed: int, split: str) -> list[str]:
    """The tasks of a split as JSON."""

    def build() -> dict[str, Any]:
        tasks = make_tasks(size, world_seed, split)
        return pack_strings([json.dumps(task_json(task)) for task in tasks])

    stored = cached_arrays(f"retail-{size}-{world_seed}-{split}-{_code()}", build)
    return unpack_strings(stored["bytes"], stored["ends"])


class MadeTasks:
    """The generated tasks of one size and seed.

    Args:
        size: ``"full"`` or ``"micro"``.
        world_seed: Seed of the shops and tasks.
        tiers: Which difficulties there are.
    """

    def __init__(self, size: str, world_seed: int, tiers: tuple[int, ...]) -> None:
        self.size, self.world_seed, self.tiers = size, world_seed, tiers
        self._all = len(tiers) == (2 if size == "micro" else 5)
        self._tasks: dict[tuple[str, int], Task[RetailTask]] = {}
        self._places: dict[str, list[int]] = {}

    def __deepcopy__(self, memo: Mapping[int, Any]) -> MadeTasks:
        return self

    def __reduce__(self) -> Any:
        return made_tasks, (self.size, self.world_seed, self.tiers)

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        counts = COUNTS[self.size]
        return {s: counts[s] if self._all else len(self._kept(s)) for s in SPLITS}

    def task(self, split: str, index: int) -> Task[RetailTask]:
        """The task at ``index``."""
        known = self._tasks.get((split, index))
        if known is None:
            place = index if self._all else self._kept(split)[index]
            text = _texts(self.size, self.world_seed, split)[place]
            payload = read_task(json.loads(text))
            known = Task(task_id(split, place), split, index, payload)
            self._tasks[split, index] = known
        return known

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        place = numbered(split, task_id, COUNTS[self.size][split])
        if self._all or place is None:
            return place
        kept = self._kept(split)
        return kept.index(place) if place in kept else None

    def shop(self, name: str) -> Shop:
        """The shop of this name."""
        size, seed, split = name.split("/")
        return make_shop(size, int(seed), split)

    def _kept(self, split: str) -> list[int]:
        """Places of the tasks of the chosen tiers."""
        if split not in self._places:
            texts = _texts(self.size, self.world_seed, split)
            tiers = [json.loads(text)["tier"] for text in texts]
            self._places[split] = [i for i, tier in enumerate(tiers) if tier in self.tiers]
        return self._places[split]


@lru_cache(maxsize=8)
def made_tasks(size: str, world_seed: int, tiers: tuple[int, ...]) -> MadeTasks:
    """The source of a size, seed and choice of tiers; one per process."""
    return MadeTasks(size, world_seed, tiers)


def remake(size: str, split: str) -> str:
    """Make the tasks of a split again from seed 0 and compare them with the published digest.

    Returns:
        The digest.

    Raises:
        DataError: They differ from the published ones.
    """
    found = tasks_digest(make_tasks(size, 0, split))
    wanted = DIGESTS[size][split]
    if found != wanted:
        raise DataError(
            f"Retail: the {split} tasks of size {size} have the digest {found}; expected {wanted}. "
            "The code that makes them has changed: that is a new version of the id."
        )
    return found
