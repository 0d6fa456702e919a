"""Plants grow from seed to death; flowers make pollen, are pollinated and become fruit."""

from __future__ import annotations

from ..house.state import NONE, HouseState
from ..objects.records import Bloom, PlantLife
from ..text.names import write_plant_name

SEED, SEEDLING, ADULT, REPRODUCING, DEAD = range(5)
SEED_TICKS, SEEDLING_TICKS, ADULT_TICKS, FLOWER_TICKS = 10, 10, 5, 5
DRY_SEEDLING, DRY_GROWN = 20, 50
"""Dry ticks in a row that kill; half as many make a plant look unwell."""
BARE_OR_COLD = 5
"""Ticks in a row without soil, or outside the temperatures that it bears, that kill."""
COLDEST, WARMEST = 0.0, 50.0
FRUIT_STEPS = 5
"""Steps after pollination until a flower becomes fruit."""


def tick_plant(house: HouseState, o: int) -> None:
    """Name a plant after its stage, then live one tick of it."""
    house.name[o] = write_plant_name(house, o)
    stage = house.life[o].stage
    if stage == SEED:
        _germinate(house, o)
    elif stage == DEAD:
        _decay(house, o)
    else:
        _grow(house, o, stage)


def _beside(house: HouseState, o: int, name: str) -> int:
    container = house.parent[o]
    if container == NONE:
        return NONE
    return next((kid for kid in house.kids[container] if house.name[kid] == name), NONE)


def _germinate(house: HouseState, o: int) -> None:
    water = _beside(house, o, "water")
    if water == NONE or _beside(house, o, "soil") == NONE:
        return
    life: PlantLife = house.life[o]
    met = life.met + 1
    house.life[o] = life._replace(met=met)
    if met >= SEED_TICKS:
        house.delete(water)
        house.life[o] = PlantLife(SEEDLING, sick=life.sick)


def _grow(house: HouseState, o: int, stage: int) -> None:
    life: PlantLife = house.life[o]
    water = _beside(house, o, "water")
    deadly = DRY_SEEDLING if stage == SEEDLING else DRY_GROWN
    dry = 0 if water != NONE else life.dry + 1
    if water != NONE and stage != SEEDLING:
        house.delete(water)
    bare = 0 if _beside(house, o, "soil") != NONE else life.bare + 1
    bearable = COLDEST < house.heat[o] < WARMEST
    chilled = 0 if bearable else life.chilled + 1
    # Grown plants are stressed by half the drought that kills, seedlings by any.
    stressed = bare > 0 or (dry > 0 if stage == SEEDLING else dry >= deadly / 2)
    sick = dry >= deadly / 2 or bare >= BARE_OR_COLD // 2 or not bearable
    met = life.met + (not stressed)
    house.life[o] = PlantLife(stage, met, dry, bare, chilled, sick, life.dead)
    if dry >= deadly or bare >= BARE_OR_COLD or chilled >= BARE_OR_COLD:
        house.life[o] = PlantLife(DEAD, sick=sick)
    if not stressed:
        _advance(house, o, stage, met, water)


def _advance(house: HouseState, o: int, stage: int, met: int, water: int) -> None:
    life: PlantLife = house.life[o]
    if stage == SEEDLING and met >= SEEDLING_TICKS:
        house.delete(water)
        house.life[o] = PlantLife(ADULT, sick=life.sick)
    elif stage == ADULT and met >= ADULT_TICKS:
        house.life[o] = PlantLife(REPRODUCING, sick=life.sick)
    elif stage == REPRODUCING and met >= FLOWER_TICKS:
        if not any("flower" in house.kind[kid].tags for kid in house.kids[o]):
            flower = house.make("flower")
            house.life[flower] = Bloom(o)
            house.put(flower, o)
        if life.stage == REPRODUCING:
            house.life[o] = life._replace(met=0)


def _decay(house: HouseState, o: int) -> None:
    if not house.life[o].dead:
        house.life[o] = house.life[o]._replace(dead=True)
    container = house.parent[o]
    if container == NONE:
        return
    for kid in house.kids[o]:
        if "flower" in house.kind[kid].tags:
            for inner in house.kids[kid]:
                house.put(inner, container)
            house.delete(kid)
        else:
            house.put(kid, container)


def tick_flower(house: HouseState, o: int) -> None:
    """Make pollen and wait for a bee's; a pollinated flower ripens."""
    bloom: Bloom = house.life[o]
    if bloom.step == 0:
        _make_pollen(house, o)
        _be_pollinated(house, o)
        return
    house.life[o] = bloom._replace(step=bloom.step + 1)
    plant = house.parent[o]
    if bloom.step + 1 > FRUIT_STEPS and plant != NONE:
        house.put(_fruit(house, bloom), plant)
        house.delete(o, expel=True)


def _make_pollen(house: HouseState, flower: int) -> None:
    plant = house.life[flower].plant
    for kid in house.kids[flower]:
        if "pollen" in house.kind[kid].tags and house.note[kid] == plant:
            return
    pollen = house.make("pollen")
    house.note[pollen] = plant
    house.put(pollen, flower)


def _be_pollinated(house: HouseState, flower: int) -> None:
    plant = house.life[flower].plant
    for kid in house.kids[flower]:
        is_pollen = "pollen" in house.kind[kid].tags
        for grain in (kid,) if is_pollen else house.kids[kid]:
            if "pollen" not in house.kind[grain].tags:
                continue
            father = house.note[grain]
            if father != plant and house.kind[father] is house.kind[plant]:
                house.delete(grain)
                house.life[flower] = Bloom(plant, 1, house.get_genes(father) or ())
                return


def _fruit(house: HouseState, bloom: Bloom) -> int:
    """Return the fruit of a tree, or a seed with genes of both parents."""
    k = house.kind[bloom.plant]
    mother = house.get_genes(bloom.plant)
    if mother is None:
        return house.make(k.species)
    father = {trait: (first, second) for trait, first, second in bloom.other or ()}
    child: list[tuple[str, int, int]] = []
    for trait, first, second in mother:
        one, two = father[trait]
        pairs = [(first, one), (first, two), (second, one), (second, two)]
        for size in (4, 3, 2):
            drawn = house.random.next_int(size)
            pairs[size - 1], pairs[drawn] = pairs[drawn], pairs[size - 1]
        child.append((trait, *pairs[0]))
    seed = house.make(k.key)
    house.note[seed] = tuple(child)
    if k.species != "pea":
        # Seeds of the unknown plants draw eight genes before they get those of their parents.
        for _ in range(2 * len(mother)):
            house.random.next_int(2)
    return seed
