"""Connecting and disconnecting."""

from __future__ import annotations

from ..house.state import NONE, TERMINALS, HouseState, get_terminal, get_terminal_owner
from ..physics.ticking import settle
from .facts import get_name

TAKEN = (
    "is already connected, and must be disconnected before it can be connected to something else"
)
POINTS = {
    "polar": "polarized electrical components (e.g. anode, cathode)",
    "wire": "unpolarized electrical components (e.g. terminal 1, terminal 2)",
}


def find_contact(house: HouseState, h: int) -> tuple[int, str]:
    """Return the terminal that a connection to ``h`` would use, or why there is none."""
    if h >= TERMINALS:
        if h in house.wires:
            return NONE, f"{get_name(house, h)} on {house.name[get_terminal_owner(h)]} {TAKEN}"
        return h, ""
    poles = house.kind[h].poles
    if poles != "hidden":
        return NONE, f"Connections must specify specific points of contact on {POINTS[poles]}"
    for side in (0, 1):
        if (found := get_terminal(h, side)) not in house.wires:
            return found, ""
    return NONE, f"{house.name[h]} {TAKEN}"


def refuse_connect(house: HouseState, one: int, two: int) -> str:
    """Return why two things cannot be connected; empty when they can."""
    # A taken terminal is refused after the check for connecting a thing to itself.
    first, second = _points_at(house, one), _points_at(house, two)
    for refusal in (first[1], second[1]):
        if refusal:
            return refusal
    if first[0] == second[0]:
        return "Something can't be connected to itself."
    return find_contact(house, first[0])[1] or find_contact(house, second[0])[1]


def _points_at(house: HouseState, h: int) -> tuple[int, str]:
    return (h, "") if h >= TERMINALS else find_contact(house, h)


def connect(house: HouseState, one: int, two: int) -> str:
    """Join two terminals; a plain object offers its first free one."""
    if refusal := refuse_connect(house, one, two):
        return refusal
    settle(house)
    first, second = find_contact(house, one)[0], find_contact(house, two)[0]
    house.connect(first, second)
    ends = [f"{get_name(house, h)} on {house.name[get_terminal_owner(h)]}" for h in (first, second)]
    return f"{ends[0]} is now connected to {ends[1]}"


def refuse_disconnect(house: HouseState, h: int) -> str:
    """Return why something cannot be disconnected; empty when it can."""
    if h < TERMINALS:
        return ""
    whole = house.name[get_terminal_owner(h)]
    return f"You must disconnect entire objects (such as {whole}) instead of just single terminals"


def disconnect(house: HouseState, h: int) -> str:
    """Cut every connection of an object."""
    if refusal := refuse_disconnect(house, h):
        return refusal
    house.disconnect(h)
    return f"{house.name[h]} has been disconnected"
