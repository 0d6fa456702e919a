"""Actions that make sense now and that the parser understands: one form each, one name per object.

Other than the original's list (``valid.py``) this one leaves out what lies in closed containers,
names drains as they are called, and gives the two objects of dunking in the order that is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from .actions.facts import box_of, is_open
from .actions.moving import (
    nothing_in,
    refuse_carry,
    refuse_dunked,
    refuse_pouring,
    refuse_pouring_into,
    refuse_source,
)
from .actions.table import Action, actions_of
from .actions.using import refuse_use
from .actions.wiring import contact
from .names import names_of
from .parser import within_reach
from .physics.quiet import settle
from .valid import unique_names
from .world import NONE, TERMINALS, World, terminal


def legal_actions(world: World) -> list[str]:
    """What can be done now, sorted; the numbers of the choices while a question is open."""
    if world.pending is not None:
        return [str(at) for at in range(len(world.pending))]
    settle(world)
    objects = _nameable(world)
    names = _names(world, objects)
    listed: list[str] = []
    for entry in actions_of(world.simple):
        listed += _listed(world, entry, objects, names)
    return sorted(listed)


def _nameable(world: World) -> list[int]:
    """What is within reach, with the terminals of electrical parts."""
    found = within_reach(world, terminals=False)
    parts = [o for o in found if world.kind[o].poles != "hidden"]
    return found + [terminal(o, side) for o in parts for side in (0, 1)]


def _names(world: World, objects: list[int]) -> dict[int, str]:
    names = unique_names(world, objects)
    view = world.here()
    for o in objects:
        if o < TERMINALS and world.kind[o].key == "door":
            names[o] = names_of(world, o, view)[1]
    return names


def _listed(
    world: World, entry: Action, objects: list[int], names: dict[int, str]
) -> Iterable[str]:
    word = entry.shown or entry.words[0]
    if entry.slots == 0:
        return [word]
    if entry.anywhere:
        return [f"{word} {name}" for name in world.places]
    if entry.slots == 1:
        return [f"{word} {names[o]}" for o in objects if _fits(world, entry, o)]
    first, second = _sides(world, entry, objects)
    ends = [(o, f" {entry.link} {names[o]}") for o in second]
    return [
        text
        for one in first
        for start in (f"{word} {names[one]}",)
        for text in (start + end for two, end in ends if one != two)
    ]


def _fits(world: World, entry: Action, o: int) -> bool:
    if entry.name == "mix":
        return o < TERMINALS and len(world.kids[o]) > 1
    held = o < TERMINALS and world.parent[o] == world.inventory
    if entry.name in ("pick up", "put down") and held == (entry.name == "pick up"):
        return False
    return entry.refuse is None or not entry.refuse(world, o)


def _sides(world: World, entry: Action, objects: list[int]) -> tuple[list[int], list[int]]:
    if entry.name == "move object":
        first = [o for o in objects if not refuse_carry(world, o)]
        return first, [o for o in objects if box_of(world, o) and is_open(world, o)]
    if entry.name == "pour object":
        first = [o for o in objects if not (refuse_pouring(world, o) or nothing_in(world, o))]
        return first, [o for o in objects if not refuse_pouring_into(world, o)]
    if entry.name == "use object":
        return [o for o in objects if not refuse_use(world, o)], objects
    if entry.name == "dunk object":
        first = [o for o in objects if not refuse_dunked(world, o)]
        return first, [o for o in objects if not refuse_source(world, o)]
    free = [o for o in objects if contact(world, o)[0] != NONE]
    return free, free
