"""Solvers of the tasks on states of matter and on measuring (1-x and 2-x)."""

from __future__ import annotations

from ...house.state import NONE
from ...text.names import write_full_name
from ..params import Melting, StateChange, Thermometer
from .actor import Actor, Intent, Step

_OVEN_REACHES = 400.0
"""Up to this temperature the oven is quick; above it the blast furnace is used."""


def _find_substance(a: Actor) -> int:
    """Return the substance of the task: what is in focus, or else the nearest that has the name."""
    if a.done:
        return a.subject
    name = a.params.substance if isinstance(a.params, StateChange) else a.params.object
    if name == "water":
        return a.find_water()
    return a.find_first(name, "water" if name == "ice" else name)


def _focus_first(a: Actor) -> Step:
    """Get the substance and focus on it."""
    name = a.params.substance
    if name == "water" and not a.done:
        return a.fetch_water() or a.focus(a.find_water())
    return None if a.done else a.focus(_find_substance(a))


def _choose_heater(a: Actor, target: float) -> int:
    if target <= _OVEN_REACHES:
        return a.find_in_place("kitchen", "oven")
    return a.find_in_place("foundry", "blast furnace")


def _choose_cooler(a: Actor, target: float) -> int:
    """Return a freezer that is cold enough."""
    if target > -10.0:
        return a.find_in_place("kitchen", "freezer")
    return a.find_in_place("workshop", "ultra low temperature freezer")


def _change(a: Actor, thing: int, device: int) -> Step:
    """Have a thing in a device that runs, and wait; every tick is checked for its goals."""
    return (
        a.move_into(thing, device) or a.ensure_open(device) or a.switch(device) or a.wait(long=True)
    )


def _get_melting_point(a: Actor, thing: int) -> float:
    material = a.house.material[thing]
    return 0.0 if material is None else material.melts


def boil(a: Actor) -> Step:
    """Solve 1-1: into the oven or the furnace until it is gas or burns."""
    if step := _focus_first(a):
        return step
    thing = _find_substance(a)
    material = a.house.material[thing]
    if material is None:
        return a.wait()
    return _change(a, thing, _choose_heater(a, min(material.boils, material.ignites)))


def melt(a: Actor) -> Step:
    """Solve 1-2: frozen first when it is a liquid, then warmed."""
    if step := _focus_first(a):
        return step
    thing = _find_substance(a)
    melts = _get_melting_point(a, thing)
    if a.done == 1:
        return _change(a, thing, _choose_cooler(a, melts))
    return _change(a, thing, _choose_heater(a, melts))


def freeze(a: Actor) -> Step:
    """Solve 1-3: melted first when it is solid, in a pot that can be carried while it is hot."""
    if step := _focus_first(a):
        return step
    thing = _find_substance(a)
    if a.done > 1:
        return _change(a, thing, _choose_cooler(a, _get_melting_point(a, thing)))
    oven = _choose_heater(a, 0.0)
    pot = _find_pot(a, thing)
    return a.move_into(thing, pot) or a.put(pot, oven) or a.switch(oven) or a.wait()


def _find_pot(a: Actor, thing: int) -> int:
    """Return the metal pot: the one that holds the thing, or the nearest empty one."""
    house = a.house
    if house.kind[house.parent[thing]].key == "metal pot":
        return house.parent[thing]
    pots = [o for o in a.find_named("metal pot") if not house.kids[o]]
    return pots[0] if pots else a.find_empty_cup()


def change_state(a: Actor) -> Step:
    """Solve 1-4: liquids freeze or boil, solids melt; the oven does most of it."""
    if step := _focus_first(a):
        return step
    thing = _find_substance(a)
    material = a.house.material[thing]
    if material is None:
        return a.wait()
    solid = a.house.state[thing] == "solid"
    return _change(a, thing, _choose_heater(a, material.melts if solid else material.boils))


def use_thermometer(a: Actor) -> Step:
    """Solve 2-1: the temperature is read off the house when the thing is next to the box."""
    params: Thermometer = a.params
    if a.done == 0:
        return _take_thermometer(a)
    thing = a.subject if a.done > 1 else a.find_in_place(params.place, params.object)
    if thing == NONE:
        thing = a.find_first(params.object)
    if step := a.hold(thing) or a.focus(thing):
        return step
    if step := a.go_to(params.box_place):
        return step
    warm = a.house.heat[thing] >= params.threshold
    box = a.find_in_place(params.box_place, params.above if warm else params.below)
    return _measure(a, thing) or a.put(thing, box)


def _take_thermometer(a: Actor) -> Step:
    thermometer = a.find_first("thermometer")
    return a.hold(thermometer) or a.focus(thermometer)


def _measure(a: Actor, thing: int) -> Step:
    """Have used the thermometer on the thing."""
    thermometer = a.find_first("thermometer")
    if a.count_done("use", write_full_name(a.house, thing).lower()):
        return None
    if not a.is_held(thermometer):
        return a.hold(thermometer)
    return a.reach(thing) or Intent("use", (thermometer, thing))


def measure_melting(a: Actor) -> Step:
    """Solve 2-2 and 2-3: warm or cool the substance until its state at the threshold is known."""
    params: Melting = a.params
    if a.done == 0:
        return _take_thermometer(a)
    if a.done == 1:
        if params.object == "water":
            return a.fetch_water() or a.focus(a.find_water())
        return a.focus(a.find_first(params.object))
    answer = params.above if params.melting >= params.threshold else params.below
    return _find_side(a, a.subject, params) or a.focus(a.find_first(answer))


def _find_side(a: Actor, thing: int, params: Melting) -> Step:
    """Have measured the thing while it was solid above the threshold or liquid below it."""
    house = a.house
    if not a.get_place_name(thing) or a.count_done("use", write_full_name(house, thing).lower()):
        return None
    solid, heat = house.state[thing] == "solid", house.heat[thing]
    known = heat >= params.threshold if solid else heat <= params.threshold
    if known or params.melting == params.threshold:
        return _measure(a, thing)
    if not solid:
        cooler = _choose_cooler(a, 0.0)
        return a.move_into(thing, cooler) or a.ensure_open(cooler) or a.switch(cooler) or a.wait()
    oven, pot = _choose_heater(a, 0.0), _find_pot(a, thing)
    return a.move_into(thing, pot) or a.put(pot, oven) or a.switch(oven) or a.wait()
