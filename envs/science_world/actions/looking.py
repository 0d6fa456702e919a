"""Looking around, at and into things, the inventory, reading."""

from __future__ import annotations

from ..wording import by_name, describe, describe_portal, in_lines
from ..world import TERMINALS, World
from .facts import bare, box_of, has_tag, is_open, name_of


def look_around(world: World) -> str:
    """The agent's place."""
    return describe(world, world.here(), True)


def inventory(world: World) -> str:
    """What the agent carries."""
    return f"In your inventory, you see:\n{_detailed(world)}"


def _detailed(world: World) -> str:
    held = world.kids[world.inventory]
    return "".join(f"\t{describe(world, o, True)}\n" for o in by_name(world, held)) or "\tnothing"


def look_at(world: World, o: int) -> str:
    """A thing in detail."""
    if world.goals is not None and o < TERMINALS:
        world.goals.note(world, "look at", o)
    if has_tag(world, o, "portal"):
        return describe_portal(world, o, world.here())
    if o >= TERMINALS and _hidden(world, o):
        return "<ERROR: Could not retrieve object description>"
    return describe(world, o, True)


def _hidden(world: World, handle: int) -> bool:
    return world.kind[(handle - TERMINALS) >> 1].poles == "hidden"


def refuse_look_in(world: World, o: int) -> str:
    """Why nobody can look into something; empty when one can."""
    if not box_of(world, o):
        return "It's not clear how to look inside of that."
    return (
        "" if is_open(world, o) else f"The {name_of(world, o)} isn't open, so you can't see inside."
    )


def look_in(world: World, o: int) -> str:
    """Contents of an open container or a place, with its doors."""
    if refusal := refuse_look_in(world, o):
        return refusal
    name = world.name[o]
    text = f"Inside the {name} is: \n{in_lines(world, world.kids[o])}\n"
    if not world.kids[o] and bare(world, o):
        text = f"There is nothing in the {name}.\n"
    if portals := sorted(world.portals[o], key=world.uid.__getitem__):
        seen = ", ".join(describe_portal(world, portal, o) for portal in portals)
        text += f" You also see: {seen}."
    return text


def refuse_read(world: World, o: int) -> str:
    """Why something cannot be read; empty when it can."""
    return "" if has_tag(world, o, "document") else "It's not clear how to read that."


def read(world: World, o: int) -> str:
    """The text of a document."""
    if world.goals is not None and o < TERMINALS:
        world.goals.note(world, "read", o)
    if refusal := refuse_read(world, o):
        return refusal
    text, key = world.note[o], world.kind[o].key
    if key == "recipe":
        return f"The recipe reads:\n{text.contents}"
    if key == "book":
        return f"The book reads:\n{text.title} by {text.author}\n{text.contents}"
    if text is None or not text.contents:
        return "The paper does not have any text on it."
    return f"The paper reads:\n{text.title}\n{text.contents}"
