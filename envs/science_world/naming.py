"""What one object is called in texts: plain names with what fire, age or a place adds to them."""

from __future__ import annotations

from .records import CYCLES, Slope
from .world import TERMINALS, World, terminal_owner


def burning_name(world: World, o: int, name: str) -> str:
    """``name`` with what fire did to the object."""
    if world.burning[o]:
        return f"{name} (on fire)"
    return f"burned {name}" if world.burnt[o] else name


def full_name(world: World, o: int) -> str:
    """The descriptive name: the plain name unless the object burnt, lives or joins places."""
    if o >= TERMINALS:
        return terminal_name(world, o)
    k = world.kind[o]
    if k.plain_name:
        return burning_name(world, o, world.name[o]) if world.burnt[o] else world.name[o]
    if "animal" in k.tags:
        return stage_name(world, o)
    if "plane" in k.tags:
        return burning_name(world, o, plane_name(world, o))
    source, target = world.note[o]
    return f"door between {world.name[source]} and {world.name[target]}"


def terminal_name(world: World, handle: int) -> str:
    """``anode``, ``cathode``, ``terminal 1`` or ``terminal 2``."""
    if world.kind[terminal_owner(handle)].poles == "polar":
        return "cathode" if handle & 1 else "anode"
    return "terminal 2" if handle & 1 else "terminal 1"


def stage_name(world: World, animal: int) -> str:
    """An animal by its stage: "dove egg", "baby wolf", "tadpole"."""
    k = world.kind[animal]
    stage, fixed, _ = CYCLES[k.cycle][world.life[animal].stage]
    if fixed:
        return fixed
    return f"{k.species} egg" if stage == "egg" else f"{stage} {k.species}"


def plant_name(world: World, plant: int) -> str:
    """A plant as seed, tree or plant: "apple tree", "pea seed"."""
    k = world.kind[plant]
    grown = "tree" if k.look == "tree" else "plant"
    return burning_name(world, plant, f"{k.species} {grown if world.life[plant].stage else 'seed'}")


def whole_number(value: float) -> str:
    """A number without decimals, halves away from zero, the sign kept."""
    digits = str(int(abs(value) + 0.5))
    return f"-{digits}" if value < 0 else digits


def other_end(world: World, portal: int, view: int) -> int | None:
    """The end of a door that is not ``view`` (or in it); None when seen from elsewhere."""
    source, target = world.note[portal]
    if view == source:
        return target
    if view == target:
        return source
    if view >= 0 and world.parent[source] == view:
        return target
    return source if view >= 0 and world.parent[target] == view else None


def plane_name(world: World, o: int) -> str:
    """An inclined plane with its letter and, unless it is plain, its surface."""
    slope: Slope | None = world.note[o]
    if slope is None:
        return world.name[o]
    surface = "" if slope.surface == "plain surface" else f"with a {slope.surface} surface"
    return " ".join(part for part in (world.name[o], slope.letter, surface) if part)
