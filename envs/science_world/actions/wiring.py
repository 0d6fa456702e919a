"""Connecting and disconnecting."""

from __future__ import annotations

from ..physics.quiet import settle
from ..world import NONE, TERMINALS, World, terminal, terminal_owner
from .facts import name_of

TAKEN = (
    "is already connected, and must be disconnected before it can be connected to something else"
)
POINTS = {
    "polar": "polarized electrical components (e.g. anode, cathode)",
    "wire": "unpolarized electrical components (e.g. terminal 1, terminal 2)",
}


def contact(world: World, h: int) -> tuple[int, str]:
    """The terminal that a connection to ``h`` would use, or why there is none."""
    if h >= TERMINALS:
        if h in world.wires:
            return NONE, f"{name_of(world, h)} on {world.name[terminal_owner(h)]} {TAKEN}"
        return h, ""
    poles = world.kind[h].poles
    if poles != "hidden":
        return NONE, f"Connections must specify specific points of contact on {POINTS[poles]}"
    for side in (0, 1):
        if (found := terminal(h, side)) not in world.wires:
            return found, ""
    return NONE, f"{world.name[h]} {TAKEN}"


def refuse_connect(world: World, one: int, two: int) -> str:
    """Why two things cannot be connected; empty when they can."""
    # A taken terminal is refused after the check for connecting a thing to itself.
    first, second = _points_at(world, one), _points_at(world, two)
    for refusal in (first[1], second[1]):
        if refusal:
            return refusal
    if first[0] == second[0]:
        return "Something can't be connected to itself."
    return contact(world, first[0])[1] or contact(world, second[0])[1]


def _points_at(world: World, h: int) -> tuple[int, str]:
    return (h, "") if h >= TERMINALS else contact(world, h)


def connect(world: World, one: int, two: int) -> str:
    """Join two terminals; a plain object offers its first free one."""
    if refusal := refuse_connect(world, one, two):
        return refusal
    settle(world)
    first, second = contact(world, one)[0], contact(world, two)[0]
    world.connect(first, second)
    ends = [f"{name_of(world, h)} on {world.name[terminal_owner(h)]}" for h in (first, second)]
    return f"{ends[0]} is now connected to {ends[1]}"


def refuse_disconnect(world: World, h: int) -> str:
    """Why something cannot be disconnected; empty when it can."""
    if h < TERMINALS:
        return ""
    whole = world.name[terminal_owner(h)]
    return f"You must disconnect entire objects (such as {whole}) instead of just single terminals"


def disconnect(world: World, h: int) -> str:
    """Cut every connection of an object."""
    if refusal := refuse_disconnect(world, h):
        return refusal
    world.disconnect(h)
    return f"{world.name[h]} has been disconnected"
