"""The generated tasks as a source: generated once, cached on disk, read when they are needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.fork import Shared
from ...core.tasks import Task, parse_index
from ...utils.disk_cache import (
    cache_arrays,
    name_seed,
    pack_strings,
    source_digest,
    unpack_strings,
)
from ..shop.generate import SPLITS, make_shop
from ..shop.tables import Shop
from .make import COUNTS, BuildProof, digest_tasks, make_task_id, make_tasks
from .payload import RetailTask, read_task, task_json

_HERE = Path(__file__).parents[1]
DIGESTS = {
    "full": {
        "train": "5ec1c7fb62f05ba376133e5d579d435f",
        "dev": "15b8a4307d93806d33b26d5f8f1a4d82",
        "test": "b6ffcf389cd2f3051a994cb9159c2ce0",
        "hard": "4b3140dc6954074827043e144f4f0a7c",
    },
    "micro": {
        "train": "4ea3877b40a9ecdd7ac67d9b4a9f7f28",
        "dev": "147ff1362c68007c8fdd690d44f0d330",
        "test": "278b5dc6cf9f765686a2187972c033ad",
        "hard": "118001b140ca9a15ab693ac6cbfa95b0",
    },
}
"""Digests of the published tasks (seed 0)."""


@lru_cache(maxsize=1)
def _hash_code() -> str:
    """Return a hash of the code that tasks come from."""
    files = sorted(path.relative_to(_HERE).as_posix() for path in _HERE.rglob("*.py"))
    return source_digest(_HERE, *files)


@lru_cache(maxsize=16)
def _load_texts(size: str, world_seed: int, split: str, proof: BuildProof) -> list[str]:
    """Return the tasks of a split as JSON."""

    def build() -> dict[str, Any]:
        tasks = make_tasks(size, world_seed, split, proof)
        return pack_strings([json.dumps(task_json(task)) for task in tasks])

    name = f"retail-{size}-{name_seed(world_seed)}-{split}-{_hash_code()}"
    stored = cache_arrays(name, build)
    return unpack_strings(stored["bytes"], stored["ends"])


class GeneratedTasks(Shared):
    """The generated tasks of one size and seed.

    Args:
        size: ``"full"`` or ``"micro"``.
        world_seed: Seed of the shops and tasks.
        tiers: Which difficulties there are.
        proof: Builds the check that tasks of a shop can be solved.
    """

    rules = ""

    def __init__(
        self, size: str, world_seed: int, tiers: tuple[int, ...], proof: BuildProof
    ) -> None:
        self.size, self.world_seed, self.tiers, self.proof = size, world_seed, tiers, proof
        self._all = len(tiers) == (2 if size == "micro" else 5)
        self._tasks: dict[tuple[str, int], Task[RetailTask]] = {}
        self._places: dict[str, list[int]] = {}

    def __reduce__(self) -> Any:
        return get_generated_tasks, (self.size, self.world_seed, self.tiers, self.proof)

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of tasks per split."""
        counts = COUNTS[self.size]
        return {s: counts[s] if self._all else len(self._places_of(s)) for s in SPLITS}

    def task(self, split: str, index: int) -> Task[RetailTask]:
        """Return the task at ``index``."""
        known = self._tasks.get((split, index))
        if known is None:
            place = index if self._all else self._places_of(split)[index]
            text = self._texts(split)[place]
            payload = read_task(json.loads(text))
            known = Task(make_task_id(split, place), split, index, payload)
            self._tasks[split, index] = known
        return known

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the place of the task with this id."""
        place = parse_index(split, task_id, COUNTS[self.size][split])
        if self._all or place is None:
            return place
        places = self._places_of(split)
        return places.index(place) if place in places else None

    def shop(self, name: str) -> Shop:
        """Return the shop of this name."""
        size, seed, split = name.split("/")
        return make_shop(size, int(seed), split)

    def _texts(self, split: str) -> list[str]:
        return _load_texts(self.size, self.world_seed, split, self.proof)

    def _places_of(self, split: str) -> list[int]:
        """Return the places of the tasks of the chosen tiers."""
        if split not in self._places:
            tiers = [json.loads(text)["tier"] for text in self._texts(split)]
            self._places[split] = [i for i, tier in enumerate(tiers) if tier in self.tiers]
        return self._places[split]


@lru_cache(maxsize=8)
def get_generated_tasks(
    size: str, world_seed: int, tiers: tuple[int, ...], proof: BuildProof
) -> GeneratedTasks:
    """Return the source of a size, seed and choice of tiers; there is one per process."""
    return GeneratedTasks(size, world_seed, tiers, proof)


def remake_tasks(size: str, split: str, proof: BuildProof) -> str:
    """Make the tasks of a split again from seed 0 and compare them with the published digest.

    Args:
        size: ``"full"`` or ``"micro"``.
        split: The split.
        proof: Builds the check that tasks of a shop can be solved.

    Returns:
        The digest.

    Raises:
        DataError: They differ from the published ones.
    """
    found = digest_tasks(make_tasks(size, 0, split, proof))
    wanted = DIGESTS[size][split]
    if found != wanted:
        raise DataError(
            f"Retail: the {split} tasks of size {size} have the digest {found}; expected {wanted}. "
            "The code that generates them has changed, which asks for a new version of the id."
        )
    return found
