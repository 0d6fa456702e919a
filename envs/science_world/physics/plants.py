"""Plants grow from seed to death; flowers make pollen, are pollinated and become fruit."""

from __future__ import annotations

from ..records import Bloom, PlantLife
from ..wording import plant_name
from ..world import NONE, World

SEED, SEEDLING, ADULT, REPRODUCING, DEAD = range(5)
SEED_TICKS, SEEDLING_TICKS, ADULT_TICKS, FLOWER_TICKS = 10, 10, 5, 5
DRY_SEEDLING, DRY_GROWN = 20, 50
"""Dry ticks in a row that kill; half as many make a plant look unwell."""
BARE_OR_COLD = 5
"""Ticks in a row without soil, or outside the temperatures that it bears, that kill."""
COLDEST, WARMEST = 0.0, 50.0
FRUIT_STEPS = 5
"""Steps after pollination until a flower becomes fruit."""


def tick_plant(world: World, o: int) -> None:
    """A plant is named after its stage, then lives one tick of it."""
    world.name[o] = plant_name(world, o)
    stage = world.life[o].stage
    if stage == SEED:
        _germinate(world, o)
    elif stage == DEAD:
        _decay(world, o)
    else:
        _grow(world, o, stage)


def _beside(world: World, o: int, name: str) -> int:
    container = world.parent[o]
    if container == NONE:
        return NONE
    return next((kid for kid in world.kids[container] if world.name[kid] == name), NONE)


def _germinate(world: World, o: int) -> None:
    water = _beside(world, o, "water")
    if water == NONE or _beside(world, o, "soil") == NONE:
        return
    life: PlantLife = world.life[o]
    met = life.met + 1
    world.life[o] = life._replace(met=met)
    if met >= SEED_TICKS:
        world.delete(water)
        world.life[o] = PlantLife(SEEDLING, sick=life.sick)


def _grow(world: World, o: int, stage: int) -> None:
    life: PlantLife = world.life[o]
    water = _beside(world, o, "water")
    deadly = DRY_SEEDLING if stage == SEEDLING else DRY_GROWN
    dry = 0 if water != NONE else life.dry + 1
    if water != NONE and stage != SEEDLING:
        world.delete(water)
    bare = 0 if _beside(world, o, "soil") != NONE else life.bare + 1
    bearable = COLDEST < world.heat[o] < WARMEST
    chilled = 0 if bearable else life.chilled + 1
    # Grown plants are stressed by half the drought that kills, seedlings by any.
    stressed = bare > 0 or (dry > 0 if stage == SEEDLING else dry >= deadly / 2)
    sick = dry >= deadly / 2 or bare >= BARE_OR_COLD // 2 or not bearable
    met = life.met + (not stressed)
    world.life[o] = PlantLife(stage, met, dry, bare, chilled, sick, life.dead)
    if dry >= deadly or bare >= BARE_OR_COLD or chilled >= BARE_OR_COLD:
        world.life[o] = PlantLife(DEAD, sick=sick)
    if not stressed:
        _advance(world, o, stage, met, water)


def _advance(world: World, o: int, stage: int, met: int, water: int) -> None:
    life: PlantLife = world.life[o]
    if stage == SEEDLING and met >= SEEDLING_TICKS:
        world.delete(water)
        world.life[o] = PlantLife(ADULT, sick=life.sick)
    elif stage == ADULT and met >= ADULT_TICKS:
        world.life[o] = PlantLife(REPRODUCING, sick=life.sick)
    elif stage == REPRODUCING and met >= FLOWER_TICKS:
        if not any("flower" in world.kind[kid].tags for kid in world.kids[o]):
            flower = world.make("flower")
            world.life[flower] = Bloom(o)
            world.put(flower, o)
        if life.stage == REPRODUCING:
            world.life[o] = life._replace(met=0)


def _decay(world: World, o: int) -> None:
    if not world.life[o].dead:
        world.life[o] = world.life[o]._replace(dead=True)
    container = world.parent[o]
    if container == NONE:
        return
    for kid in world.kids[o]:
        if "flower" in world.kind[kid].tags:
            for inner in world.kids[kid]:
                world.put(inner, container)
            world.delete(kid)
        else:
            world.put(kid, container)


def tick_flower(world: World, o: int) -> None:
    """A fresh flower makes pollen and waits for a bee's; a pollinated one ripens."""
    bloom: Bloom = world.life[o]
    if bloom.step == 0:
        _make_pollen(world, o)
        _be_pollinated(world, o)
        return
    world.life[o] = bloom._replace(step=bloom.step + 1)
    plant = world.parent[o]
    if bloom.step + 1 > FRUIT_STEPS and plant != NONE:
        world.put(_fruit(world, bloom), plant)
        world.delete(o, expel=True)


def _make_pollen(world: World, flower: int) -> None:
    plant = world.life[flower].plant
    for kid in world.kids[flower]:
        if "pollen" in world.kind[kid].tags and world.note[kid] == plant:
            return
    pollen = world.make("pollen")
    world.note[pollen] = plant
    world.put(pollen, flower)


def _be_pollinated(world: World, flower: int) -> None:
    plant = world.life[flower].plant
    for kid in world.kids[flower]:
        is_pollen = "pollen" in world.kind[kid].tags
        for grain in (kid,) if is_pollen else world.kids[kid]:
            if "pollen" not in world.kind[grain].tags:
                continue
            father = world.note[grain]
            if father != plant and world.kind[father] is world.kind[plant]:
                world.delete(grain)
                world.life[flower] = Bloom(plant, 1, world.genes(father) or ())
                return


def _fruit(world: World, bloom: Bloom) -> int:
    """The fruit of a tree, or a seed with genes of both parents."""
    k = world.kind[bloom.plant]
    mother = world.genes(bloom.plant)
    if mother is None:
        return world.make(k.species)
    father = {trait: (first, second) for trait, first, second in bloom.other or ()}
    child: list[tuple[str, int, int]] = []
    for trait, first, second in mother:
        one, two = father[trait]
        pairs = [(first, one), (first, two), (second, one), (second, two)]
        for size in (4, 3, 2):
            drawn = world.random.next_int(size)
            pairs[size - 1], pairs[drawn] = pairs[drawn], pairs[size - 1]
        child.append((trait, *pairs[0]))
    seed = world.make(k.key)
    world.note[seed] = tuple(child)
    if k.species != "pea":
        # Seeds of the unknown plants draw eight genes before they get those of their parents.
        for _ in range(2 * len(mother)):
            world.random.next_int(2)
    return seed
