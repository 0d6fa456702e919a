"""Looking around, at and into things, the inventory, reading."""

from __future__ import annotations

from ..house.state import TERMINALS, HouseState
from ..text.descriptions import describe, describe_in_lines, describe_portal, sort_by_name
from .facts import get_box, get_name, has_tag, is_bare, is_open


def look_around(house: HouseState) -> str:
    """Describe the agent's place."""
    return describe(house, house.get_agent_place(), True)


def inventory(house: HouseState) -> str:
    """Describe what the agent carries."""
    return f"In your inventory, you see:\n{_detailed(house)}"


def _detailed(house: HouseState) -> str:
    held = house.kids[house.inventory]
    return (
        "".join(f"\t{describe(house, o, True)}\n" for o in sort_by_name(house, held)) or "\tnothing"
    )


def look_at(house: HouseState, o: int) -> str:
    """Describe a thing in detail."""
    if house.goals is not None and o < TERMINALS:
        house.goals.note(house, "look at", o)
    if has_tag(house, o, "portal"):
        return describe_portal(house, o, house.get_agent_place())
    if o >= TERMINALS and _hidden(house, o):
        return "<ERROR: Could not retrieve object description>"
    return describe(house, o, True)


def _hidden(house: HouseState, handle: int) -> bool:
    return house.kind[(handle - TERMINALS) >> 1].poles == "hidden"


def refuse_look_in(house: HouseState, o: int) -> str:
    """Return why nobody can look into something; empty when one can."""
    if not get_box(house, o):
        return "It's not clear how to look inside of that."
    return (
        ""
        if is_open(house, o)
        else f"The {get_name(house, o)} isn't open, so you can't see inside."
    )


def look_in(house: HouseState, o: int) -> str:
    """Describe the contents of an open container or a place, with its doors."""
    if refusal := refuse_look_in(house, o):
        return refusal
    name = house.name[o]
    text = f"Inside the {name} is: \n{describe_in_lines(house, house.kids[o])}\n"
    if not house.kids[o] and is_bare(house, o):
        text = f"There is nothing in the {name}.\n"
    if portals := sorted(house.portals[o], key=house.uid.__getitem__):
        seen = ", ".join(describe_portal(house, portal, o) for portal in portals)
        text += f" You also see: {seen}."
    return text


def refuse_read(house: HouseState, o: int) -> str:
    """Return why something cannot be read; empty when it can."""
    return "" if has_tag(house, o, "document") else "It's not clear how to read that."


def read(house: HouseState, o: int) -> str:
    """Return the text of a document."""
    if house.goals is not None and o < TERMINALS:
        house.goals.note(house, "read", o)
    if refusal := refuse_read(house, o):
        return refusal
    text, key = house.note[o], house.kind[o].key
    if key == "recipe":
        return f"The recipe reads:\n{text.contents}"
    if key == "book":
        return f"The book reads:\n{text.title} by {text.author}\n{text.contents}"
    if text is None or not text.contents:
        return "The paper does not have any text on it."
    return f"The paper reads:\n{text.title}\n{text.contents}"
