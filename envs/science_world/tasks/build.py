"""Starting an episode of a task: the house, the task's things, simplifications, goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import UnknownNameError
from ..actions.table import NO_ELECTRICITY, TELEPORT
from ..house.build import add_book, build_house
from ..house.java_random import JavaRandom
from ..house.state import TERMINALS, HouseState, list_all_inside
from ..objects.materials import make_unknown_substance
from ..objects.records import CYCLES, PLANT_STAGES, TRAITS, Genes, Slope, Text
from ..physics.devices import SELF_WATERING
from . import draws
from . import params as task_params
from .catalogue import WHERE, TaskKind
from .checker import TaskState
from .goals import make_goals
from .variations import ANIMALS, AROUND, EXTRA_PLACES, PARTS, PLANTS, THERMOMETER_PLACES

_WORKSHOP = "workshop"
OPEN_DOORS, OPEN_CONTAINERS = "openDoors", "openContainers"
SIMPLIFICATIONS = (NO_ELECTRICITY, OPEN_CONTAINERS, OPEN_DOORS, SELF_WATERING, TELEPORT)
EASY = (TELEPORT, OPEN_DOORS, SELF_WATERING, NO_ELECTRICITY)


def make(house: HouseState, key: str, name: str = "") -> int:
    """Make a new object of the task; such objects were made before the house."""
    return house.make(key, name=name, early=True)


def place(
    house: HouseState, thing: int, room: str, *, name: str = "", forced: bool = False
) -> None:
    """Put a thing into a room unless something with its name is anywhere in it.

    Args:
        house: Where.
        thing: What.
        room: Name of the room.
        name: The name to look for when it is not the thing's own (a cup's contents).
        forced: Do not look.
    """
    place_of = house.places[room]
    if forced or not _has(house, place_of, name or house.name[thing]):
        house.put(thing, place_of)


def add(house: HouseState, key: str, room: str, *, forced: bool = False) -> None:
    """Make a thing of a kind and :func:`place` it."""
    place(house, make(house, key), room, forced=forced)


def place_inside(
    house: HouseState,
    thing: int,
    room: str,
    holders: Sequence[str],
    *,
    name: str = "",
    forced: bool = False,
) -> None:
    """Put a thing into one of a room's containers, the first in a shuffle of all contents.

    Nothing happens when one of the containers that stand in the room already has something with
    the name in it, unless ``forced``.
    """
    place_of, wanted = house.places[room], name or house.name[thing]
    if not forced:
        for kid in house.kids[place_of]:
            if house.name[kid] in holders and _has(house, kid, wanted):
                return
    for found in house.random.shuffled(list_all_inside(house, place_of)):
        if found < TERMINALS and house.name[found] in holders:
            house.put(thing, found)
            return


def in_cup(house: HouseState, substance: int, cup: str) -> int:
    """Make a cup around a substance, as warm as it is."""
    made = make(house, cup)
    house.open[made] = True
    house.heat[made] = house.heat[substance]
    house.put(substance, made)
    return made


def place_boxes(house: HouseState, room: str, *names: str) -> None:
    """Place answer boxes in a room."""
    for name in names:
        place(house, make(house, "answer box", name), room)


def pot_of_soil(house: HouseState, name: str, key: str = "flower pot") -> int:
    """Make a flower pot with soil."""
    pot = make(house, key, name)
    house.put(make(house, "soil"), pot)
    return pot


def _has(house: HouseState, holder: int, name: str) -> bool:
    return any(house.name[inside] == name for inside in house.walk_inside(holder))


_IN = {
    "ice": ("kitchen", ("freezer",)),
    "orange juice": ("kitchen", ("fridge",)),
    "apple juice": ("kitchen", ("fridge",)),
    "chocolate": ("kitchen", ("fridge",)),
    "ice cream": ("kitchen", ("freezer",)),
    "marshmallow": ("kitchen", ("cupboard", "table", "desk")),
    "soap": ("kitchen", ("cupboard", "table", "desk")),
}
_METALS = ("workshop", ("table", "desk"))
_FORCED = ("lead", "tin", "mercury", "gallium", "caesium")


def _prepare_state_change(
    house: HouseState, params: task_params.StateChange, variation: int, task: int
) -> None:
    """Set up 1-1 to 1-4; the tasks 1-4, 1-2, 1-1, 1-3 draw in this order (``task`` 0 to 3)."""
    name = params.substance
    if name != "water":
        thing = make(house, name)
        if name in draws.CUPPED:
            thing = in_cup(house, thing, draws.draw_state_cup(variation, task, name))
        room, holders = _IN.get(name, _METALS)
        place_inside(house, thing, room, holders, name=name, forced=name in _FORCED)
    kitchen = house.places["kitchen"]
    for device, broken in (("sink", params.sink_broken), ("stove", params.stove_broken)):
        if broken:
            for found in house.find_named(device, kitchen):
                house.broken[found] = True


def _prepare_thermometer(
    house: HouseState, params: task_params.Thermometer, variation: int
) -> None:
    """Set up 2-1."""
    if params.object.startswith("unknown"):
        thing = make(house, "unknown thermal substance", params.object)
    elif params.object == "wire":
        thing = make(house, "red wire", "wire")
    else:
        thing = make(house, params.object)
    row = THERMOMETER_PLACES.index(params.place) * len(AROUND) + AROUND.index(params.around)
    drawn = draws.draw_start_temperature(variation, row, params.draw, params.around)
    house.heat[thing] = float(drawn)
    place(house, thing, params.place, forced=params.object == "sodium chloride")
    place_boxes(house, params.box_place, params.above, params.below)


def _prepare_known_melting(house: HouseState, params: task_params.Melting, variation: int) -> None:
    """Set up 2-2."""
    name = params.object
    if name in ("chocolate", "orange juice"):
        thing = make(house, name)
        if name in draws.CUPPED_KNOWN:
            thing = in_cup(house, thing, draws.draw_known_cup(variation, params.copy, name))
        place_inside(house, thing, "kitchen", ("fridge",), name=name)
    elif name != "water":
        cup = draws.draw_known_cup(variation, params.copy, name)
        place(house, in_cup(house, make(house, name), cup), "kitchen", name=name)
    place_boxes(house, "kitchen", params.above, params.below)


def _prepare_unknown_melting(
    house: HouseState, params: task_params.Melting, variation: int
) -> None:
    """Set up 2-3."""
    thing = make(house, "unknown thermal substance", f"unknown substance {params.letter}")
    house.set_material(thing, make_unknown_substance(params.letter), rename=True)
    cup = draws.draw_unknown_cup(variation, params.copy, params.letter)
    if cup is not None:
        thing = in_cup(house, thing, cup)
    place(house, thing, "kitchen", forced=True)
    place_boxes(house, "kitchen", params.above, params.below)


_ORIGIN_OF_SPECIES = 5


def _prepare_circuit(house: HouseState, params: task_params.Power) -> None:
    """Set up 3-1 and 3-2."""
    for key in ("battery", *PARTS, params.renewable, params.nonrenewable):
        add(house, key, _WORKSHOP)


def _prepare_known_conductor(house: HouseState, params: task_params.Conductivity) -> None:
    """Set up 3-3."""
    add(house, "battery", _WORKSHOP)
    add(house, params.part, _WORKSHOP)
    if params.substance.startswith("book"):
        add_book(house, house.places[params.place], _ORIGIN_OF_SPECIES, early=True)
    elif params.substance != "water":
        add(house, params.substance, params.place, forced=True)
    place_boxes(house, _WORKSHOP, params.box_yes, params.box_no)


def _prepare_unknown_conductor(
    house: HouseState, params: task_params.Conductivity, variation: int
) -> None:
    """Set up 3-4."""
    add(house, "battery", _WORKSHOP)
    add(house, params.part, _WORKSHOP)
    thing = make(house, "unknown electrical substance", params.substance)
    metal = house.material[thing]
    if metal is not None:
        house.set_material(thing, replace(metal, conducts=draws.draw_conducts(params, variation)))
    place(house, thing, _WORKSHOP)
    place_boxes(house, _WORKSHOP, params.box_yes, params.box_no)


OUTSIDE, GREENHOUSE = "outside", "greenhouse"
_EMPTY_POTS = 2
_SEEDS = 5
_PEA_GENES = tuple(TRAITS["pea"])
_JAR_GENES = {plant: tuple(forms) for plant, forms in TRAITS.items()}
# Seeds in a jar of E get their genes in another order than plants of E elsewhere.
_JAR_GENES["unknown E"] = ("seed color", "leaf shape", "flower size", "seed shape")


def _prepare_find(house: HouseState, params: task_params.Find, variation: int, task: int) -> None:
    """Set up 4-1 to 4-4 (``task`` 0 to 3)."""
    for animal in sorted(params.animals, key=ANIMALS.index):
        add(house, animal, OUTSIDE)
    numbers = draws.find_pots(variation, task, params.group)
    plants = sorted(params.plants, key=PLANTS.index)
    grown = {plant: _adult(house, plant, params, variation, task) for plant in plants}
    for plant in plants:
        pot = make(house, "flower pot", f"flower pot {numbers[params.plants.index(plant)]}")
        house.put(grown[plant], pot)
        house.put(make(house, "soil"), pot)
        place(house, pot, GREENHOUSE, forced=True)
    for number in numbers[len(plants) : len(plants) + _EMPTY_POTS]:
        empty = make(house, "flower pot", f"flower pot {number}")
        place(house, empty, GREENHOUSE, forced=True)
    place_boxes(house, params.place, params.box)


def _adult(
    house: HouseState, plant: str, params: task_params.Find, variation: int, task: int
) -> int:
    made = make(house, plant_kind(plant))
    if plant == "pea":
        alleles = draws.find_genes(variation, task, params.group)
        half = len(_PEA_GENES)
        house.note[made] = tuple(zip(_PEA_GENES, alleles[:half], alleles[half:], strict=True))
    house.set_stage(made, "adult")
    return made


def plant_kind(plant: str) -> str:
    """Return the kind of the plant that grows from a seed: a tree, or a plant with genes."""
    return f"{plant} plant" if plant == "pea" or plant.startswith("unknown") else f"{plant} tree"


def _prepare_growing(house: HouseState, params: task_params.Grow) -> None:
    """Set up 5-1 and 5-2."""
    jar = make(house, "ceramic cup", "seed jar")
    for _ in range(_SEEDS):
        house.put(make(house, plant_kind(params.seed)), jar)
    place(house, jar, params.place)
    for number in (1, 2, 3):
        name = f"flower pot {number}"
        if params.pots == "filled":
            place(house, pot_of_soil(house, name), GREENHOUSE)
        else:
            place(house, make(house, "flower pot", name), GREENHOUSE)
            if params.pots == "floor":
                add(house, "soil", GREENHOUSE)


def _prepare_lifespan(house: HouseState, params: task_params.Lifespan) -> None:
    """Set up 7-1 to 7-3."""
    for animal in (params.long, params.medium, params.short):
        add(house, animal, OUTSIDE)


def _prepare_animal_stages(house: HouseState, params: task_params.AnimalStages) -> None:
    """Set up 8-1."""
    for animal in (params.animal, *sorted(params.distractors, key=ANIMALS.index)):
        add(house, animal, OUTSIDE)


def _prepare_plant_stages(
    house: HouseState, params: task_params.PlantStages, variation: int
) -> None:
    """Set up 8-2."""
    plants: list[int] = []
    for stage in PLANT_STAGES:
        plants.append(make(house, plant_kind(params.plant)))
        house.set_stage(plants[-1], stage)
    numbers = draws.draw_stage_pots(variation, params.group)
    for plant, number in zip(plants, numbers, strict=False):
        key = "self watering flower pot"
        pot = pot_of_soil(house, f"{key} {number}", key)
        house.put(plant, pot)
        place(house, pot, OUTSIDE, forced=True)
    first = make(house, params.distractor)
    animals = [first]
    for stage, _, _ in CYCLES[house.kind[first].cycle][1:]:
        animals.append(make(house, params.distractor))
        house.set_stage(animals[-1], stage)
    for animal in animals:
        place(house, animal, OUTSIDE, forced=True)


def _prepare_genetics(
    house: HouseState, params: task_params.Genetics, variation: int, task_id: str
) -> None:
    """Set up 10-1 and 10-2."""
    of = draws.draw_pea_seeds if task_id == "10-1" else draws.draw_unknown_seeds
    seeds: list[int] = []
    for allele, free in enumerate(of(variation, params.jar)):
        seeds.append(make(house, plant_kind(params.plant)))
        house.note[seeds[-1]] = _jar_genes(params, allele, free)
    jar = make(house, "ceramic cup", "seed jar")
    for seed in seeds:
        house.put(seed, jar)
    place(house, jar, GREENHOUSE, forced=True)
    used = draws.draw_genetics_pots(task_id, params, variation)
    pots = {number: pot_of_soil(house, f"flower pot {number}") for number in sorted(used)}
    for number in used:
        place(house, pots[number], GREENHOUSE)
    place_boxes(house, GREENHOUSE, params.box_dominant, params.box_recessive)


def _jar_genes(params: task_params.Genetics, allele: int, free: list[int]) -> Genes:
    """Return the genes of a seed: the asked trait has twice the same allele, others are drawn."""
    traits = _JAR_GENES[params.plant]
    others = [trait for trait in traits if trait != params.trait]
    pairs = dict(
        zip(others, zip(free[: len(others)], free[len(others) :], strict=True), strict=True)
    )
    return tuple((trait, *pairs.get(trait, (allele, allele))) for trait in traits)


_SLANT = 45.0
_FURNITURE = {
    "paint cupboard": ("cupboard", "wood cup"),
    "paint closet": ("closet", "glass cup"),
    "desk": ("desk", "tin cup"),
}
_PRIMARY = ("red paint", "blue paint", "yellow paint")


def _prepare_mix(house: HouseState, params: task_params.Mix) -> None:
    """Set up 6-1; water and paint are not brought."""
    for name in params.ingredients:
        if name != "water" and not name.endswith("paint"):
            add(house, name, params.place)
    recipe = make(house, "recipe")
    title = f"instructions to make {params.result}"
    needed = ", ".join(params.ingredients)
    contents = f"To make {params.result}, you need to mix {needed}."
    house.note[recipe] = Text(title, contents)
    place(house, recipe, params.place)


def _prepare_paint(house: HouseState, params: task_params.Paint, variation: int, task: int) -> None:
    """Set up 6-2 and 6-3 (``task`` 0 and 1).

    The original has three paints for three pieces of furniture, and the last one gets them: the
    cups in the cupboard and in the closet are empty.
    """
    key, cup = _FURNITURE[params.extra]
    container = draws.draw_paint_containers(variation, task)[EXTRA_PLACES.index(params.extra)]
    bowl = make(house, container)
    colors = [make(house, color) for color in _PRIMARY] if params.extra == "desk" else []
    furniture = make(house, key, params.extra)
    for number in range(len(_PRIMARY)):
        made = make(house, cup)
        if colors:
            house.put(colors[number], made)
        house.put(made, furniture)
    place(house, furniture, params.place)
    if params.place == _WORKSHOP:
        # Not where the closet's glass cups already answer to its name.
        place(house, bowl, params.place)


def _prepare_planes(house: HouseState, params: task_params.Planes) -> None:
    """Set up 9-1 to 9-3."""
    for name, value in zip((params.first, params.second), params.values, strict=True):
        plane = make(house, "inclined plane")
        slope = Slope(value, "plain surface", name) if params.by_angle else Slope(_SLANT, name, "")
        house.note[plane] = slope
        place(house, plane, _WORKSHOP, forced=True)
    add(house, params.block, _WORKSHOP, forced=True)
    add(house, "stopwatch", _WORKSHOP)


_SETUP: dict[str, Callable[[HouseState, Any, int], None]] = {
    "1-1": lambda house, params, v: _prepare_state_change(house, params, v, 2),
    "1-2": lambda house, params, v: _prepare_state_change(house, params, v, 1),
    "1-3": lambda house, params, v: _prepare_state_change(house, params, v, 3),
    "1-4": lambda house, params, v: _prepare_state_change(house, params, v, 0),
    "2-1": _prepare_thermometer,
    "2-2": _prepare_known_melting,
    "2-3": _prepare_unknown_melting,
    "3-1": lambda house, params, v: _prepare_circuit(house, params),  # noqa: ARG005
    "3-2": lambda house, params, v: _prepare_circuit(house, params),  # noqa: ARG005
    "3-3": lambda house, params, v: _prepare_known_conductor(house, params),  # noqa: ARG005
    "3-4": _prepare_unknown_conductor,
    "4-1": lambda house, params, v: _prepare_find(house, params, v, 0),
    "4-2": lambda house, params, v: _prepare_find(house, params, v, 1),
    "4-3": lambda house, params, v: _prepare_find(house, params, v, 2),
    "4-4": lambda house, params, v: _prepare_find(house, params, v, 3),
    "5-1": lambda house, params, v: _prepare_growing(house, params),  # noqa: ARG005
    "5-2": lambda house, params, v: _prepare_growing(house, params),  # noqa: ARG005
    "6-1": lambda house, params, v: _prepare_mix(house, params),  # noqa: ARG005
    "6-2": lambda house, params, v: _prepare_paint(house, params, v, 0),
    "6-3": lambda house, params, v: _prepare_paint(house, params, v, 1),
    "7-1": lambda house, params, v: _prepare_lifespan(house, params),  # noqa: ARG005
    "7-2": lambda house, params, v: _prepare_lifespan(house, params),  # noqa: ARG005
    "7-3": lambda house, params, v: _prepare_lifespan(house, params),  # noqa: ARG005
    "8-1": lambda house, params, v: _prepare_animal_stages(house, params),  # noqa: ARG005
    "8-2": _prepare_plant_stages,
    "9-1": lambda house, params, v: _prepare_planes(house, params),  # noqa: ARG005
    "9-2": lambda house, params, v: _prepare_planes(house, params),  # noqa: ARG005
    "9-3": lambda house, params, v: _prepare_planes(house, params),  # noqa: ARG005
    "10-1": lambda house, params, v: _prepare_genetics(house, params, v, "10-1"),
    "10-2": lambda house, params, v: _prepare_genetics(house, params, v, "10-2"),
}


def parse_simplifications(names: str | Iterable[str], kind: TaskKind) -> frozenset[str]:
    """Return the simplifications that ``names`` means for a task.

    Args:
        names: Names, or one text with commas; "easy" stands for four of them, without the one
            that takes electrical actions away where the task is about electricity.
        kind: The task.

    Raises:
        UnknownNameError: A name that does not exist, or that the task does not go with.
    """
    parts = names.split(",") if isinstance(names, str) else list(names)
    known = {name.lower(): name for name in SIMPLIFICATIONS}
    found: set[str] = set()
    for part in (part.strip() for part in parts if part.strip()):
        if part.lower() == "easy":
            found.update(EASY if kind.topic != "Electricity" else EASY[:3])
        elif part.lower() in known:
            found.add(known[part.lower()])
        else:
            raise UnknownNameError("simplification", part, ("easy", *SIMPLIFICATIONS), WHERE)
        if part.lower() == NO_ELECTRICITY.lower() and kind.topic == "Electricity":
            names_left = [name for name in SIMPLIFICATIONS if name != NO_ELECTRICITY]
            raise UnknownNameError(
                "simplification", part, names_left, f"{WHERE} {kind.name} (about electricity)"
            )
    return frozenset(found)


def start_episode(
    kind: TaskKind,
    variation: int,
    simple: Iterable[str] = (),
    build: Callable[[JavaRandom], HouseState] = build_house,
) -> HouseState:
    """Return the house of a variation before its first tick, with the task's goals.

    Args:
        kind: The task.
        variation: Its number.
        simple: Names of simplifications.
        build: Builds the house without the task's things.

    Raises:
        BadValueError: There is no such variation.
    """
    params = kind.params(variation)
    random = JavaRandom(variation)
    house = build(random)
    # The original seeds its generator again before it sets a task up; play goes on from there.
    random.state = JavaRandom(variation).state
    house.simple = frozenset(simple)
    _SETUP[kind.id](house, params, variation)
    if kind.id.startswith("9-"):
        random.shuffled((0, 1))  # the two planes' names in the text
    _simplify(house)
    house.goals = TaskState.start(kind.id, variation, make_goals(kind.id, params, variation))
    return house


def _simplify(house: HouseState) -> None:
    for thing, kind in enumerate(house.kind):
        if OPEN_DOORS in house.simple and "portal" in kind.tags:
            house.open[thing] = True
        if OPEN_CONTAINERS in house.simple and house.is_closable(thing):
            house.open[thing] = True
