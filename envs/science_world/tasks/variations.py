"""The variations of every task in the order of the original engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ..house.java_random import JavaRandom
from ..objects.materials import UNKNOWN_MELTING_POINTS, get_material
from ..objects.records import TRAITS
from . import params as task_params

BOX_COLORS = ("red", "green", "blue", "orange", "yellow", "purple")
BOX_PAIRS = tuple((f"{a} box", f"{b} box") for a, b in itertools.pairwise(BOX_COLORS))
CUPS = ("metal pot", "glass cup", "plastic cup", "tin cup", "paper cup", "ceramic cup", "jug")
UNKNOWN_LETTERS = "BCDEFGHJKLMNOPQRSTUVWXYZ"

_SUBSTANCES = (
    ("water", False),
    ("water", True),
    *(
        (name, False)
        for name in (
            "ice",
            "orange juice",
            "apple juice",
            "chocolate",
            "marshmallow",
            "ice cream",
            "soap",
            "rubber",
            "lead",
            "tin",
            "mercury",
            "gallium",
            "caesium",
        )
    ),
)

THERMOMETER_PLACES = ("living room", "bedroom", "bathroom")
AROUND = (-50, 0, 50, 100, 200)
_MEASURED = ("sodium chloride", "metal fork", "wood", "wire") + ("unknown substance B",) * 20

MELTING_THRESHOLDS = (-10, 10, 50, 150, 200)
KNOWN_MELTING = {
    name: int(get_material(name).melts)
    for name in ("water", "orange juice", "chocolate", "mercury", "gallium", "tin", "lead")
}
UNKNOWN_MELTING = {letter: int(UNKNOWN_MELTING_POINTS[letter]) for letter in UNKNOWN_LETTERS}
_UNKNOWN_ROWS = 25
_START_TEMPERATURE = 10


def list_state_changes() -> list[task_params.StateChange]:
    """Return the variations of 1-1 to 1-4: every substance with the stove whole, then broken."""
    return [
        task_params.StateChange(name, sink_broken, stove_broken)
        for name, sink_broken in _SUBSTANCES
        for stove_broken in (False, True)
    ]


def list_temperatures() -> list[task_params.Thermometer]:
    """Return the variations of 2-1: all combinations of objects and boxes, thinned to 2 %."""
    objects = sorted(
        (
            (name, place, around, draw)
            for place in THERMOMETER_PLACES
            for around in AROUND
            for draw, name in enumerate(_MEASURED)
        ),
        key=lambda found: found[0],
    )
    choices = [
        (threshold, place, above, below)
        for threshold in AROUND
        for place in THERMOMETER_PLACES
        for above, below in BOX_PAIRS
    ]
    kept = _thin_out(len(objects) * len(choices), 0.02)
    return [
        task_params.Thermometer(*objects[k // len(choices)], *choices[k % len(choices)])
        for k in kept
    ]


def list_known_meltings() -> list[task_params.Melting]:
    """Return the variations of 2-2: seven substances; half of the combinations."""
    objects = sorted(
        ((name, row) for row in range(len(MELTING_THRESHOLDS)) for name in KNOWN_MELTING),
        key=lambda found: found[0],
    )
    choices = _list_melting_choices()
    kept = _thin_out(len(objects) * len(choices), 0.5)
    found = [(objects[k // len(choices)], choices[k % len(choices)]) for k in kept]
    return [
        task_params.Melting(name, KNOWN_MELTING[name], *choice, row)
        for (name, row), choice in found
    ]


def list_unknown_meltings() -> list[task_params.Melting]:
    """Return the variations of 2-3: substances named by their state; 2 % of the combinations."""
    objects = sorted(
        (
            (write_unknown_name(letter), letter, row)
            for row in range(_UNKNOWN_ROWS)
            for letter in UNKNOWN_LETTERS
        ),
        key=lambda found: found[0],
    )
    choices = _list_melting_choices()
    kept = _thin_out(len(objects) * len(choices), 0.02)
    found = [(objects[k // len(choices)], choices[k % len(choices)]) for k in kept]
    return [
        task_params.Melting(name, UNKNOWN_MELTING[letter], *choice, row, letter)
        for (name, letter, row), choice in found
    ]


def write_unknown_name(letter: str) -> str:
    """Return the name of an unknown substance at 10 degrees."""
    state = "solid" if UNKNOWN_MELTING[letter] > _START_TEMPERATURE else "liquid"
    return f"{state} unknown substance {letter}"


def _list_melting_choices() -> list[tuple[int, str, str]]:
    return [(at, above, below) for at in MELTING_THRESHOLDS for above, below in BOX_PAIRS]


def _thin_out(count: int, share: float) -> list[int]:
    """Return which of ``count`` combinations remain: a fixed random share of each split."""
    random = JavaRandom(5)
    half, three_quarters = int(count * 0.5), int(count * 0.75)
    parts: Sequence[range] = (
        range(half),
        range(half, three_quarters),
        range(three_quarters, count),
    )
    return [k for part in parts for k in random.shuffled(part)[: int(len(part) * share)]]


PARTS = (
    "red light bulb",
    "green light bulb",
    "blue light bulb",
    "electric motor",
    "electric buzzer",
)
RENEWABLE = ("solar panel", "wind generator")
NONRENEWABLE = ("gas generator", "nuclear generator")
_CONDUCTIVE = {
    "sodium chloride": False,
    "water": False,
    "plastic fork": False,
    "metal fork": True,
    "apricot": False,
    "shovel": True,
    "glass jar": False,
    "metal pot": True,
    "book (The Foundations of the Origin of Species)": False,
    "paper clip": True,
    "wood block": False,
    "aluminum foil": True,
}


def list_powered_parts() -> list[task_params.Power]:
    """Return the variations of 3-1: any source will do."""
    return [task_params.Power(part, *sources) for part, sources in _list_circuits()]


def list_powered_parts_by_source() -> list[task_params.Power]:
    """Return the variations of 3-2: in turn the renewable and the other source are asked."""
    return [
        task_params.Power(part, *sources, use=sources[index % 2])
        for index, (part, sources) in enumerate(_list_circuits())
    ]


def list_known_conductors() -> list[task_params.Conductivity]:
    """Return the variations of 3-3: twelve things in three rooms."""
    found = sorted(
        ((name, place) for place in ("workshop", "kitchen", "living room") for name in _CONDUCTIVE),
        key=lambda item: item[0],
    )
    return [
        task_params.Conductivity(name, place, _CONDUCTIVE[name], part, yes, no)
        for name, place in found
        for part in PARTS
        for yes, no in BOX_PAIRS
    ]


def list_unknown_conductors() -> list[task_params.Conductivity]:
    """Return the variations of 3-4: each load draws whether the substance conducts."""
    return [
        task_params.Conductivity(f"unknown substance {letter}", "workshop", None, part, yes, no)
        for letter in UNKNOWN_LETTERS
        for part in PARTS
        for yes, no in BOX_PAIRS
    ]


def _list_circuits() -> list[tuple[str, tuple[str, str]]]:
    return [
        (part, (renewable, other))
        for part in PARTS
        for renewable in RENEWABLE
        for other in NONRENEWABLE
    ]


ANIMALS = (
    "butterfly",
    "moth",
    "frog",
    "common toad",
    "giant tortoise",
    "turtle",
    "crocodile",
    "parrot",
    "dove",
    "blue jay",
    "elephant",
    "brown bear",
    "beaver",
    "wolf",
)
PLANTS = ("apple", "avocado", "banana", "cherry", "lemon", "orange", "peach", "pea")
FRUIT_PLANTS = (
    ("apple", 0),
    ("apricot", 6),
    ("avocado", 1),
    ("banana", 2),
    ("cherry", 3),
    ("grapefruit", 6),
    ("lemon", 4),
    ("orange", 5),
    ("peach", 6),
    ("pear", 6),
)
"""Fruit plants of 8-2 with the seed that draws the animal beside them."""

_ROOMS = ("kitchen", "bathroom", "living room", "bedroom", "workshop")
_LONG = ("giant tortoise", "parrot", "elephant", "crocodile", "brown bear")
_MEDIUM = ("beaver", "wolf", "chipmunk", "common toad", "rabbit")
_SHORT = ("hedgehog", "mouse", "chameleon", "dragonfly", "ant")
_THREE_STAGES = ("frog", "common toad", "elephant", "brown bear", "beaver", "wolf")


def list_finds() -> list[task_params.Find]:
    """Return the variations of 4-1 to 4-4: ten groups of living things, five rooms, six boxes."""
    return [
        task_params.Find(
            tuple(JavaRandom(group).shuffled(ANIMALS)[:3]),
            tuple(JavaRandom(group).shuffled(PLANTS)[:3]),
            group,
            place,
            f"{color} box",
        )
        for group in range(10)
        for place in _ROOMS
        for color in BOX_COLORS
    ]


def list_growths() -> list[task_params.Grow]:
    """Return the variations of 5-1 and 5-2: seven seeds, six rooms, three kinds of pots."""
    return [
        task_params.Grow(seed, place, pots)
        for seed in PLANTS[:7]
        for place in (*_ROOMS, "greenhouse")
        for pots in ("filled", "floor", "empty")
    ]


def list_lifespans() -> list[task_params.Lifespan]:
    """Return the variations of 7-1 to 7-3: one animal of each group, in a fixed random order."""
    return JavaRandom(0).shuffled(
        task_params.Lifespan(long, medium, short)
        for long in _LONG
        for medium in _MEDIUM
        for short in _SHORT
    )


def list_animal_stages() -> list[task_params.AnimalStages]:
    """Return the variations of 8-1: fourteen animals, shuffled, each among five others."""
    return JavaRandom(1).shuffled(
        task_params.AnimalStages(
            animal,
            3 if animal in _THREE_STAGES else 4,
            tuple(JavaRandom(index).shuffled(ANIMALS)[:5]),
        )
        for index, animal in enumerate(ANIMALS)
    )


def list_plant_stages() -> list[task_params.PlantStages]:
    """Return the variations of 8-2: ten fruit plants."""
    return [
        task_params.PlantStages(plant, JavaRandom(seed).shuffled(ANIMALS)[0], group)
        for group, (plant, seed) in enumerate(FRUIT_PLANTS)
    ]


_RECIPES = (
    (
        ("salt water", ("sodium chloride", "water")),
        ("soapy water", ("soap", "water")),
        ("mixed nuts", ("peanut", "almond", "cashew")),
        ("sodium acetate", ("acetic acid", "sodium bicarbonate")),
        ("banana sandwich", ("banana", "bread")),
        ("blue paper", ("paper", "blue paint")),
        ("peanut butter sandwich", ("peanut", "bread")),
        ("peanut butter with jam sandwich", ("peanut", "jam", "bread")),
    ),
    (
        ("smores", ("chocolate", "marshmallow")),
        ("dough", ("flour", "water")),
        ("fruit salad", ("apple", "orange", "banana")),
        ("jam sandwich", ("jam", "bread")),
    ),
    (
        ("sugar water", ("sugar", "water")),
        ("peanut butter with banana sandwich", ("peanut", "banana", "bread")),
        ("rust", ("iron block", "water")),
        ("red paper", ("paper", "red paint")),
    ),
)
_COLORS = (
    ("green", ("blue", "yellow"), "green-blue", ("green", "blue")),
    ("green", ("blue", "yellow"), "yellow-green", ("green", "yellow")),
    ("orange", ("red", "yellow"), "red-orange", ("orange", "red")),
    ("orange", ("red", "yellow"), "yellow-orange", ("orange", "yellow")),
    ("violet", ("red", "blue"), "violet-red", ("violet", "red")),
    ("violet", ("red", "blue"), "blue-violet", ("violet", "blue")),
)
EXTRA_PLACES = ("paint cupboard", "paint closet", "desk")


def list_mixtures() -> list[task_params.Mix]:
    """Return the variations of 6-1: the recipes of each split, per room."""
    return [
        task_params.Mix(result, ingredients, place)
        for recipes in _RECIPES
        for place in ("kitchen", "workshop")
        for result, ingredients in recipes
    ]


def list_paints() -> list[task_params.Paint]:
    """Return the variations of 6-2 and 6-3: six rows of colours in two rooms."""
    return [
        task_params.Paint(
            f"{secondary} paint",
            tuple(f"{color} paint" for color in of_primary),
            f"{tertiary} paint",
            tuple(f"{color} paint" for color in of_secondary),
            place,
            extra,
        )
        for secondary, of_primary, tertiary, of_secondary in _COLORS
        for place in ("art studio", "workshop")
        for extra in EXTRA_PLACES
    ]


BLOCKS = ("wood block", "steel block", "brick")
ANGLES = (
    ("B", 70.0),
    ("C", 80.0),
    ("D", 20.0),
    ("E", 10.0),
    ("F", 60.0),
    ("G", 40.0),
    ("H", 30.0),
    ("J", 50.0),
)
SURFACES = (
    *("aluminum", "brass", "bronze", "caesium", "copper", "iron", "lead", "platinum", "steel"),
    *("tin", "titanium", "zinc", "glass", "plastic", "ceramic", "wood", "paper", "sandpaper"),
    *("cloth", "rubber", "chocolate", "soapy water", "greenpaint"),
)
UNKNOWN_SURFACES = tuple(f"unknown material {letter}" for letter in "BCDEFGHJ")

_PEA_TRAITS = ("plant height", "seed shape", "seed color", "seed shape")
UNKNOWN_PLANTS = ("unknown E", "unknown B", "unknown C", "unknown D")

POT_CHOICES = 5
_GENETICS_BOXES = BOX_PAIRS[:3]


def list_angles() -> list[task_params.Planes]:
    """Return the variations of 9-1: planes of eight angles."""
    return _pair_planes(ANGLES, 5.0, ("shallowest", "steepest"))


def list_named_surfaces() -> list[task_params.Planes]:
    """Return the variations of 9-2: planes of known materials."""
    return _pair_planes(_add_friction(JavaRandom(3).shuffled(SURFACES)), 0.05, ("most", "least"))


def list_unnamed_surfaces() -> list[task_params.Planes]:
    """Return the variations of 9-3: planes of unknown materials."""
    return _pair_planes(
        _add_friction(JavaRandom(4).shuffled(UNKNOWN_SURFACES)), 0.05, ("most", "least")
    )


def list_pea_traits() -> list[task_params.Genetics]:
    """Return the variations of 10-1: traits of the pea."""
    return _list_genetics("pea", _PEA_TRAITS, 0)


def list_unknown_traits() -> list[task_params.Genetics]:
    """Return the variations of 10-2: traits of four unknown plants."""
    found: list[task_params.Genetics] = []
    for number, plant in enumerate(UNKNOWN_PLANTS):
        found += _list_genetics(plant, tuple(TRAITS[plant]), 8 * number)
    return found


def _add_friction(surfaces: Iterable[str]) -> list[tuple[str, float]]:
    return [(name, get_material(name).friction) for name in surfaces]


def _pair_planes(
    planes: Sequence[tuple[str, float]], least: float, asked: tuple[str, str]
) -> list[task_params.Planes]:
    """Return ordered pairs that differ by more than ``least``, with each block, asked in turn."""
    found = [
        (first, second, block)
        for first in planes
        for second in planes
        for block in BLOCKS
        if abs(first[1] - second[1]) > least
    ]
    return [
        task_params.Planes(first[0], second[0], block, asked[index % 2], (first[1], second[1]))
        for index, (first, second, block) in enumerate(found)
    ]


def _list_genetics(plant: str, traits: Sequence[str], first_jar: int) -> list[task_params.Genetics]:
    return [
        task_params.Genetics(
            plant, trait, value, is_dominant, first_jar + 2 * number + side, pots, *boxes
        )
        for number, trait in enumerate(traits)
        for side, (value, is_dominant) in enumerate(
            zip(TRAITS[plant][trait], (True, False), strict=True)
        )
        for pots in range(POT_CHOICES)
        for boxes in _GENETICS_BOXES
    ]
