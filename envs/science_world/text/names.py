"""What one object is called in texts: its plain name with what fire, age, genes or a place add."""

from __future__ import annotations

from ..house.state import TERMINALS, HouseState, get_terminal_owner
from ..objects.records import CYCLES, Slope, show_trait


def write_burning_name(house: HouseState, o: int, name: str) -> str:
    """Return ``name`` with what fire did to the object."""
    if house.burning[o]:
        return f"{name} (on fire)"
    return f"burned {name}" if house.burnt[o] else name


def write_full_name(house: HouseState, o: int) -> str:
    """Return the plain name unless the object burnt, lives or joins places."""
    if o >= TERMINALS:
        return write_terminal_name(house, o)
    k = house.kind[o]
    if k.plain_name:
        return write_burning_name(house, o, house.name[o]) if house.burnt[o] else house.name[o]
    if "animal" in k.tags:
        return write_stage_name(house, o)
    if "plane" in k.tags:
        return write_burning_name(house, o, write_plane_name(house, o))
    source, target = house.note[o]
    return f"door between {house.name[source]} and {house.name[target]}"


def write_terminal_name(house: HouseState, handle: int) -> str:
    """Return ``anode``, ``cathode``, ``terminal 1`` or ``terminal 2``."""
    if house.kind[get_terminal_owner(handle)].poles == "polar":
        return "cathode" if handle & 1 else "anode"
    return "terminal 2" if handle & 1 else "terminal 1"


def write_stage_name(house: HouseState, animal: int) -> str:
    """Return an animal by its stage: "dove egg", "baby wolf", "tadpole"."""
    k = house.kind[animal]
    stage, fixed, _ = CYCLES[k.cycle][house.life[animal].stage]
    if fixed:
        return fixed
    return f"{k.species} egg" if stage == "egg" else f"{stage} {k.species}"


def write_plant_name(house: HouseState, plant: int) -> str:
    """Return a plant as seed, tree or plant: "apple tree", "pea seed"."""
    k = house.kind[plant]
    grown = "tree" if k.look == "tree" else "plant"
    return write_burning_name(
        house, plant, f"{k.species} {grown if house.life[plant].stage else 'seed'}"
    )


def round_number(value: float) -> str:
    """Return a number without decimals, halves away from zero, the sign kept."""
    digits = str(int(abs(value) + 0.5))
    return f"-{digits}" if value < 0 else digits


def find_other_end(house: HouseState, portal: int, view: int) -> int | None:
    """Return the end of a door that is not ``view`` (or in it); None when seen from elsewhere."""
    source, target = house.note[portal]
    if view == source:
        return target
    if view == target:
        return source
    if view >= 0 and house.parent[source] == view:
        return target
    return source if view >= 0 and house.parent[target] == view else None


def write_plane_name(house: HouseState, o: int) -> str:
    """Return an inclined plane with its letter and, unless it is plain, its surface."""
    slope: Slope | None = house.note[o]
    if slope is None:
        return house.name[o]
    surface = "" if slope.surface == "plain surface" else f"with a {slope.surface} surface"
    return " ".join(part for part in (house.name[o], slope.letter, surface) if part)


def _shown(house: HouseState, plant: int, *traits: str) -> list[str]:
    genes = house.get_genes(plant)
    if genes is None:
        return []
    species = house.kind[plant].species
    return [seen for trait in traits if (seen := show_trait(species, genes, trait))]


def list_plant_traits(house: HouseState, plant: int) -> str:
    """Return the traits in a plant's description, spaced as the original has them."""
    stage, pea = house.get_stage(plant), house.kind[plant].species == "pea"
    if stage == "seed":
        seen = " ".join(_shown(house, plant, "seed shape", "seed color"))
        return f"{seen} " if pea and seen else seen
    if stage not in ("adult", "reproducing"):
        return ""
    parts = [f"a {height} height" for height in _shown(house, plant, "plant height")]
    if leaves := " ".join(_shown(house, plant, "leaf size", "leaf shape")):
        parts.append(f"{leaves} leaves")
    return f" with {' and '.join(parts)}" if parts else ""


def list_flower_traits(house: HouseState, flower: int) -> str:
    """Return the size and colour of a flower, of plants that have genes."""
    return " ".join(_shown(house, house.life[flower].plant, "flower size", "flower color"))
