"""Opening and closing, going through doors, teleporting."""

from __future__ import annotations

from ..names import names_of
from ..physics.quiet import wake
from ..wording import other_end
from ..world import NONE, World
from .facts import box_of, has_tag, is_open, name_of


def refuse_open(world: World, o: int, *, close: bool = False) -> str:
    """Why something cannot be opened (or closed); empty when it can."""
    name, done = name_of(world, o), "closed" if close else "open"
    lacks = f"The {name} is not {'closeable' if close else 'openable'}."
    portal = has_tag(world, o, "portal")
    if not portal and box_of(world, o) != "closable":
        return lacks
    return f"The {name} is already {done}." if is_open(world, o) != close else ""


def open_it(world: World, o: int) -> str:
    """Open a door, drain or container."""
    if refusal := refuse_open(world, o):
        return refusal
    world.open[o] = True
    return f"The {world.name[o]} is now open."


def close_it(world: World, o: int) -> str:
    """Close a door, drain or container."""
    if refusal := refuse_open(world, o, close=True):
        return refusal
    world.open[o] = False
    return f"The {world.name[o]} is now closed."


def _door_to(world: World, place: int) -> int:
    """The first door from here that leads to a place of that name; NONE when there is none."""
    here = world.here()
    for portal in sorted(world.portals[here], key=world.uid.__getitem__):
        end = other_end(world, portal, here)
        if end is not None and world.name[place] in names_of(world, end, NONE):
            return portal
    return NONE


def refuse_go(world: World, o: int) -> str:
    """Why the agent cannot go there; empty when it can."""
    if has_tag(world, o, "portal") and world.kind[o].key == "door":
        if not world.open[o]:
            return "The door is not open."
        away = other_end(world, o, world.here()) is None
        return "The door doesn't appear to go anywhere." if away else ""
    if has_tag(world, o, "place"):
        door = _door_to(world, o)
        if door == NONE:
            return "It's not clear how to get there from here."
        return "" if world.open[door] else f"The {world.name[door]} is not open."
    return f"Its not clear how to go to/through a {name_of(world, o)}."


def enter(world: World, place: int) -> None:
    """The agent is in ``place`` from now on."""
    if place in world.behind:
        wake(world, place)
    world.put(world.agent, place)


def go(world: World, o: int) -> str:
    """Go through a door or to a place next door."""
    if refusal := refuse_go(world, o):
        return refusal
    if has_tag(world, o, "portal"):
        end = other_end(world, o, world.here())
        place = o if end is None else end
        enter(world, place)
        return f"You move through the {world.name[o]} to the {world.name[place]}."
    enter(world, o)
    return f"You move to the {world.name[o]}."


def refuse_teleport(world: World, o: int) -> str:
    """Why the agent cannot teleport there; empty when it can."""
    if has_tag(world, o, "place") and o != world.universe:
        return ""
    return f"Its not clear how to go to {name_of(world, o)}."


def teleport(world: World, o: int) -> str:
    """Be in any place at once."""
    if refusal := refuse_teleport(world, o):
        return refusal
    enter(world, o)
    return f"You teleport to the {world.name[o]}."
