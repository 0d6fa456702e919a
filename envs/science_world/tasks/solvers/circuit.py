"""Solvers of the tasks on electricity (3-x)."""

from __future__ import annotations

from ...world import NONE, terminal, terminal_owner
from ..goals_of import conducts
from ..params import Conductivity, Power
from .actor import Actor, Intent, Step

_SEVERED = -1


def power(a: Actor) -> Step:
    """3-1 and 3-2: source anode to the part's cathode and back, by two wires."""
    params: Power = a.params
    part = a.subject if a.done else a.first(params.part)
    if not a.done:
        return a.focus(part)
    source = a.first(params.use or "battery")
    place = "outside" if params.use == params.renewable and params.use else "workshop"
    wires = _wires(a, part, source)
    if step := _bring(a, (part, source, *wires), place):
        return step
    if params.use == params.nonrenewable and params.use and (step := a.switch(source)):
        return step
    return _join(a, source, wires[0], part, 0) or _join(a, source, wires[1], part, 1) or a.wait()


def _wires(a: Actor, part: int, source: int) -> list[int]:
    """Two wires: those joined with the part or the source at their sides, or free ones."""
    world = a.world
    wires = [thing for thing in a.all_things() if "wire" in world.kind[thing].tags]
    found = [NONE, NONE]
    for side in (0, 1):
        for end in (terminal(source, side), terminal(part, 1 - side)):
            touched = world.wires.get(end, _SEVERED)
            if touched != _SEVERED and terminal_owner(touched) in wires:
                found[side] = terminal_owner(touched)
    free = [wire for wire in wires if wire not in found]
    free.sort(key=lambda wire: (not a.held(wire), world.wired(wire)))
    return [wire if wire != NONE else free.pop(0) for wire in found]


def _bring(a: Actor, things: tuple[int, ...], place: str) -> Step:
    """Have things lie in a place: all are picked up before the way is walked once."""
    away = [thing for thing in things if a.place_name(thing) != place and not a.held(thing)]
    away.sort(key=lambda thing: a.place_name(thing) != a.here)
    if away:
        return a.hold(away[0])
    if step := a.at(place):
        return step
    held = [thing for thing in things if a.held(thing)]
    return Intent("put down", (held[0],)) if held else None


def _join(a: Actor, source: int, wire: int, part: int, side: int) -> Step:
    """Have a wire between a source's pole and the part's other pole."""
    world = a.world
    pairs = (
        (terminal(source, side), terminal(wire, 0)),
        (terminal(wire, 1), terminal(part, 1 - side)),
    )
    for one, other in pairs:
        if world.wires.get(one, _SEVERED) == other:
            continue
        for end in (one, other):
            if end in world.wires:
                return Intent("disconnect", (terminal_owner(end),))
        return Intent("connect", (one, other))
    return None


def conductivity(a: Actor) -> Step:
    """3-3 and 3-4: into the box that the hidden answer names."""
    params: Conductivity = a.params
    right = params.box_yes if conducts(params, a.variation) else params.box_no
    box = a.in_place("workshop", right)
    if params.substance == "water":
        if not a.done:
            return a.fetch_water() or a.focus(a.water())
        return a.put(a.world.parent[a.subject], box)
    thing = a.subject if a.done else _asked(a, params)
    return (None if a.done else a.hold(thing) or a.focus(thing)) or a.put(thing, box)


def _asked(a: Actor, params: Conductivity) -> int:
    found = a.in_place(params.place, params.substance)
    return a.first(params.substance) if found == NONE else found
