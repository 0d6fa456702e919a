"""Properties of anything that an action may name: objects and terminals alike."""

from __future__ import annotations

from ..house.state import TERMINALS, HouseState
from ..objects.materials import Material
from ..text.names import write_terminal_name


def get_name(house: HouseState, h: int) -> str:
    """Return the plain name."""
    return write_terminal_name(house, h) if h >= TERMINALS else house.name[h]


def is_object(h: int) -> bool:
    """Return whether it is an object and no terminal."""
    return h < TERMINALS


def is_movable(house: HouseState, h: int) -> bool:
    """Return whether it can be moved at all; terminals cannot."""
    return h < TERMINALS and house.kind[h].movable


def get_box(house: HouseState, h: int) -> str:
    """Return its container kind; empty for none."""
    return "" if h >= TERMINALS else house.kind[h].box


def is_box(house: HouseState, h: int) -> bool:
    """Return whether things can be in it."""
    return h < TERMINALS and house.kind[h].box in ("open", "closable")


def is_open(house: HouseState, h: int) -> bool:
    """Return whether a container (or door) is open."""
    return h < TERMINALS and house.open[h]


def get_own_material(house: HouseState, h: int) -> Material | None:
    """Return its material."""
    return None if h >= TERMINALS else house.material[h]


def get_state(house: HouseState, h: int) -> str:
    """Return the state of matter; empty for things without a material."""
    return "" if h >= TERMINALS or house.material[h] is None else house.state[h]


def get_device(house: HouseState, h: int) -> str:
    """Return which device it is; empty for none."""
    return "" if h >= TERMINALS else house.kind[h].device


def has_tag(house: HouseState, h: int, tag: str) -> bool:
    """Return whether its kind is in a group."""
    return h < TERMINALS and tag in house.kind[h].tags


def is_edible(house: HouseState, h: int) -> bool:
    """Return whether it can be eaten now; of plants only seeds and what has no name yet.

    A plant takes the name of its stage at the start of each tick, and with it what can be eaten.
    """
    if h >= TERMINALS or not house.kind[h].edible:
        return False
    if not has_tag(house, h, "plant"):
        return True
    return house.name[h] == house.kind[h].name or " seed" in house.name[h]


def is_bare(house: HouseState, h: int) -> bool:
    """Return whether it has lost its hidden terminals and so may hold nothing at all.

    The ground passes on whatever is in it at every tick, and the dead drop all they hold: in the
    original that includes their hidden terminals.
    """
    if h >= TERMINALS:
        return True
    if has_tag(house, h, "ground"):
        return house.ticks > 0
    return has_tag(house, h, "living") and house.life[h].dead
