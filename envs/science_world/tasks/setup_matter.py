"""Setting up the tasks on states of matter and on measuring (1-x and 2-x)."""

from __future__ import annotations

from ..materials import unknown_substance
from ..world import World
from . import draws
from .params import Melting, StateChange, Thermometer
from .placing import in_cup, make, place, place_boxes, place_inside
from .variations_matter import AROUND, THERMOMETER_PLACES

_IN = {
    "ice": ("kitchen", ("freezer",)),
    "orange juice": ("kitchen", ("fridge",)),
    "apple juice": ("kitchen", ("fridge",)),
    "chocolate": ("kitchen", ("fridge",)),
    "ice cream": ("kitchen", ("freezer",)),
    "marshmallow": ("kitchen", ("cupboard", "table", "desk")),
    "soap": ("kitchen", ("cupboard", "table", "desk")),
}
_METALS = ("workshop", ("table", "desk"))
_FORCED = ("lead", "tin", "mercury", "gallium", "caesium")


def change_state(world: World, params: StateChange, variation: int, task: int) -> None:
    """1-1 to 1-4; the tasks 1-4, 1-2, 1-1, 1-3 draw in this order (``task`` 0 to 3)."""
    name = params.substance
    if name != "water":
        thing = make(world, name)
        if name in draws.CUPPED:
            thing = in_cup(world, thing, draws.state_cup(variation, task, name))
        room, holders = _IN.get(name, _METALS)
        place_inside(world, thing, room, holders, name=name, forced=name in _FORCED)
    kitchen = world.places["kitchen"]
    for device, broken in (("sink", params.sink_broken), ("stove", params.stove_broken)):
        if broken:
            for found in world.named(device, kitchen):
                world.broken[found] = True


def use_thermometer(world: World, params: Thermometer, variation: int) -> None:
    """2-1."""
    if params.object.startswith("unknown"):
        thing = make(world, "unknown thermal substance", params.object)
    elif params.object == "wire":
        thing = make(world, "red wire", "wire")
    else:
        thing = make(world, params.object)
    row = THERMOMETER_PLACES.index(params.place) * len(AROUND) + AROUND.index(params.around)
    drawn = draws.start_temperature(variation, row, params.draw, params.around)
    world.heat[thing] = float(drawn)
    place(world, thing, params.place, forced=params.object == "sodium chloride")
    place_boxes(world, params.box_place, params.above, params.below)


def known_melting(world: World, params: Melting, variation: int) -> None:
    """2-2."""
    name = params.object
    if name in ("chocolate", "orange juice"):
        thing = make(world, name)
        if name in draws.CUPPED_KNOWN:
            thing = in_cup(world, thing, draws.known_cup(variation, params.copy, name))
        place_inside(world, thing, "kitchen", ("fridge",), name=name)
    elif name != "water":
        cup = draws.known_cup(variation, params.copy, name)
        place(world, in_cup(world, make(world, name), cup), "kitchen", name=name)
    place_boxes(world, "kitchen", params.above, params.below)


def unknown_melting(world: World, params: Melting, variation: int) -> None:
    """2-3."""
    thing = make(world, "unknown thermal substance", f"unknown substance {params.letter}")
    world.set_material(thing, unknown_substance(params.letter), rename=True)
    cup = draws.unknown_cup(variation, params.copy, params.letter)
    if cup is not None:
        thing = in_cup(world, thing, cup)
    place(world, thing, "kitchen", forced=True)
    place_boxes(world, "kitchen", params.above, params.below)
