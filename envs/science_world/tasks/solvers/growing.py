"""Solvers of the tasks on growing plants and fruit (5-x) and on inheritance (10-x)."""

from __future__ import annotations

from collections.abc import Iterable

from ...house.state import NONE
from ..params import Genetics, Grow
from .actor import Actor, Intent, Step

_GREENHOUSE, _JAR, _POT = "greenhouse", "seed jar", "flower pot"
_PLANTS_TO_CROSS = 2
_THIRSTY = 12
"""Dry ticks after which a grown plant is watered; it looks unwell after 25."""


def solve_grow_plant(a: Actor) -> Step:
    """Solve 5-1: one seed in soil, watered until it flowers."""
    if step := _sow(a, 1):
        return step
    plants = _find_plants(a)
    first = None if a.done or not plants else a.focus(plants[0])
    return first or _tend(a, plants) or a.wait(long=_may_rest(a, plants))


def solve_grow_fruit(a: Actor) -> Step:
    """Solve 5-2: two plants; pollen is carried by hand from one flower to the other.

    The orange that the agent carries would do for an orange; it is not the one that was grown.
    """
    params: Grow = a.params
    kinds = a.house.kind
    for thing in a.find_named(params.seed):
        grown = a.get_place_name(thing) == _GREENHOUSE and not a.is_held(thing)
        if grown and "food" in kinds[thing].tags:
            return a.focus(thing)
    return _cross(a)


def solve_genetics(a: Actor) -> Step:
    """Solve 10-1 and 10-2: cross the two seeds; what the offspring shows is dominant."""
    params: Genetics = a.params
    box = params.box_dominant if params.dominant else params.box_recessive
    offspring = [plant for plant in _find_of_species(a) if _is_mixed(a, plant)]
    step = _show_trait(a, offspring[0]) if offspring else _cross(a)
    return step or a.focus(a.find_in_place(_GREENHOUSE, box))


def _is_mixed(a: Actor, plant: int) -> bool:
    """Return whether a plant has one allele of each kind of the asked trait."""
    genes = a.house.get_genes(plant) or ()
    return any(trait == a.params.trait and one != two for trait, one, two in genes)


def _show_trait(a: Actor, plant: int) -> Step:
    """Have looked at the part of a plant that shows the asked trait."""
    house, trait = a.house, a.params.trait
    if trait.startswith("seed"):
        shown = plant
    elif trait.startswith("flower"):
        flowers = [o for o in house.kids[plant] if house.kind[o].key == "flower"]
        shown = flowers[0] if flowers else NONE
    else:
        shown = plant if house.get_stage(plant) in ("adult", "reproducing") else NONE
    if shown != NONE:
        return None if a.count_looks(shown) else a.reach(shown) or Intent("look at", (shown,))
    if house.kind[house.parent[plant]].key != _POT:
        return a.put(plant, _find_empty_pots(a)[0])
    grown = house.get_stage(plant) in ("adult", "reproducing")
    return _tend(a, [plant]) or a.wait(long=not grown)


def _cross(a: Actor) -> Step:
    """Have two plants, and pollen of one in a flower of the other."""
    if step := _sow(a, _PLANTS_TO_CROSS):
        return step
    plants = _find_plants(a)
    flowers = _find_flowers(a, plants)
    rest = _may_rest(a, plants) and not flowers
    return _tend(a, plants) or _pollinate(a, flowers) or a.wait(long=rest)


def _get_species(a: Actor) -> str:
    return a.params.seed if isinstance(a.params, Grow) else a.params.plant


def _find_of_species(a: Actor) -> list[int]:
    """Return the plants of the species in the greenhouse, seeds too."""
    house, species = a.house, _get_species(a)
    return [
        thing
        for thing in house.walk_inside(house.places[_GREENHOUSE])
        if "plant" in house.kind[thing].tags and house.kind[thing].species == species
    ]


def _find_plants(a: Actor) -> list[int]:
    """Return the plants of the species that stand in a pot."""
    house = a.house
    return [o for o in _find_of_species(a) if house.kind[house.parent[o]].key == _POT]


def _find_pots(a: Actor) -> list[int]:
    """Return the flower pots of the greenhouse in the order of their numbers."""
    house = a.house
    pots = [o for o in house.walk_inside(house.places[_GREENHOUSE]) if house.kind[o].key == _POT]
    return sorted(pots, key=lambda pot: house.name[pot])


def _has_plant(a: Actor, pot: int) -> bool:
    return any("plant" in a.house.kind[o].tags for o in a.house.kids[pot])


def _find_empty_pots(a: Actor) -> list[int]:
    """Return the pots without a plant, those with soil first."""
    house = a.house
    empty = [pot for pot in _find_pots(a) if not _has_plant(a, pot)]
    return sorted(empty, key=lambda pot: all(house.name[o] != "soil" for o in house.kids[pot]))


def _sow(a: Actor, count: int) -> Step:
    """Have seeds in soil in a number of pots."""
    house = a.house
    if len(_find_plants(a)) >= count:
        return None
    jar = a.find_first(_JAR)
    if not a.is_held(jar) and a.get_place_name(jar) != _GREENHOUSE:
        return a.hold(jar)
    for pot in _find_pots(a)[:count]:
        names = [house.name[o] for o in house.kids[pot]]
        if "soil" not in names and (step := _fill_with_soil(a, pot)):
            return step
        if not _has_plant(a, pot):
            seeds = [o for o in house.kids[jar] if "plant" in house.kind[o].tags]
            return a.go_to(_GREENHOUSE) or (a.put(seeds[0], pot) if seeds else a.wait())
    return None


def _fill_with_soil(a: Actor, pot: int) -> Step:
    """Have soil in a pot; where none lies about it is dug outside."""
    house = a.house
    for soil in a.find_named("soil"):
        if a.is_held(soil) or "place" in house.kind[house.parent[soil]].tags:
            return a.put(soil, pot)
    shovel = a.find_first("shovel")
    ground = a.find_in_place("outside", "ground")
    return a.hold(shovel) or a.go_to("outside") or Intent("use", (shovel, ground))


def _tend(a: Actor, plants: Iterable[int]) -> Step:
    """Have water with every young plant, and with grown ones before they suffer."""
    house = a.house
    if step := a.go_to(_GREENHOUSE):
        return step
    for plant in plants:
        pot = house.parent[plant]
        young = house.get_stage(plant) in ("seed", "seedling")
        if not (young or house.life[plant].dry >= _THIRSTY):
            continue
        if not any(house.name[o] == "water" for o in house.kids[pot]):
            return _give_water(a, pot)
    return None


def _give_water(a: Actor, pot: int) -> Step:
    """Have water in a pot, from the sink by the jug."""
    water = a.find_water()
    if water != NONE and (a.is_held(water) or a.get_place_name(water) == _GREENHOUSE):
        return a.pour(water, pot)
    sink = a.find_in_place(_GREENHOUSE, "sink")
    jug = a.find_in_place(_GREENHOUSE, "jug")
    if jug == NONE:
        jug = a.find_empty_cup(_GREENHOUSE)
    return a.switch(sink) or a.put(jug, sink) or a.wait()


def _may_rest(a: Actor, plants: Iterable[int]) -> bool:
    """Return whether eleven ticks can pass: no plant is about to be done."""
    return all(a.house.get_stage(plant) != "reproducing" for plant in plants)


def _find_flowers(a: Actor, plants: Iterable[int]) -> list[int]:
    house = a.house
    return [o for plant in plants for o in house.kids[plant] if house.kind[o].key == "flower"]


def _pollinate(a: Actor, flowers: list[int]) -> Step:
    """Have pollen of one plant in a flower of another."""
    house = a.house
    fresh = [flower for flower in flowers if not house.life[flower].step]
    if len(flowers) > len(fresh):
        return None  # one is pollinated: its fruit will come
    for flower in fresh:
        for other in fresh:
            if house.parent[other] == house.parent[flower]:
                continue
            for pollen in house.kids[other]:
                if house.kind[pollen].key == "pollen":
                    return Intent("move", (pollen, flower))
    return None
