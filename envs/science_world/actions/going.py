"""Opening and closing, going through doors, teleporting."""

from __future__ import annotations

from ..house.state import NONE, HouseState
from ..physics.ticking import wake
from ..text.names import find_other_end
from ..text.references import list_names
from .facts import get_box, get_name, has_tag, is_open


def refuse_open(house: HouseState, o: int, *, close: bool = False) -> str:
    """Return why something cannot be opened (or closed); empty when it can."""
    name, done = get_name(house, o), "closed" if close else "open"
    lacks = f"The {name} is not {'closeable' if close else 'openable'}."
    portal = has_tag(house, o, "portal")
    if not portal and get_box(house, o) != "closable":
        return lacks
    return f"The {name} is already {done}." if is_open(house, o) != close else ""


def open_it(house: HouseState, o: int) -> str:
    """Open a door, drain or container."""
    if refusal := refuse_open(house, o):
        return refusal
    house.open[o] = True
    return f"The {house.name[o]} is now open."


def close_it(house: HouseState, o: int) -> str:
    """Close a door, drain or container."""
    if refusal := refuse_open(house, o, close=True):
        return refusal
    house.open[o] = False
    return f"The {house.name[o]} is now closed."


def _find_door_to(house: HouseState, place: int) -> int:
    """Return the first door from here that leads to a place of that name, or NONE."""
    here = house.get_agent_place()
    for portal in sorted(house.portals[here], key=house.uid.__getitem__):
        end = find_other_end(house, portal, here)
        if end is not None and house.name[place] in list_names(house, end, NONE):
            return portal
    return NONE


def refuse_go(house: HouseState, o: int) -> str:
    """Return why the agent cannot go there; empty when it can."""
    if has_tag(house, o, "portal") and house.kind[o].key == "door":
        if not house.open[o]:
            return "The door is not open."
        away = find_other_end(house, o, house.get_agent_place()) is None
        return "The door doesn't appear to go anywhere." if away else ""
    if has_tag(house, o, "place"):
        door = _find_door_to(house, o)
        if door == NONE:
            return "It's not clear how to get there from here."
        return "" if house.open[door] else f"The {house.name[door]} is not open."
    return f"Its not clear how to go to/through a {get_name(house, o)}."


def enter(house: HouseState, place: int) -> None:
    """Put the agent into ``place``."""
    if place in house.behind:
        wake(house, place)
    house.put(house.agent, place)


def go(house: HouseState, o: int) -> str:
    """Go through a door or to a place next door."""
    if refusal := refuse_go(house, o):
        return refusal
    if has_tag(house, o, "portal"):
        end = find_other_end(house, o, house.get_agent_place())
        place = o if end is None else end
        enter(house, place)
        return f"You move through the {house.name[o]} to the {house.name[place]}."
    enter(house, o)
    return f"You move to the {house.name[o]}."


def refuse_teleport(house: HouseState, o: int) -> str:
    """Return why the agent cannot teleport there; empty when it can."""
    if has_tag(house, o, "place") and o != house.universe:
        return ""
    return f"Its not clear how to go to {get_name(house, o)}."


def teleport(house: HouseState, o: int) -> str:
    """Put the agent into any place at once."""
    if refusal := refuse_teleport(house, o):
        return refusal
    enter(house, o)
    return f"You teleport to the {house.name[o]}."
