"""Burning: things catch fire, burn for a while, become ash; water puts a fire out."""

from __future__ import annotations

from ..house.state import NONE, HouseState

HOTTER = 200.0
"""A burning thing is kept at least this much above the temperature that ignites it."""
COOLED = 10.0
"""A fire that was put out leaves the thing this much below the temperature that ignites it."""


def set_on_fire(house: HouseState, o: int) -> str:
    """Light an object that has a material; return what happened."""
    name = house.name[o]
    if house.burning[o]:
        return f"The {name} is already on fire."
    if house.fuel[o] <= 0:
        return f"The {name} is not flammable."
    house.burning[o] = house.burnt[o] = True
    return f"The {name} catches fire."


def burn(house: HouseState, o: int) -> None:
    """Live one tick of an object that is burning or hot enough to."""
    material = house.material[o]
    if material is None:
        return
    if house.heat[o] >= material.ignites and not house.burning[o]:
        set_on_fire(house, o)
    if not house.burning[o] or house.fuel[o] <= 0:
        return
    house.fuel[o] -= 1
    house.heat[o] = max(house.heat[o], material.ignites + HOTTER)
    if house.fuel[o] == 0:
        _become_ash(house, o)
    _meet_water(house, o)


def _become_ash(house: HouseState, o: int) -> None:
    house.burning[o] = False
    ash = house.make("ash")
    house.heat[ash] = house.heat[o]
    if (container := house.parent[o]) != NONE:
        house.put(ash, container)
    house.delete(o, expel=True)


def _meet_water(house: HouseState, o: int) -> None:
    near = list(house.kids[o])
    if (container := house.parent[o]) != NONE:
        near += house.kids[container]
    for other in sorted(near, key=house.uid.__getitem__):
        material = house.material[other]
        if material is None or material.substance != "water" or house.state[other] != "liquid":
            continue
        house.heat[other] = house.heat[o]
        house.burning[o] = False
        own = house.material[o]
        if own is not None:
            house.heat[o] = own.ignites - COOLED
        return
