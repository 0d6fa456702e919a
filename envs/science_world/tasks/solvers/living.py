"""Solvers of the tasks on living things (4-x, 7-x, 8-x)."""

from __future__ import annotations

from ...house.state import NONE
from ...objects.records import CYCLES
from ..goals import PLANT_STAGES, list_animal_stages
from ..params import AnimalStages, Lifespan, PlantStages
from .actor import Actor, Step

_LONG_WAIT = 11


def find_dead(a: Actor) -> Step:
    """Solve 4-2: the orange that the agent carries will do."""
    thing = a.subject if a.done else a.find_first("orange")
    return a.focus(thing) or _put_into_box(a, thing)


def find_animal(a: Actor) -> Step:
    """Solve 4-1 and 4-4: one of the animals outside."""
    thing = a.subject if a.done else _find_tagged(a, "animal")
    return (None if a.done else a.focus(thing)) or _put_into_box(a, thing)


def find_plant(a: Actor) -> Step:
    """Solve 4-3: one of the plants in the greenhouse, carried in its pot."""
    thing = a.subject if a.done else _find_tagged(a, "plant")
    pot = a.house.parent[thing]
    in_pot = a.house.kind[pot].refer == "cup"
    return (None if a.done else a.focus(thing)) or _put_into_box(a, pot if in_pot else thing)


def _find_tagged(a: Actor, tag: str) -> int:
    """Return the nearest thing of a group that is no bee."""
    kinds = a.house.kind
    found = (o for o in a.walk_things() if tag in kinds[o].tags and "bee" not in kinds[o].tags)
    return next(found, NONE)


def _put_into_box(a: Actor, thing: int) -> Step:
    return a.put(thing, a.find_in_place(a.params.place, a.params.box))


def solve_longest(a: Actor) -> Step:
    """Solve 7-1."""
    params: Lifespan = a.params
    return a.focus(a.find_in_place("outside", params.long))


def solve_shortest(a: Actor) -> Step:
    """Solve 7-2."""
    params: Lifespan = a.params
    return a.focus(a.find_in_place("outside", params.short))


def solve_longest_then_shortest(a: Actor) -> Step:
    """Solve 7-3."""
    return solve_shortest(a) if a.done else solve_longest(a)


def solve_animal_stages(a: Actor) -> Step:
    """Solve 8-1: wait until the animal is in the next stage."""
    params: AnimalStages = a.params
    animal = a.find_in_place("outside", params.animal)
    wanted = list_animal_stages(params.animal)[a.done]
    if step := a.go_to("outside"):
        return step
    if a.house.get_stage(animal) == wanted:
        return a.focus(animal)
    stages = CYCLES[a.house.kind[animal].cycle]
    life = a.house.life[animal]
    return a.wait(long=stages[life.stage][2] - life.met > _LONG_WAIT)


def solve_plant_stages(a: Actor) -> Step:
    """Solve 8-2: focus on a plant that is in the next stage."""
    params: PlantStages = a.params
    house = a.house
    if step := a.go_to("outside"):
        return step
    for thing in house.walk_inside(house.get_agent_place()):
        is_asked = house.kind[thing].species == params.plant
        if is_asked and house.get_stage(thing) == PLANT_STAGES[a.done]:
            return a.focus(thing)
    return a.wait()
