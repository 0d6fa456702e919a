"""Setting up the tasks on living things (4-x, 5-x, 7-x, 8-x, 10-x)."""

from __future__ import annotations

from ..records import CYCLES, PLANT_STAGES, Genes
from ..world import World
from . import draws
from .goals_of import genetics_pots
from .params import AnimalStages, Find, Genetics, Grow, Lifespan, PlantStages
from .placing import add, make, place, place_boxes, pot_of_soil
from .variations_living import ANIMALS, PLANTS
from .variations_measuring import UNKNOWN_TRAITS

OUTSIDE, GREENHOUSE = "outside", "greenhouse"
_EMPTY_POTS = 2
_SEEDS = 5
_PEA_GENES = ("plant height", "seed shape", "seed color", "flower color")
_JAR_GENES = {"pea": _PEA_GENES} | {
    plant: tuple(trait for trait, _ in traits) for plant, traits in UNKNOWN_TRAITS.items()
}
# Seeds in a jar of E get their genes in another order than plants of E elsewhere.
_JAR_GENES["unknown E"] = ("seed color", "leaf shape", "flower size", "seed shape")


def find(world: World, params: Find, variation: int, task: int) -> None:
    """4-1 to 4-4 (``task`` 0 to 3)."""
    for animal in sorted(params.animals, key=ANIMALS.index):
        add(world, animal, OUTSIDE)
    numbers = draws.find_pots(variation, task, params.group)
    plants = sorted(params.plants, key=PLANTS.index)
    grown = {plant: _adult(world, plant, params, variation, task) for plant in plants}
    for plant in plants:
        pot = make(world, "flower pot", f"flower pot {numbers[params.plants.index(plant)]}")
        world.put(grown[plant], pot)
        world.put(make(world, "soil"), pot)
        place(world, pot, GREENHOUSE, forced=True)
    for number in numbers[len(plants) : len(plants) + _EMPTY_POTS]:
        empty = make(world, "flower pot", f"flower pot {number}")
        place(world, empty, GREENHOUSE, forced=True)
    place_boxes(world, params.place, params.box)


def _adult(world: World, plant: str, params: Find, variation: int, task: int) -> int:
    made = make(world, plant_kind(plant))
    if plant == "pea":
        alleles = draws.find_genes(variation, task, params.group)
        half = len(_PEA_GENES)
        world.note[made] = tuple(zip(_PEA_GENES, alleles[:half], alleles[half:], strict=True))
    world.set_stage(made, "adult")
    return made


def plant_kind(plant: str) -> str:
    """Kind of the plant that grows from a seed: a tree, or a plant with genes."""
    return f"{plant} plant" if plant == "pea" or plant.startswith("unknown") else f"{plant} tree"


def grow(world: World, params: Grow) -> None:
    """5-1 and 5-2."""
    jar = make(world, "ceramic cup", "seed jar")
    for _ in range(_SEEDS):
        world.put(make(world, plant_kind(params.seed)), jar)
    place(world, jar, params.place)
    for number in (1, 2, 3):
        name = f"flower pot {number}"
        if params.pots == "filled":
            place(world, pot_of_soil(world, name), GREENHOUSE)
        else:
            place(world, make(world, "flower pot", name), GREENHOUSE)
            if params.pots == "floor":
                add(world, "soil", GREENHOUSE)


def lifespan(world: World, params: Lifespan) -> None:
    """7-1 to 7-3."""
    for animal in (params.long, params.medium, params.short):
        add(world, animal, OUTSIDE)


def animal_stages(world: World, params: AnimalStages) -> None:
    """8-1."""
    for animal in (params.animal, *sorted(params.distractors, key=ANIMALS.index)):
        add(world, animal, OUTSIDE)


def plant_stages(world: World, params: PlantStages, variation: int) -> None:
    """8-2."""
    plants: list[int] = []
    for stage in PLANT_STAGES:
        plants.append(make(world, plant_kind(params.plant)))
        world.set_stage(plants[-1], stage)
    numbers = draws.stage_pots(variation, params.group)
    for plant, number in zip(plants, numbers, strict=False):
        key = "self watering flower pot"
        pot = pot_of_soil(world, f"{key} {number}", key)
        world.put(plant, pot)
        place(world, pot, OUTSIDE, forced=True)
    first = make(world, params.distractor)
    animals = [first]
    for stage, _, _ in CYCLES[world.kind[first].cycle][1:]:
        animals.append(make(world, params.distractor))
        world.set_stage(animals[-1], stage)
    for animal in animals:
        place(world, animal, OUTSIDE, forced=True)


def genetics(world: World, params: Genetics, variation: int, task_id: str) -> None:
    """10-1 and 10-2."""
    of = draws.pea_seeds if task_id == "10-1" else draws.unknown_seeds
    seeds: list[int] = []
    for allele, free in enumerate(of(variation, params.jar)):
        seeds.append(make(world, plant_kind(params.plant)))
        world.note[seeds[-1]] = _jar_genes(params, allele, free)
    jar = make(world, "ceramic cup", "seed jar")
    for seed in seeds:
        world.put(seed, jar)
    place(world, jar, GREENHOUSE, forced=True)
    used = genetics_pots(task_id, params, variation)
    pots = {number: pot_of_soil(world, f"flower pot {number}") for number in sorted(used)}
    for number in used:
        place(world, pots[number], GREENHOUSE)
    place_boxes(world, GREENHOUSE, params.box_dominant, params.box_recessive)


def _jar_genes(params: Genetics, allele: int, free: list[int]) -> Genes:
    """Genes of a seed that has twice the same allele of the asked trait, and others at random."""
    traits = _JAR_GENES[params.plant]
    others = [trait for trait in traits if trait != params.trait]
    pairs = dict(
        zip(others, zip(free[: len(others)], free[len(others) :], strict=True), strict=True)
    )
    return tuple((trait, *pairs.get(trait, (allele, allele))) for trait in traits)
