"""Animals age with time; bees fly between flowers and rooms and carry pollen."""

from __future__ import annotations

from ..records import CYCLES, AnimalLife
from ..world import NONE, World

MOST_POLLEN = 5
"""A bee with more pollen than this takes no more."""


def tick_animal(world: World, o: int) -> None:
    """One tick of an animal's life."""
    life: AnimalLife = world.life[o]
    stages = CYCLES[world.kind[o].cycle]
    name, _, lasts = stages[life.stage]
    if name in ("dead", "death"):
        if not life.dead:
            world.life[o] = life._replace(dead=True)
        if (container := world.parent[o]) != NONE:
            for kid in world.kids[o]:
                world.put(kid, container)
    elif lasts:
        met = life.met + 1
        world.life[o] = AnimalLife(life.stage + 1) if met >= lasts else AnimalLife(life.stage, met)


def tick_bee(world: World, o: int) -> None:
    """A bee flies at random, in a flower it may take pollen first."""
    in_flower = world.parent[o] != NONE and "flower" in world.kind[world.parent[o]].tags
    drawn = world.random.next_int(2)
    if in_flower and drawn == 0:
        _take_pollen(world, o)
    elif not in_flower and drawn == 1:
        _enter_flower(world, o)
    else:
        _fly_on(world, o)
    tick_animal(world, o)


def _take_pollen(world: World, bee: int) -> None:
    carried = [kid for kid in world.kids[bee] if "pollen" in world.kind[kid].tags]
    flower = world.parent[bee]
    pollen = [kid for kid in world.kids[flower] if "pollen" in world.kind[kid].tags]
    if len(carried) <= MOST_POLLEN and pollen:
        world.put(pollen[world.random.next_int(len(pollen))], bee)


def within_reach(world: World, container: int) -> list[int]:
    """Contents of a container and of the open containers in it, in creation order."""
    found: list[int] = []
    _reach(world, container, found)
    return sorted(found, key=world.uid.__getitem__)


def _reach(world: World, container: int, found: list[int]) -> None:
    for kid in world.kids[container]:
        found.append(kid)
        if world.open[kid]:
            _reach(world, kid, found)


def _enter_flower(world: World, bee: int) -> None:
    if (place := world.parent[bee]) == NONE:
        return
    flowers = [o for o in within_reach(world, place) if "flower" in world.kind[o].tags]
    if flowers:
        world.put(bee, flowers[world.random.next_int(len(flowers))])


def _fly_on(world: World, bee: int) -> None:
    place = world.parent[bee]
    if place == NONE:
        return
    passable = [portal for portal in world.portals[place] if world.open[portal]]
    if passable:
        passable.sort(key=world.uid.__getitem__)
        source, target = world.note[passable[world.random.next_int(len(passable))]]
        _arrive(world, bee, target if place == source else source)
        return
    outer = _out_of(world, place)
    if outer != NONE:
        world.put(bee, outer)


def _out_of(world: World, container: int) -> int:
    """The place around a container that is open to it; NONE when there is none.

    What stands directly in the place need not be open itself: bees leave what the agent carries.
    """
    if "place" in world.kind[container].tags or not world.open[container]:
        return NONE
    outer = world.parent[container]
    while outer != NONE and "place" not in world.kind[outer].tags:
        if not world.open[container]:
            return NONE
        container, outer = outer, world.parent[outer]
    return outer


def _arrive(world: World, bee: int, place: int) -> None:
    from .quiet import wake  # which needs the ticks of this module

    if place in world.behind:
        wake(world, place)
    world.put(bee, place)
