"""Burning: things catch fire, burn for a while, become ash; water puts a fire out."""

from __future__ import annotations

from ..world import NONE, World

HOTTER = 200.0
"""A burning thing is kept at least this much above the temperature that ignites it."""
COOLED = 10.0
"""A fire that was put out leaves the thing this much below the temperature that ignites it."""


def set_on_fire(world: World, o: int) -> str:
    """Light an object that has a material; says what happened."""
    name = world.name[o]
    if world.burning[o]:
        return f"The {name} is already on fire."
    if world.fuel[o] <= 0:
        return f"The {name} is not flammable."
    world.burning[o] = world.burnt[o] = True
    return f"The {name} catches fire."


def burn(world: World, o: int) -> None:
    """One tick of an object that is burning or hot enough to."""
    material = world.material[o]
    if material is None:
        return
    if world.heat[o] >= material.ignites and not world.burning[o]:
        set_on_fire(world, o)
    if not world.burning[o] or world.fuel[o] <= 0:
        return
    world.fuel[o] -= 1
    world.heat[o] = max(world.heat[o], material.ignites + HOTTER)
    if world.fuel[o] == 0:
        _become_ash(world, o)
    _meet_water(world, o)


def _become_ash(world: World, o: int) -> None:
    world.burning[o] = False
    ash = world.make("ash")
    world.heat[ash] = world.heat[o]
    if (container := world.parent[o]) != NONE:
        world.put(ash, container)
    world.delete(o, expel=True)


def _meet_water(world: World, o: int) -> None:
    near = list(world.kids[o])
    if (container := world.parent[o]) != NONE:
        near += world.kids[container]
    for other in sorted(near, key=world.uid.__getitem__):
        material = world.material[other]
        if material is None or material.substance != "water" or world.state[other] != "liquid":
            continue
        world.heat[other] = world.heat[o]
        world.burning[o] = False
        own = world.material[o]
        if own is not None:
            world.heat[o] = own.ignites - COOLED
        return
