"""Setting up the tasks on electricity (3-x)."""

from __future__ import annotations

from dataclasses import replace

from ..house import add_book
from ..world import World
from .goals_of import conducts
from .params import Conductivity, Power
from .placing import add, make, place, place_boxes
from .variations_circuit import PARTS

_ROOM = "workshop"
_ORIGIN_OF_SPECIES = 5


def power(world: World, params: Power) -> None:
    """3-1 and 3-2."""
    for key in ("battery", *PARTS, params.renewable, params.nonrenewable):
        add(world, key, _ROOM)


def known(world: World, params: Conductivity) -> None:
    """3-3."""
    add(world, "battery", _ROOM)
    add(world, params.part, _ROOM)
    if params.substance.startswith("book"):
        add_book(world, world.places[params.place], _ORIGIN_OF_SPECIES, early=True)
    elif params.substance != "water":
        add(world, params.substance, params.place, forced=True)
    place_boxes(world, _ROOM, params.box_yes, params.box_no)


def unknown(world: World, params: Conductivity, variation: int) -> None:
    """3-4."""
    add(world, "battery", _ROOM)
    add(world, params.part, _ROOM)
    thing = make(world, "unknown electrical substance", params.substance)
    metal = world.material[thing]
    if metal is not None:
        world.set_material(thing, replace(metal, conducts=conducts(params, variation)))
    place(world, thing, _ROOM)
    place_boxes(world, _ROOM, params.box_yes, params.box_no)
