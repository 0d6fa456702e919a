"""Lists of actions: what the original counts as valid now, with one name per object.

The list is the original's: contents of closed containers are in it, one form stands for each
action, and not all of it is understood by the parser. Listing changes nothing in the world.
"""

from __future__ import annotations

from collections import Counter
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
from .names import canonical_door, long_names
from .parser import within_reach
from .physics.quiet import settle
from .wording import other_end
from .world import NONE, TERMINALS, World, creation_id, terminal

ROUNDS, ORDERLY_ROUNDS = 20, 10


def visible_objects(world: World) -> list[int]:
    """Everything in the room that is not hidden, closed contents too, and the places next door.

    The order is the original's: the room, doors with what is behind them, then contents.
    """
    found: dict[int, None] = {}
    _collect(world, world.here(), found)
    return list(found)


def _collect(world: World, o: int, found: dict[int, None]) -> None:
    found[o] = None
    portals = sorted(world.portals[o], key=world.uid.__getitem__)
    for portal in portals:
        found[portal] = None
        end = other_end(world, portal, o)
        if end is not None:
            found[end] = None
    shown: list[int] = [*world.kids[o], *portals]
    if world.kind[o].poles != "hidden":
        shown += (terminal(o, 0), terminal(o, 1))
    for kid in sorted(shown, key=lambda handle: creation_id(world, handle)):
        if kid >= TERMINALS or "portal" in world.kind[kid].tags:
            found[kid] = None
        else:
            _collect(world, kid, found)


def unique_names(world: World, objects: list[int]) -> dict[int, str]:
    """One name per object, different where the names allow it.

    Names that others have too are dropped unless none is left; then those who still share a
    name go on to their next one, in later rounds to a random one.
    """
    view = world.here()
    all_names = [long_names(world, o, view) for o in objects]
    frequency = Counter(name for names in all_names for name in names)
    own = [[n for n in names if frequency[n] == 1] or names for names in all_names]
    chosen = [0] * len(own)
    position = world.random.state
    for attempt in range(ROUNDS):
        current = [names[at] for names, at in zip(own, chosen, strict=True)]
        counts = Counter(current)
        clashing = [at for at, name in enumerate(current) if counts[name] > 1]
        if not clashing:
            break
        for at in clashing:
            if attempt < ORDERLY_ROUNDS:
                chosen[at] = (chosen[at] + 1) % len(own[at])
            else:
                chosen[at] = world.random.next_int(len(own[at]))
    world.random.state = position
    return {o: names[at] for o, names, at in zip(objects, own, chosen, strict=True)}


def possible_objects(world: World) -> list[str]:
    """Names of what is within reach, sorted; what the input "objects" shows."""
    settle(world)
    seen = _reachable(world)
    named = unique_names(world, seen)
    return sorted(named.values())


def _reachable(world: World) -> list[int]:
    """What is within reach from the room, hidden terminals and closed contents left out."""
    here = world.here()
    near = set(within_reach(world, terminals=False))
    found: list[int] = [here]
    for portal in sorted(world.portals[here], key=world.uid.__getitem__):
        found.append(portal)
        end = other_end(world, portal, here)
        if end is not None:
            found.append(end)
    rest: list[int] = []
    for o in near:
        if o in found or "portal" in world.kind[o].tags or world.agent in world.holders(o):
            continue
        rest.append(o)
        if world.kind[o].poles != "hidden":
            rest += (terminal(o, 0), terminal(o, 1))
    return found + sorted(rest, key=lambda handle: creation_id(world, handle))


def valid_actions(world: World) -> list[str]:
    """The actions that the original lists as valid now, sorted."""
    if world.pending is not None:
        return [str(at) for at in range(len(world.pending))]
    settle(world)
    objects = visible_objects(world)
    names = _listed_names(world, objects)
    listed: list[str] = []
    for entry in actions_of(world.simple):
        if entry.slots == 0:
            listed.append(entry.words[0])
        elif entry.slots == 1:
            listed += _single(world, entry, objects, names)
        else:
            listed += _double(world, entry, objects, names)
    return sorted(listed)


def _listed_names(world: World, objects: list[int]) -> dict[int, str]:
    names = unique_names(world, objects)
    view = world.here()
    for o in objects:
        if o < TERMINALS and "portal" in world.kind[o].tags:
            names[o] = canonical_door(world, o, view)
    return names


def _single(
    world: World, entry: Action, objects: list[int], names: dict[int, str]
) -> Iterable[str]:
    shown = entry.shown or entry.words[0]
    if entry.anywhere:
        return [f"{shown} {name}" for name in world.places]
    fitting: Iterable[int] = objects
    if (refuse := entry.refuse) is not None:
        fitting = [o for o in objects if not refuse(world, o)]
    held = world.kids[world.inventory]
    if entry.name == "pick up":
        fitting = [o for o in fitting if o not in held]
    elif entry.name == "put down":
        fitting = [o for o in fitting if o in held]
    return [f"{shown} {names[o]}" for o in fitting]


def _double(
    world: World, entry: Action, objects: list[int], names: dict[int, str]
) -> Iterable[str]:
    first, second, same = _sides(world, entry, objects)
    word = entry.words[0]
    ends = [(o, f" {entry.link} {names[o]}") for o in second]
    listed: list[str] = []
    for one in first:
        start = f"{word} {names[one]}"
        listed += [start + end for two, end in ends if same or one != two]
    return listed


def _sides(world: World, entry: Action, objects: list[int]) -> tuple[list[int], list[int], bool]:
    """Objects for the first and the second place, and whether one may stand in both."""
    if entry.name == "move object":
        first = [o for o in objects if not refuse_carry(world, o)]
        return first, [o for o in objects if box_of(world, o) and is_open(world, o)], False
    if entry.name == "pour object":
        first = [o for o in objects if not (refuse_pouring(world, o) or nothing_in(world, o))]
        return first, [o for o in objects if not refuse_pouring_into(world, o)], True
    if entry.name == "use object":
        return [o for o in objects if not refuse_use(world, o)], objects, True
    if entry.name == "dunk object":
        # Listed in the order source, cup; the parser reads cup, source.
        first = [o for o in objects if not refuse_source(world, o)]
        return first, [o for o in objects if not refuse_dunked(world, o)], False
    # Plain objects offer their first free terminal, so nothing connects to itself.
    free = [o for o in objects if contact(world, o)[0] != NONE]
    return free, free, False
