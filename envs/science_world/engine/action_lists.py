"""Lists of actions: those that make sense now, and those that the original counts as valid.

Legal actions are understood by the parser: one form each, one name per object. The original's list
also has contents of closed containers, names drains otherwise, gives the two objects of dunking
the other way round, and not all of it is understood. Listing changes nothing in the house.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ..actions.facts import get_box, is_open
from ..actions.moving import (
    is_empty,
    refuse_carry,
    refuse_dunked,
    refuse_pouring,
    refuse_pouring_into,
    refuse_source,
)
from ..actions.table import Action, find_actions
from ..actions.using import refuse_use
from ..actions.wiring import find_contact
from ..house.state import NONE, TERMINALS, HouseState, get_creation_id, get_terminal
from ..physics.ticking import settle
from ..text.names import find_other_end
from ..text.references import list_long_names, list_names, name_door
from .parser import find_within_reach

ROUNDS, ORDERLY_ROUNDS = 20, 10


def find_visible_objects(house: HouseState) -> list[int]:
    """Return what is not hidden in the room, in closed containers too, and the places next door.

    The order is the original's: the room, doors with what is behind them, then contents.
    """
    found: dict[int, None] = {}
    _collect(house, house.get_agent_place(), found)
    return list(found)


def _collect(house: HouseState, o: int, found: dict[int, None]) -> None:
    found[o] = None
    portals = sorted(house.portals[o], key=house.uid.__getitem__)
    for portal in portals:
        found[portal] = None
        end = find_other_end(house, portal, o)
        if end is not None:
            found[end] = None
    shown: list[int] = [*house.kids[o], *portals]
    if house.kind[o].poles != "hidden":
        shown += (get_terminal(o, 0), get_terminal(o, 1))
    for kid in sorted(shown, key=lambda handle: get_creation_id(house, handle)):
        if kid >= TERMINALS or "portal" in house.kind[kid].tags:
            found[kid] = None
        else:
            _collect(house, kid, found)


def choose_unique_names(house: HouseState, objects: list[int]) -> dict[int, str]:
    """Return one name per object, different where the names allow it.

    Names that others have too are dropped unless none is left; then those who still share a
    name go on to their next one, in later rounds to a random one.
    """
    view = house.get_agent_place()
    all_names = [list_long_names(house, o, view) for o in objects]
    frequency = Counter(name for names in all_names for name in names)
    own = [[n for n in names if frequency[n] == 1] or names for names in all_names]
    chosen = [0] * len(own)
    position = house.random.state
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
                chosen[at] = house.random.next_int(len(own[at]))
    house.random.state = position
    return {o: names[at] for o, names, at in zip(objects, own, chosen, strict=True)}


def list_possible_objects(house: HouseState) -> list[str]:
    """Return the names of what is within reach, sorted; what the input "objects" shows."""
    settle(house)
    seen = _find_reachable(house)
    named = choose_unique_names(house, seen)
    return sorted(named.values())


def _find_reachable(house: HouseState) -> list[int]:
    """Return what is within reach from the room, hidden terminals and closed contents left out."""
    here = house.get_agent_place()
    near = set(find_within_reach(house, terminals=False))
    found: list[int] = [here]
    for portal in sorted(house.portals[here], key=house.uid.__getitem__):
        found.append(portal)
        end = find_other_end(house, portal, here)
        if end is not None:
            found.append(end)
    rest: list[int] = []
    for o in near:
        if o in found or "portal" in house.kind[o].tags or house.agent in house.walk_holders(o):
            continue
        rest.append(o)
        if house.kind[o].poles != "hidden":
            rest += (get_terminal(o, 0), get_terminal(o, 1))
    return found + sorted(rest, key=lambda handle: get_creation_id(house, handle))


def list_original_actions(house: HouseState) -> list[str]:
    """Return the actions that the original lists as valid now, sorted."""
    if house.pending is not None:
        return [str(at) for at in range(len(house.pending))]
    settle(house)
    objects = find_visible_objects(house)
    names = choose_unique_names(house, objects)
    view = house.get_agent_place()
    for o in objects:
        if o < TERMINALS and "portal" in house.kind[o].tags:
            names[o] = name_door(house, o, view)
    listed: list[str] = []
    for entry in find_actions(house.simple):
        if entry.slots == 0:
            listed.append(entry.words[0])
        elif entry.slots == 1:
            listed += _list_single(house, entry, objects, names, _fits)
        else:
            first, second = _fitting_pairs(house, entry, objects)
            if entry.name == "dunk object":
                # Listed in the order source, cup; the parser reads cup, source.
                first, second = second, first
            # Plain objects offer their first free terminal, so nothing connects to itself.
            same = entry.name in ("pour object", "use object")
            listed += _list_pairs(entry, first, second, names, same=same)
    return sorted(listed)


def list_legal_actions(house: HouseState) -> list[str]:
    """Return what can be done now, sorted; the numbers of the choices while a question is open."""
    if house.pending is not None:
        return [str(at) for at in range(len(house.pending))]
    settle(house)
    found = find_within_reach(house, terminals=False)
    parts = [o for o in found if house.kind[o].poles != "hidden"]
    objects = found + [get_terminal(o, side) for o in parts for side in (0, 1)]
    names = choose_unique_names(house, objects)
    view = house.get_agent_place()
    for o in found:
        if house.kind[o].key == "door":
            names[o] = list_names(house, o, view)[1]
    listed: list[str] = []
    for entry in find_actions(house.simple):
        if entry.slots == 0:
            listed.append(entry.shown or entry.words[0])
        elif entry.slots == 1:
            fits = _can_mix if entry.name == "mix" else _fits
            listed += _list_single(house, entry, objects, names, fits)
        else:
            first, second = _fitting_pairs(house, entry, objects)
            listed += _list_pairs(entry, first, second, names, same=False)
    return sorted(listed)


def _fits(house: HouseState, entry: Action, o: int) -> bool:
    """Return whether an action of one object is not refused for ``o``."""
    held = o < TERMINALS and house.parent[o] == house.inventory
    if entry.name in ("pick up", "put down") and held == (entry.name == "pick up"):
        return False
    return entry.refuse is None or not entry.refuse(house, o)


def _can_mix(house: HouseState, entry: Action, o: int) -> bool:  # noqa: ARG001 - one signature
    return o < TERMINALS and len(house.kids[o]) > 1


def _list_single(
    house: HouseState,
    entry: Action,
    objects: list[int],
    names: Mapping[int, str],
    fits: Callable[[HouseState, Action, int], bool],
) -> list[str]:
    word = entry.shown or entry.words[0]
    if entry.anywhere:
        return [f"{word} {name}" for name in house.places]
    return [f"{word} {names[o]}" for o in objects if fits(house, entry, o)]


def _list_pairs(
    entry: Action, first: list[int], second: list[int], names: Mapping[int, str], *, same: bool
) -> list[str]:
    """Return one text per pair; an object stands in both places only where ``same`` is true."""
    word = entry.shown or entry.words[0]
    ends = [(o, f" {entry.link} {names[o]}") for o in second]
    listed: list[str] = []
    for one in first:
        start = f"{word} {names[one]}"
        listed += [start + end for two, end in ends if same or one != two]
    return listed


def _fitting_pairs(
    house: HouseState, entry: Action, objects: list[int]
) -> tuple[list[int], list[int]]:
    """Return the objects for the first and for the second place of an action."""
    if entry.name == "move object":
        first = [o for o in objects if not refuse_carry(house, o)]
        return first, [o for o in objects if get_box(house, o) and is_open(house, o)]
    if entry.name == "pour object":
        first = [o for o in objects if not (refuse_pouring(house, o) or is_empty(house, o))]
        return first, [o for o in objects if not refuse_pouring_into(house, o)]
    if entry.name == "use object":
        return [o for o in objects if not refuse_use(house, o)], objects
    if entry.name == "dunk object":
        first = [o for o in objects if not refuse_dunked(house, o)]
        return first, [o for o in objects if not refuse_source(house, o)]
    free = [o for o in objects if find_contact(house, o)[0] != NONE]
    return free, free
