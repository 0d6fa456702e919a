"""Variations of the tasks on living things (4-x, 5-x, 7-x, 8-x)."""

from __future__ import annotations

from .java_random import JavaRandom
from .params import AnimalStages, Find, Grow, Lifespan, PlantStages
from .variations_matter import BOX_COLORS

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


def finds() -> list[Find]:
    """4-1 to 4-4: ten groups of living things, five rooms, six boxes."""
    return [
        Find(
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


def growths() -> list[Grow]:
    """5-1 and 5-2: seven seeds, six rooms, three kinds of pots."""
    return [
        Grow(seed, place, pots)
        for seed in PLANTS[:7]
        for place in (*_ROOMS, "greenhouse")
        for pots in ("filled", "floor", "empty")
    ]


def lifespans() -> list[Lifespan]:
    """7-1 to 7-3: one animal of each group, in a fixed random order."""
    return JavaRandom(0).shuffled(
        Lifespan(long, medium, short) for long in _LONG for medium in _MEDIUM for short in _SHORT
    )


def animal_stages() -> list[AnimalStages]:
    """8-1: fourteen animals in a fixed random order, each among five others."""
    return JavaRandom(1).shuffled(
        AnimalStages(
            animal,
            3 if animal in _THREE_STAGES else 4,
            tuple(JavaRandom(index).shuffled(ANIMALS)[:5]),
        )
        for index, animal in enumerate(ANIMALS)
    )


def plant_stages() -> list[PlantStages]:
    """8-2: ten fruit plants."""
    return [
        PlantStages(plant, JavaRandom(seed).shuffled(ANIMALS)[0], group)
        for group, (plant, seed) in enumerate(FRUIT_PLANTS)
    ]
