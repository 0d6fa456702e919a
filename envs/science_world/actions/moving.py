"""Moving, picking up, putting down, pouring and dunking."""

from __future__ import annotations

from ..world import NONE, World
from .facts import bare, box_of, is_box, is_open, material_of, movable, name_of, state_of

NO_LIQUID = (
    "You can't pick up a liquid directly.  Try pouring it from one container to another, or "
    "dunking empty containers into containers filled with the liquid."
)
NO_GAS = "You can't pick up a gas directly."


def refuse_carry(world: World, o: int) -> str:
    """Why a thing cannot be carried anywhere; empty when it can."""
    if not movable(world, o):
        return f"The {name_of(world, o)} is not moveable."
    state = state_of(world, o)
    return NO_LIQUID if state == "liquid" else NO_GAS if state == "gas" else ""


def refuse_target(world: World, target: int) -> str:
    """Why nothing can be moved into ``target``; empty when it can."""
    if not box_of(world, target):
        return "That can't be moved there."
    if not is_open(world, target):
        return f"That can't be moved there, because the {name_of(world, target)} isn't open."
    return ""


def refuse_move(world: World, o: int, target: int) -> str:
    """Why a move is refused; empty when it is not."""
    if not movable(world, o):
        return f"The {name_of(world, o)} is not moveable."
    if o == target:
        return "You can't move something into itself."
    return refuse_carry(world, o) or refuse_target(world, target)


def _put(world: World, o: int, target: int) -> None:
    """Move a thing; what is put into its own contents leaves the world with them."""
    if o in world.holders(target):
        world.take_out(o)
    else:
        world.put(o, target)


def _unplug(world: World, o: int) -> str:
    if not world.wired(o):
        return ""
    world.disconnect(o)
    return f"(disconnecting {world.name[o]})"


def move(world: World, o: int, target: int) -> str:
    """Move a thing into a container or place."""
    if refusal := refuse_move(world, o, target):
        return refusal
    _put(world, o, target)
    return f"{_unplug(world, o)}You move the {world.name[o]} to the {world.name[target]}."


def pick_up(world: World, o: int) -> str:
    """Move a thing into the inventory."""
    return move(world, o, world.inventory)


def put_down(world: World, o: int) -> str:
    """Move a thing into the agent's place."""
    return move(world, o, world.here())


def refuse_pouring(world: World, o: int) -> str:
    """Why something cannot be poured; empty when it can."""
    name = name_of(world, o)
    if not movable(world, o):
        return f"The {name} is not moveable."
    if is_box(world, o):
        return (
            "" if is_open(world, o) else f"The {name} can't be poured out, because it's not open."
        )
    container = world.parent[o]
    if container == NONE:
        return f"The {name} can't be poured out because it doesn't appear to be in a container."
    if not movable(world, container):
        return f"The {world.name[container]} the {name} is in is not movable."
    if material_of(world, o) is not None:
        if world.state[o] == "solid":
            return "I'm not sure how to pour a solid. "
        if world.state[o] == "gas":
            return "You can't pour a gas directly. "
    return ""


def refuse_pouring_into(world: World, target: int) -> str:
    """Why nothing can be poured into ``target``; empty when it can."""
    if not box_of(world, target):
        return "That can't be moved there, because it's not a container."
    if not is_open(world, target):
        return f"That can't be moved there, because the {name_of(world, target)} isn't open."
    return ""


def nothing_in(world: World, o: int) -> bool:
    """Whether it is a container that the original counts as empty."""
    return is_box(world, o) and not world.kids[o] and bare(world, o)


def pour(world: World, o: int, target: int) -> str:
    """Pour a liquid, or all movable contents of a container."""
    if refusal := refuse_pouring(world, o) or refuse_pouring_into(world, target):
        return refusal
    if nothing_in(world, o):
        return f"The {world.name[o]} is empty, so there's nothing to pour."
    if o == target:
        return "You can't move something into itself."
    name, into = world.name[o], world.name[target]
    if not is_box(world, o):
        _put(world, o, target)
        cut = _unplug(world, o)
        return f"{cut}{chr(10) if cut else ''}You pour the {name} into the {into}."
    text = ""
    for kid in world.kids[o]:
        if world.kind[kid].movable:
            _put(world, kid, target)
            if cut := _unplug(world, kid):
                text += f"{cut}\n"
    return f"{text}You pour the contents of the {name} into the {into}."


def liquids_in(world: World, o: int) -> list[int]:
    """The liquids that lie directly in an object."""
    if name_of(world, o) and o < len(world.kids):
        return [kid for kid in world.kids[o] if state_of(world, kid) == "liquid"]
    return []


def refuse_dunked(world: World, cup: int) -> str:
    """Why a cup cannot be dunked; empty when it can."""
    name = name_of(world, cup)
    if not movable(world, cup):
        return f"The {name} is not moveable."
    if box_of(world, cup) and not is_open(world, cup):
        return f"The {name} is not open."
    return "" if is_box(world, cup) else f"The {name} is not a container."


def refuse_source(world: World, source: int) -> str:
    """Why nothing can be dunked into ``source``; empty when it can."""
    liquids = liquids_in(world, source)
    name = name_of(world, source)
    if not liquids:
        return f"The {name} does not contain any liquids to dunk into."
    if not any(world.kind[liquid].movable for liquid in liquids):
        return f"The liquids in {name} aren't able to move."
    return ""


def dunk(world: World, cup: int, source: int) -> str:
    """Dunk a cup into what holds liquids: they move into the cup."""
    if cup == source:
        return "You can't dunk something into itself."
    if refusal := refuse_dunked(world, cup) or refuse_source(world, source):
        return refusal
    text, names = "", []
    for liquid in liquids_in(world, source):
        if world.kind[liquid].movable:
            _put(world, liquid, cup)
            text += _unplug(world, liquid)
            names.append(world.name[liquid])
    cup_name, moved = world.name[cup], ", ".join(names)
    return (
        f"{text}You dunk the {cup_name} in the {world.name[source]}, moving the liquids "
        f"({moved}) to the {cup_name}."
    )
