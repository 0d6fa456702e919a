"""What is around the agent, gathered once per check and only when a goal asks."""

from __future__ import annotations

from functools import cached_property

from ..wording import full_name
from ..world import World


class Surroundings:
    """The agent's room and everything in it that is not hidden, in closed containers too."""

    def __init__(self, world: World) -> None:
        self._world = world

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
        """The things by their plain and by their shown names, in lower case."""
        world = self._world
        names = world.name
        found: dict[str, list[int]] = {}
        for thing in self.objects:
            name = names[thing]
            found.setdefault(name.lower(), []).append(thing)
            shown = full_name(world, thing)
            if shown != name:
                found.setdefault(shown.lower(), []).append(thing)
        return found

    def near_open_door(self) -> bool:
        """Whether a door of the room is open."""
        world = self._world
        return any(
            world.open[portal] and world.kind[portal].key == "door"
            for portal in world.portals[world.here()]
        )
