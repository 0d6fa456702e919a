"""What is around the agent, gathered once per check and only when a goal asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from ..wording import full_name
from ..world import World

_RENAMED = frozenset(("animal", "bee", "plane"))
"""Ways of naming whose things are shown under another name than their plain one."""


class Surroundings:
    """The agent's room and everything in it that is not hidden, in closed containers too.

    Args:
        world: The world.
        wanted: Names that goals look for, as they may stand on a thing, to the name in lower case.
    """

    def __init__(self, world: World, wanted: Mapping[str, str]) -> None:
        self._world = world
        self._wanted = wanted

    @cached_property
    def place(self) -> str:
        """Name of the agent's room."""
        return self._world.name[self._world.here()]

    @cached_property
    def objects(self) -> list[int]:
        """The things in the room at any depth."""
        kids = self._world.kids
        found = list(kids[self._world.here()])
        # The list grows while it is read: contents follow their containers.
        for thing in found:
            if kids[thing]:
                found += kids[thing]
        return found

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """The wanted things by their plain and by their shown names, in lower case."""
        world, wanted = self._world, self._wanted
        names, kinds, burning, burnt = world.name, world.kind, world.burning, world.burnt
        found: dict[str, list[int]] = {}
        for thing in self.objects:
            name = names[thing]
            if name in wanted:
                found.setdefault(wanted[name], []).append(thing)
            if burning[thing] or burnt[thing] or kinds[thing].refer in _RENAMED:
                shown = full_name(world, thing)
                if shown != name and shown in wanted:
                    found.setdefault(wanted[shown], []).append(thing)
        return found

    @cached_property
    def plants(self) -> Counter[tuple[str, str]]:
        """Numbers of plants by species and stage."""
        world = self._world
        return Counter(
            (world.kind[thing].species, world.stage(thing))
            for thing in self.objects
            if world.kind[thing].cycle == "plant"
        )

    def near_open_door(self) -> bool:
        """Whether a door of the room is open."""
        world = self._world
        return any(
            world.open[portal] and world.kind[portal].key == "door"
            for portal in world.portals[world.here()]
        )
