"""Moving, picking up, putting down, pouring and dunking."""

from __future__ import annotations

from ..house.state import NONE, HouseState
from .facts import (
    get_box,
    get_name,
    get_own_material,
    get_state,
    is_bare,
    is_box,
    is_movable,
    is_open,
)

NO_LIQUID = (
    "You can't pick up a liquid directly.  Try pouring it from one container to another, or "
    "dunking empty containers into containers filled with the liquid."
)
NO_GAS = "You can't pick up a gas directly."


def refuse_carry(house: HouseState, o: int) -> str:
    """Return why a thing cannot be carried anywhere; empty when it can."""
    if not is_movable(house, o):
        return f"The {get_name(house, o)} is not moveable."
    state = get_state(house, o)
    return NO_LIQUID if state == "liquid" else NO_GAS if state == "gas" else ""


def refuse_target(house: HouseState, target: int) -> str:
    """Return why nothing can be moved into ``target``; empty when it can."""
    if not get_box(house, target):
        return "That can't be moved there."
    if not is_open(house, target):
        return f"That can't be moved there, because the {get_name(house, target)} isn't open."
    return ""


def refuse_move(house: HouseState, o: int, target: int) -> str:
    """Return why a move is refused; empty when it is not."""
    if not is_movable(house, o):
        return f"The {get_name(house, o)} is not moveable."
    if o == target:
        return "You can't move something into itself."
    return refuse_carry(house, o) or refuse_target(house, target)


def _put(house: HouseState, o: int, target: int) -> None:
    """Move a thing; what is put into its own contents leaves the house with them."""
    if o in house.walk_holders(target):
        house.take_out(o)
    else:
        house.put(o, target)


def _unplug(house: HouseState, o: int) -> str:
    if not house.is_wired(o):
        return ""
    house.disconnect(o)
    return f"(disconnecting {house.name[o]})"


def move(house: HouseState, o: int, target: int) -> str:
    """Move a thing into a container or place."""
    if refusal := refuse_move(house, o, target):
        return refusal
    _put(house, o, target)
    return f"{_unplug(house, o)}You move the {house.name[o]} to the {house.name[target]}."


def pick_up(house: HouseState, o: int) -> str:
    """Move a thing into the inventory."""
    return move(house, o, house.inventory)


def put_down(house: HouseState, o: int) -> str:
    """Move a thing into the agent's place."""
    return move(house, o, house.get_agent_place())


def refuse_pouring(house: HouseState, o: int) -> str:
    """Return why something cannot be poured; empty when it can."""
    name = get_name(house, o)
    if not is_movable(house, o):
        return f"The {name} is not moveable."
    if is_box(house, o):
        return (
            "" if is_open(house, o) else f"The {name} can't be poured out, because it's not open."
        )
    container = house.parent[o]
    if container == NONE:
        return f"The {name} can't be poured out because it doesn't appear to be in a container."
    if not is_movable(house, container):
        return f"The {house.name[container]} the {name} is in is not movable."
    if get_own_material(house, o) is not None:
        if house.state[o] == "solid":
            return "I'm not sure how to pour a solid. "
        if house.state[o] == "gas":
            return "You can't pour a gas directly. "
    return ""


def refuse_pouring_into(house: HouseState, target: int) -> str:
    """Return why nothing can be poured into ``target``; empty when it can."""
    if not get_box(house, target):
        return "That can't be moved there, because it's not a container."
    if not is_open(house, target):
        return f"That can't be moved there, because the {get_name(house, target)} isn't open."
    return ""


def is_empty(house: HouseState, o: int) -> bool:
    """Return whether it is a container that the original counts as empty."""
    return is_box(house, o) and not house.kids[o] and is_bare(house, o)


def pour(house: HouseState, o: int, target: int) -> str:
    """Pour a liquid, or all movable contents of a container."""
    if refusal := refuse_pouring(house, o) or refuse_pouring_into(house, target):
        return refusal
    if is_empty(house, o):
        return f"The {house.name[o]} is empty, so there's nothing to pour."
    if o == target:
        return "You can't move something into itself."
    name, into = house.name[o], house.name[target]
    if not is_box(house, o):
        _put(house, o, target)
        cut = _unplug(house, o)
        return f"{cut}{chr(10) if cut else ''}You pour the {name} into the {into}."
    text = ""
    for kid in house.kids[o]:
        if house.kind[kid].movable:
            _put(house, kid, target)
            if cut := _unplug(house, kid):
                text += f"{cut}\n"
    return f"{text}You pour the contents of the {name} into the {into}."


def find_liquids(house: HouseState, o: int) -> list[int]:
    """Return the liquids that lie directly in an object."""
    if get_name(house, o) and o < len(house.kids):
        return [kid for kid in house.kids[o] if get_state(house, kid) == "liquid"]
    return []


def refuse_dunked(house: HouseState, cup: int) -> str:
    """Return why a cup cannot be dunked; empty when it can."""
    name = get_name(house, cup)
    if not is_movable(house, cup):
        return f"The {name} is not moveable."
    if get_box(house, cup) and not is_open(house, cup):
        return f"The {name} is not open."
    return "" if is_box(house, cup) else f"The {name} is not a container."


def refuse_source(house: HouseState, source: int) -> str:
    """Return why nothing can be dunked into ``source``; empty when it can."""
    liquids = find_liquids(house, source)
    name = get_name(house, source)
    if not liquids:
        return f"The {name} does not contain any liquids to dunk into."
    if not any(house.kind[liquid].movable for liquid in liquids):
        return f"The liquids in {name} aren't able to move."
    return ""


def dunk(house: HouseState, cup: int, source: int) -> str:
    """Dunk a cup into what holds liquids: they move into the cup."""
    if cup == source:
        return "You can't dunk something into itself."
    if refusal := refuse_dunked(house, cup) or refuse_source(house, source):
        return refusal
    text, names = "", []
    for liquid in find_liquids(house, source):
        if house.kind[liquid].movable:
            _put(house, liquid, cup)
            text += _unplug(house, liquid)
            names.append(house.name[liquid])
    cup_name, moved = house.name[cup], ", ".join(names)
    return (
        f"{text}You dunk the {cup_name} in the {house.name[source]}, moving the liquids "
        f"({moved}) to the {cup_name}."
    )
