"""Properties of anything that an action may name: objects and terminals alike."""

from __future__ import annotations

from ..materials import Material
from ..wording import terminal_name
from ..world import TERMINALS, World


def name_of(world: World, h: int) -> str:
    """The plain name."""
    return terminal_name(world, h) if h >= TERMINALS else world.name[h]


def is_object(h: int) -> bool:
    """False for a terminal."""
    return h < TERMINALS


def movable(world: World, h: int) -> bool:
    """Whether it can be moved at all; terminals cannot."""
    return h < TERMINALS and world.kind[h].movable


def box_of(world: World, h: int) -> str:
    """Its container kind; empty for none."""
    return "" if h >= TERMINALS else world.kind[h].box


def is_box(world: World, h: int) -> bool:
    """Whether things can be in it."""
    return h < TERMINALS and world.kind[h].box in ("open", "closable")


def is_open(world: World, h: int) -> bool:
    """Whether a container (or door) is open."""
    return h < TERMINALS and world.open[h]


def material_of(world: World, h: int) -> Material | None:
    """Its material."""
    return None if h >= TERMINALS else world.material[h]


def state_of(world: World, h: int) -> str:
    """State of matter; empty for things without a material."""
    return "" if h >= TERMINALS or world.material[h] is None else world.state[h]


def device_of(world: World, h: int) -> str:
    """Which device it is; empty for none."""
    return "" if h >= TERMINALS else world.kind[h].device


def has_tag(world: World, h: int, tag: str) -> bool:
    """Whether its kind is in a group."""
    return h < TERMINALS and tag in world.kind[h].tags


def edible(world: World, h: int) -> bool:
    """Whether it can be eaten now; of plants only what is still called a seed, or has no name yet.

    A plant takes the name of its stage at the start of each tick, and with it what can be eaten.
    """
    if h >= TERMINALS or not world.kind[h].edible:
        return False
    if not has_tag(world, h, "plant"):
        return True
    return world.name[h] == world.kind[h].name or " seed" in world.name[h]


def bare(world: World, h: int) -> bool:
    """Whether it has lost its hidden terminals and so may hold nothing at all.

    The ground passes on whatever is in it at every tick, and the dead drop all they hold: in the
    original that includes their hidden terminals.
    """
    if h >= TERMINALS:
        return True
    if has_tag(world, h, "ground"):
        return world.ticks > 0
    return has_tag(world, h, "living") and world.life[h].dead
