"""Quiet rooms: their ticks are counted and lived through later, with the same result.

A room is quiet when nothing in it can reach another room, draw a random number or make a new
object: things only warm up, cool down, age and slide. Bees in a closed hive draw one number each
and do nothing; their draws are taken at once, so the stream stays where the original's would be.
"""

from __future__ import annotations

from ..world import NONE, World
from .ticking import tick

CHECK_EVERY = 4
"""Ticks between two looks at a room that was not quiet."""
CHECK_ALL = 2
"""In the first ticks every room is looked at."""


def pass_over(world: World, place: int) -> bool:
    """Count a tick of a quiet room instead of running it; False when it must run."""
    behind = world.behind
    if place in behind:
        if world.wires:
            wake(world, place)
            return False
    else:
        due = world.ticks <= CHECK_ALL or (world.ticks + place) % CHECK_EVERY == 0
        if world.wires or not due:
            return False
        bees = caged_bees(world, place)
        if bees == NONE:
            return False
        behind[place] = 0
        world.caged[place] = bees
    behind[place] += 1
    for _ in range(world.caged[place]):
        world.random.next_int(2)
    return True


def wake(world: World, place: int) -> None:
    """Live through what a room has passed over; from then on it runs again."""
    ticks = world.behind.pop(place, 0)
    world.caged.pop(place, None)
    _catch_up(world, place, ticks)


def settle(world: World) -> None:
    """Bring every room up to date; quiet ones stay quiet."""
    for place, ticks in world.behind.items():
        if ticks:
            world.behind[place] = 0
            _catch_up(world, place, ticks)


def _catch_up(world: World, place: int, ticks: int) -> None:
    position = world.random.state
    for _ in range(ticks):
        world.late -= 1
        tick(world, place, world.late)
    world.random.state = position


def caged_bees(world: World, place: int) -> int:
    """Number of bees in closed hives of a quiet room; NONE when the room is not quiet."""
    if world.focus != NONE and world.place_of(world.focus) == place:
        return NONE
    bees = 0
    for o in world.inside(place):
        material = world.material[o]
        if world.burning[o] or (material is not None and world.heat[o] >= material.ignites):
            return NONE
        if (action := world.kind[o].tick) == "bee":
            bees += 1
        if action and not _is_calm(world, o, action):
            return NONE
    return bees


def _is_calm(world: World, o: int, action: str) -> bool:
    kids = world.kids[o]
    if action in ("basin", "toilet"):
        flowing = any(world.state[kid] == "liquid" for kid in kids)
        opened = any(world.open[drain] for drain in world.portals[o])
        return not (world.on[o] or world.life[o] or (opened and flowing))
    if action == "bee":
        hive = world.parent[o]
        return not world.open[hive] and not kids
    if action == "tree":
        return world.life[o].stage == 0 and not _watered(world, world.parent[o])
    if action in ("watering", "pot"):
        own = action == "watering" or "selfWateringFlowerPots" in world.simple
        return not own or any(world.kind[kid].key == "water" for kid in kids)
    if action == "heater":
        return not (world.on[o] and kids)
    if action == "ground":
        return not kids
    return action != "flower"


def _watered(world: World, container: int) -> bool:
    return any(world.name[kid] == "water" for kid in world.kids[container])
