"""Solvers that gather the evidence before they answer: planes (9-x) and circuits (3-3, 3-4)."""

from __future__ import annotations

import math

from ...house.state import NONE, get_terminal
from ...objects.materials import get_material
from ...objects.records import Slope
from ..draws import draw_conducts
from ..params import Conductivity, Planes
from .actor import Actor, Intent, Step
from .circuit import find_wires, join

_WORKSHOP = "workshop"
_WATCHED = 11
"""Ticks that a block slides before one looks how far it has come."""
_LOOKS = 3
"""Looks at a part that stays off, after which nobody expects it to go on."""


def solve_planes(a: Actor) -> Step:
    """Solve 9-1 to 9-3: let the block slide on each plane, then focus on the right one."""
    params: Planes = a.params
    house = a.house
    found: dict[str, int] = {}
    for thing in house.walk_inside(house.places[_WORKSHOP]):
        slope = house.note[thing]
        if isinstance(slope, Slope):
            found[slope.letter or slope.surface] = thing
    block = a.find_first(params.block)
    for name in (params.first, params.second):
        if step := _watch(a, block, found[name]):
            return step
    return a.focus(found[params.answer])


def _watch(a: Actor, block: int, plane: int) -> Step:
    """Have seen how far the block has come on a plane after some time."""
    house = a.house
    position = house.slides.get(plane, {}).get(block)
    if position is not None and a.count_looks(plane):
        return None
    slope: Slope = house.note[plane]
    speed = 0.1 * math.sin(math.radians(slope.angle)) * (1 - get_material(slope.surface).friction)
    if step := a.put(block, plane):
        return step
    slid = 1.0 - (1.0 if position is None else position)
    if slid < min(1.0, speed * _WATCHED):
        return a.wait(long=True)
    return a.reach(plane) or Intent("look at", (plane,))


def solve_conductivity(a: Actor) -> Step:
    """Solve 3-3 and 3-4: see whether a bulb goes on behind the thing, then put it into its box."""
    params: Conductivity = a.params
    right = params.box_yes if draw_conducts(params, a.variation) else params.box_no
    box = a.find_in_place(_WORKSHOP, right)
    if params.substance == "water":
        if not a.done:
            return a.fetch_water() or a.focus(a.find_water())
        return a.put(a.house.parent[a.subject], box)
    thing = a.subject if a.done else _find_asked(a, params)
    first = None if a.done else a.hold(thing) or a.focus(thing)
    return first or _try_out(a, thing) or a.put(thing, box)


def _find_asked(a: Actor, params: Conductivity) -> int:
    found = a.find_in_place(params.place, params.substance)
    return a.find_first(params.substance) if found == NONE else found


def _try_out(a: Actor, thing: int) -> Step:
    """Have looked at a bulb that is wired to a battery through the thing."""
    house = a.house
    battery, bulb = a.find_first("battery"), _find_bulb(a)
    conducting = draw_conducts(a.params, a.variation)
    if a.count_looks(bulb) >= (1 if conducting else _LOOKS):
        return None
    if step := a.carry(thing, _WORKSHOP):
        return step
    if a.is_held(thing):
        return Intent("put down", (thing,))
    # Battery, bulb and thing in a ring, with a wire between each two.
    ring = (
        (get_terminal(battery, 0), get_terminal(bulb, 1)),
        (get_terminal(bulb, 0), get_terminal(thing, 0)),
        (get_terminal(thing, 1), get_terminal(battery, 1)),
    )
    wires = find_wires(a, ring)
    if len(wires) < len(ring):
        return None
    for (one, other), wire in zip(ring, wires, strict=True):
        if step := join(a, one, wire, other):
            return step
    lit_late = conducting and not house.on[bulb]
    return a.wait() if lit_late else Intent("look at", (bulb,))


def _find_bulb(a: Actor) -> int:
    """Return the nearest light bulb of the workshop."""
    house = a.house
    things = house.walk_inside(house.places[_WORKSHOP])
    return next((thing for thing in things if "bulb" in house.kind[thing].tags), NONE)
