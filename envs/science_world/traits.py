"""What can be seen of a plant's genes: seeds show shape and colour, grown plants height and leaves.

A trait shows its dominant form unless both alleles are recessive.
"""

from __future__ import annotations

from .records import Genes
from .world import World

Forms = dict[str, tuple[str, str]]
"""Per trait, in the order of a random plant's genes: its dominant and its recessive form."""

TRAITS: dict[str, Forms] = {
    "pea": {
        "plant height": ("tall", "short"),
        "seed shape": ("round", "wrinkly"),
        "seed color": ("green", "orange"),
        "flower color": ("purple", "white"),
    },
    "unknown E": {
        "seed color": ("blue", "brown"),
        "seed shape": ("round", "square"),
        "leaf shape": ("elliptical", "linear"),
        "flower size": ("small", "large"),
    },
    "unknown B": {
        "plant height": ("short", "tall"),
        "seed color": ("green", "yellow"),
        "flower size": ("large", "small"),
        "flower color": ("orange", "yellow"),
    },
    "unknown C": {
        "plant height": ("short", "tall"),
        "leaf shape": ("pointed", "round"),
        "flower size": ("large", "small"),
        "flower color": ("orange", "yellow"),
    },
    "unknown D": {
        "seed shape": ("spherical", "ovate"),
        "leaf size": ("medium", "large"),
        "flower size": ("small", "medium"),
        "flower color": ("blue", "red"),
    },
}


def form(species: str, genes: Genes, trait: str) -> str:
    """How a trait shows; empty when the species has no such trait."""
    for name, first, second in genes:
        if name == trait:
            return TRAITS[species][trait][first & second]
    return ""


def _shown(world: World, plant: int, *traits: str) -> list[str]:
    genes = world.genes(plant)
    if genes is None:
        return []
    species = world.kind[plant].species
    return [seen for trait in traits if (seen := form(species, genes, trait))]


def plant_traits(world: World, plant: int) -> str:
    """The traits in a plant's description, spaced as the original has them."""
    stage, pea = world.stage(plant), world.kind[plant].species == "pea"
    if stage == "seed":
        seen = " ".join(_shown(world, plant, "seed shape", "seed color"))
        return f"{seen} " if pea and seen else seen
    if stage not in ("adult", "reproducing"):
        return ""
    parts = [f"a {height} height" for height in _shown(world, plant, "plant height")]
    if leaves := " ".join(_shown(world, plant, "leaf size", "leaf shape")):
        parts.append(f"{leaves} leaves")
    return f" with {' and '.join(parts)}" if parts else ""


def flower_traits(world: World, flower: int) -> str:
    """Size and colour of a flower, of plants that have genes."""
    return " ".join(_shown(world, world.life[flower].plant, "flower size", "flower color"))
