"""Variations of the tasks on inclined planes and on inheritance (9-x and 10-x)."""

from __future__ import annotations

from collections.abc import Sequence

from .java_random import JavaRandom
from .params import Genetics, Planes
from .variations_matter import BOX_PAIRS

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
    ("aluminum", 0.45),
    ("brass", 0.5),
    ("bronze", 0.4),
    ("caesium", 0.5),
    ("copper", 0.6),
    ("iron", 0.7),
    ("lead", 0.43),
    ("platinum", 0.8),
    ("steel", 0.6),
    ("tin", 0.3),
    ("titanium", 0.0),
    ("zinc", 0.62),
    ("glass", 0.2),
    ("plastic", 0.1),
    ("ceramic", 0.65),
    ("wood", 0.2),
    ("paper", 0.2),
    ("sandpaper", 0.98),
    ("cloth", 0.3),
    ("rubber", 0.95),
    ("chocolate", 0.32),
    ("soapy water", 0.06),
    ("greenpaint", 0.3),
)
UNKNOWN_SURFACES = tuple(
    (f"unknown material {letter}", friction)
    for letter, friction in zip("BCDEFGHJ", (0.7, 0.4, 0.6, 0.2, 0.8, 0.3, 0.9, 0.9), strict=True)
)

_PEA_TRAITS = (
    ("plant height", ("tall", "short")),
    ("seed shape", ("round", "wrinkly")),
    ("seed color", ("green", "orange")),
    ("seed shape", ("round", "wrinkly")),
)
UNKNOWN_TRAITS = {
    "unknown E": (
        ("seed color", ("blue", "brown")),
        ("seed shape", ("round", "square")),
        ("leaf shape", ("elliptical", "linear")),
        ("flower size", ("small", "large")),
    ),
    "unknown B": (
        ("plant height", ("short", "tall")),
        ("seed color", ("green", "yellow")),
        ("flower size", ("large", "small")),
        ("flower color", ("orange", "yellow")),
    ),
    "unknown C": (
        ("plant height", ("short", "tall")),
        ("leaf shape", ("pointed", "round")),
        ("flower size", ("large", "small")),
        ("flower color", ("orange", "yellow")),
    ),
    "unknown D": (
        ("seed shape", ("spherical", "ovate")),
        ("leaf size", ("medium", "large")),
        ("flower size", ("small", "medium")),
        ("flower color", ("blue", "red")),
    ),
}
"""Traits of the plants of 10-2: dominant value, then recessive value."""

POT_CHOICES = 5
_GENETICS_BOXES = BOX_PAIRS[:3]


def angles() -> list[Planes]:
    """9-1: planes of eight angles."""
    return _pairs(ANGLES, 5.0, ("shallowest", "steepest"))


def named_surfaces() -> list[Planes]:
    """9-2: planes of known materials."""
    return _pairs(JavaRandom(3).shuffled(SURFACES), 0.05, ("most", "least"))


def unnamed_surfaces() -> list[Planes]:
    """9-3: planes of unknown materials."""
    return _pairs(JavaRandom(4).shuffled(UNKNOWN_SURFACES), 0.05, ("most", "least"))


def pea_traits() -> list[Genetics]:
    """10-1: traits of the pea."""
    return _genetics("pea", _PEA_TRAITS, 0)


def unknown_traits() -> list[Genetics]:
    """10-2: traits of four unknown plants."""
    found: list[Genetics] = []
    for number, (plant, traits) in enumerate(UNKNOWN_TRAITS.items()):
        found += _genetics(plant, traits, 8 * number)
    return found


def _pairs(
    planes: Sequence[tuple[str, float]], least: float, asked: tuple[str, str]
) -> list[Planes]:
    """Ordered pairs that differ by more than ``least``, with each block, asked in turn."""
    found = [
        (first, second, block)
        for first in planes
        for second in planes
        for block in BLOCKS
        if abs(first[1] - second[1]) > least
    ]
    return [
        Planes(first[0], second[0], block, asked[index % 2], (first[1], second[1]))
        for index, (first, second, block) in enumerate(found)
    ]


def _genetics(
    plant: str, traits: Sequence[tuple[str, tuple[str, str]]], first_jar: int
) -> list[Genetics]:
    return [
        Genetics(plant, trait, value, is_dominant, first_jar + 2 * number + side, pots, *boxes)
        for number, (trait, values) in enumerate(traits)
        for side, (value, is_dominant) in enumerate(zip(values, (True, False), strict=True))
        for pots in range(POT_CHOICES)
        for boxes in _GENETICS_BOXES
    ]
