"""How a task's things get into the house: only where their name is missing, unless forced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..world import TERMINALS, World, all_inside
from .java_random import JavaRandom


def make(world: World, key: str, name: str = "") -> int:
    """A new object of the task; such objects were made before the house."""
    return world.make(key, name=name, early=True)


def place(world: World, thing: int, room: str, *, name: str = "", forced: bool = False) -> None:
    """Put a thing into a room unless something with its name is anywhere in it.

    Args:
        world: Where.
        thing: What.
        room: Name of the room.
        name: The name to look for when it is not the thing's own (a cup's contents).
        forced: Do not look.
    """
    place_of = world.places[room]
    if forced or not _has(world, place_of, name or world.name[thing]):
        world.put(thing, place_of)


def add(world: World, key: str, room: str, *, forced: bool = False) -> None:
    """Make a thing of a kind and :func:`place` it."""
    place(world, make(world, key), room, forced=forced)


def place_inside(
    world: World,
    thing: int,
    room: str,
    holders: Sequence[str],
    *,
    name: str = "",
    forced: bool = False,
) -> None:
    """Put a thing into one of a room's containers, the first in a shuffle of all contents.

    Nothing happens when one of the containers that stand in the room already has something with
    the name in it, unless ``forced``.
    """
    place_of, wanted = world.places[room], name or world.name[thing]
    if not forced:
        for kid in world.kids[place_of]:
            if world.name[kid] in holders and _has(world, kid, wanted):
                return
    random = cast("JavaRandom", world.random)
    for found in random.shuffled(all_inside(world, place_of)):
        if found < TERMINALS and world.name[found] in holders:
            world.put(thing, found)
            return


def in_cup(world: World, substance: int, cup: str) -> int:
    """A cup around a substance, as warm as it is."""
    made = make(world, cup)
    world.open[made] = True
    world.heat[made] = world.heat[substance]
    world.put(substance, made)
    return made


def place_boxes(world: World, room: str, *names: str) -> None:
    """Answer boxes in a room."""
    for name in names:
        place(world, make(world, "answer box", name), room)


def pot_of_soil(world: World, name: str, key: str = "flower pot") -> int:
    """A flower pot with soil."""
    pot = make(world, key, name)
    world.put(make(world, "soil"), pot)
    return pot


def _has(world: World, holder: int, name: str) -> bool:
    return any(world.name[inside] == name for inside in world.inside(holder))
