"""A generated world as a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..papers import Paper, Search
from .parameters import WorldParameters
from .world import World, load_world


class GeneratedLibrary:
    """The papers of a generated world and their search engine; never waits.

    Attributes:
        world: The world.
        identity: Text that changes with the papers and with how they are searched.
        blocking: False.
    """

    blocking = False

    def __init__(self, world: World) -> None:
        self.world = world
        self.identity = world.identity

    def find(self, paper_id: str) -> Paper | None:
        """The paper, None when the world does not have it."""
        row = self.world.rows.get(paper_id)
        return None if row is None else self.world.paper(row)

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """Ids of found papers for each request, best first."""
        world = self.world
        search, ids = world.engine.search, world.ids
        return [[ids[row] for row in search(text, k, day)] for text, k, day in requests]

    def __deepcopy__(self, memo: Mapping[int, Any]) -> GeneratedLibrary:
        return self

    def __reduce__(self) -> Any:
        return generated_library, (self.world.parameters, self.world.seed)


def generated_library(parameters: WorldParameters, seed: int) -> GeneratedLibrary:
    """The library of these parameters and seed."""
    return GeneratedLibrary(load_world(parameters, seed))
