"""Solvers of the tasks on powering a part (3-1, 3-2), and how circuits are built."""

from __future__ import annotations

from collections.abc import Sequence

from ...house.state import NONE, get_terminal, get_terminal_owner
from ..params import Power
from .actor import Actor, Intent, Step

Ring = Sequence[tuple[int, int]]
"""Pairs of terminals, each to be joined by a wire."""


def solve_power(a: Actor) -> Step:
    """Solve 3-1 and 3-2: source anode to the part's cathode and back, by two wires."""
    params: Power = a.params
    part = a.subject if a.done else a.find_first(params.part)
    if not a.done:
        return a.focus(part)
    source = a.find_first(params.use or "battery")
    place = "outside" if params.use == params.renewable and params.use else "workshop"
    wires = find_wires(a, _make_ring(part, source))
    if step := _bring(a, (part, source, *wires), place):
        return step
    if params.use == params.nonrenewable and params.use and (step := a.switch(source)):
        return step
    for (one, other), wire in zip(_make_ring(part, source), wires, strict=True):
        if step := join(a, one, wire, other):
            return step
    return a.wait()


def _make_ring(part: int, source: int) -> Ring:
    """Return the source's anode to the part's cathode, and the other way round."""
    return (
        (get_terminal(source, 0), get_terminal(part, 1)),
        (get_terminal(part, 0), get_terminal(source, 1)),
    )


def find_wires(a: Actor, ring: Ring) -> list[int]:
    """Return a wire for each pair of terminals: one that touches either of them, or a free one.

    The list is shorter than the ring where there are not wires enough.
    """
    house = a.house
    wires = [thing for thing in a.walk_things() if "wire" in house.kind[thing].tags]
    found: list[int] = []
    for pair in ring:
        touched = (house.wires.get(end, NONE) for end in pair)
        owners = [get_terminal_owner(end) for end in touched if end != NONE]
        found.append(next((wire for wire in owners if wire in wires), NONE))
    free = [wire for wire in wires if wire not in found]
    free.sort(key=lambda wire: (not a.is_held(wire), house.is_wired(wire)))
    chosen = [wire if wire != NONE else free.pop(0) if free else NONE for wire in found]
    return [wire for wire in chosen if wire != NONE]


def join(a: Actor, one: int, wire: int, other: int) -> Step:
    """Have a wire between two terminals."""
    house = a.house
    for end, own in ((one, get_terminal(wire, 0)), (other, get_terminal(wire, 1))):
        if house.wires.get(end, NONE) == own:
            continue
        for used in (end, own):
            if used in house.wires:
                return Intent("disconnect", (get_terminal_owner(used),))
        return Intent("connect", (end, own))
    return None


def _bring(a: Actor, things: tuple[int, ...], place: str) -> Step:
    """Have things lie in a place: all are picked up before the way is walked once."""
    away = [thing for thing in things if a.get_place_name(thing) != place and not a.is_held(thing)]
    away.sort(key=lambda thing: a.get_place_name(thing) != a.here)
    if away:
        return a.hold(away[0])
    if step := a.go_to(place):
        return step
    held = [thing for thing in things if a.is_held(thing)]
    return Intent("put down", (held[0],)) if held else None
