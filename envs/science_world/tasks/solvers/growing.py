"""Solvers of the tasks on growing plants and fruit (5-x)."""

from __future__ import annotations

from ...world import NONE
from ..params import Grow
from .actor import Actor, Intent, Step

_GREENHOUSE, _JAR = "greenhouse", "seed jar"
_PLANTS_FOR_FRUIT = 2
_THIRSTY = 12
"""Dry ticks after which a grown plant is watered; it looks unwell after 25."""


def grow_plant(a: Actor) -> Step:
    """5-1: one seed in soil, watered until it flowers."""
    return _potted(a, 1) or _focus_on_seed(a) or _tend(a) or a.wait(long=_may_rest(a))


def grow_fruit(a: Actor) -> Step:
    """5-2: two plants; pollen is carried by hand from one flower to the other."""
    params: Grow = a.params
    world = a.world
    fruit = next(
        (
            o
            for o in a.named(params.seed)
            if "food" in world.kind[o].tags and a.place_name(o) == _GREENHOUSE
        ),
        NONE,
    )
    if fruit != NONE:
        return a.focus(fruit)
    return (
        _potted(a, _PLANTS_FOR_FRUIT)
        or _tend(a)
        or _pollinate(a)
        or a.wait(long=_may_rest(a) and not _flowers(a))
    )


def _plants(a: Actor) -> list[int]:
    """Plants of the species that stand in a pot."""
    params: Grow = a.params
    world = a.world
    return [
        thing
        for thing in world.inside(world.places[_GREENHOUSE])
        if "plant" in world.kind[thing].tags
        and world.kind[thing].species == params.seed
        and world.name[world.parent[thing]].startswith("flower pot")
    ]


def _pots(a: Actor, count: int) -> list[int]:
    return [a.in_place(_GREENHOUSE, f"flower pot {number}") for number in range(1, count + 1)]


def _seeds(a: Actor) -> list[int]:
    jar = a.first(_JAR)
    return [o for o in a.world.kids[jar] if "plant" in a.world.kind[o].tags]


def _potted(a: Actor, count: int) -> Step:
    """Have seeds in soil in a number of pots."""
    world = a.world
    if len(_plants(a)) >= count:
        return None
    jar = a.first(_JAR)
    if not a.held(jar) and a.place_name(jar) != _GREENHOUSE:
        return a.hold(jar)
    for pot in _pots(a, count):
        names = [world.name[o] for o in world.kids[pot]]
        if "soil" not in names and (step := _soil(a, pot)):
            return step
        if not any("plant" in world.kind[o].tags for o in world.kids[pot]):
            return a.at(_GREENHOUSE) or a.put(_seeds(a)[0], pot)
    return None


def _soil(a: Actor, pot: int) -> Step:
    """Have soil in a pot; where none lies about it is dug outside."""
    world = a.world
    for soil in a.named("soil"):
        if a.held(soil) or "place" in world.kind[world.parent[soil]].tags:
            return a.put(soil, pot)
    shovel = a.first("shovel")
    ground = a.in_place("outside", "ground")
    return a.hold(shovel) or a.at("outside") or Intent("use", (shovel, ground))


def _focus_on_seed(a: Actor) -> Step:
    plants = _plants(a)
    return None if a.done or not plants else a.focus(plants[0])


def _tend(a: Actor) -> Step:
    """Have water with every young plant, and with grown ones before they suffer."""
    world = a.world
    if step := a.at(_GREENHOUSE):
        return step
    for plant in _plants(a):
        pot = world.parent[plant]
        young = world.stage(plant) in ("seed", "seedling")
        if not (young or world.life[plant].dry >= _THIRSTY):
            continue
        if not any(world.name[o] == "water" for o in world.kids[pot]):
            return _watered(a, pot)
    return None


def _watered(a: Actor, pot: int) -> Step:
    """Have water in a pot, from the sink by the jug."""
    water = a.water()
    if water != NONE and (a.held(water) or a.place_name(water) == _GREENHOUSE):
        return a.pour(water, pot)
    sink = a.in_place(_GREENHOUSE, "sink")
    jug = a.in_place(_GREENHOUSE, "jug")
    if jug == NONE:
        jug = a.empty_cup(_GREENHOUSE)
    return a.switch(sink) or a.put(jug, sink) or a.wait()


def _may_rest(a: Actor) -> bool:
    """Whether eleven ticks can pass: the plants are watered, and none is about to be done."""
    return all(a.world.stage(plant) != "reproducing" for plant in _plants(a))


def _flowers(a: Actor) -> list[int]:
    world = a.world
    return [o for plant in _plants(a) for o in world.kids[plant] if world.kind[o].key == "flower"]


def _pollinate(a: Actor) -> Step:
    """Have pollen of one plant in a flower of another."""
    world = a.world
    open_flowers = [flower for flower in _flowers(a) if not world.life[flower].step]
    if len(_flowers(a)) > len(open_flowers):
        return None  # one is pollinated: its fruit will come
    for flower in open_flowers:
        for other in open_flowers:
            if world.parent[other] == world.parent[flower]:
                continue
            for pollen in world.kids[other]:
                if world.kind[pollen].key == "pollen":
                    return Intent("move", (pollen, flower))
    return None
