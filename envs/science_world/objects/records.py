"""What objects of some kinds carry beyond the common columns; all of it immutable."""

from __future__ import annotations

from typing import NamedTuple

Genes = tuple[tuple[str, int, int], ...]
"""Per trait, in order: its name and the two alleles, 0 dominant and 1 recessive."""


class Portal(NamedTuple):
    """A door or drain: the two places that it joins, as handles."""

    source: int
    target: int


class Picture(NamedTuple):
    """What a picture shows and who made it."""

    subject: str
    artist: str


class Text(NamedTuple):
    """A document's title, text and author (books)."""

    title: str
    contents: str
    author: str = ""


class Slope(NamedTuple):
    """An inclined plane: its angle in degrees, surface material's key and further name."""

    angle: float
    surface: str
    letter: str = ""


class PlantLife(NamedTuple):
    """Where a plant stands in its life.

    Attributes:
        stage: Index in ``seed, seedling, adult, reproducing, dead``.
        met: Ticks that met the stage's needs.
        dry: Ticks in a row without water in this stage.
        bare: Ticks in a row without soil in this stage.
        chilled: Ticks in a row outside the temperatures that it bears.
        sick: It looks unwell.
        dead: It counts as dead (from its first tick in the last stage on).
    """

    stage: int = 0
    met: int = 0
    dry: int = 0
    bare: int = 0
    chilled: int = 0
    sick: bool = False
    dead: bool = False


class AnimalLife(NamedTuple):
    """Where an animal stands: index of its stage, ticks in it, and whether it counts as dead."""

    stage: int = 0
    met: int = 0
    dead: bool = False


class Bloom(NamedTuple):
    """A flower: the plant it grew on, steps since pollination (0: not yet), the other parent."""

    plant: int
    step: int = 0
    other: Genes | None = None


class Watch(NamedTuple):
    """A stopwatch: ticks since it was started, and what it shows."""

    running: int = 0
    shown: int = 0


PLANT_STAGES = ("seed", "seedling", "adult", "reproducing", "dead")

_YOUNG, _LONG = 20, 50
CYCLES: dict[str, tuple[tuple[str, str, int], ...]] = {
    "mammal": (
        ("baby", "", _YOUNG),
        ("juvenile", "", _YOUNG),
        ("adult", "", _LONG),
        ("dead", "", 0),
    ),
    "hatching": (
        ("egg", "", _YOUNG),
        ("hatchling", "", _YOUNG),
        ("juvenile", "", _YOUNG),
        ("adult", "", _LONG),
        ("dead", "", 0),
    ),
    "frog": (
        ("egg", "frog egg", _YOUNG),
        ("tadpole", "tadpole", _YOUNG),
        ("adult", "adult frog", _LONG),
        ("death", "dead frog", 0),
    ),
    "butterfly": (
        ("egg", "butterfly egg", _YOUNG),
        ("caterpillar", "caterpillar", _YOUNG),
        ("pupa", "butterfly pupa", _YOUNG),
        ("adult", "adult butterfly", _LONG),
        ("death", "dead butterfly", 0),
    ),
    "adult": (("adult", "", 0), ("dead", "", 0)),
    "plant": tuple((stage, "", 0) for stage in PLANT_STAGES),
}
"""Per life cycle its stages: name, fixed display name if any, ticks until the next (0: stays)."""

Forms = dict[str, tuple[str, str]]
"""Per trait, in the order of a random plant's genes: its dominant and its recessive form.

A trait shows its dominant form unless both alleles are recessive.
"""

TRAITS: dict[str, Forms] = {
    "pea": {
        "plant height": ("tall", "short"),
        "seed shape": ("round", "wrinkly"),
        "seed color": ("green", "orange"),
        "flower color": ("purple", "white"),
    },
    "unknown E": {
        "seed color": ("blue", "brown"),
        "seed shape": ("round", "square"),
        "leaf shape": ("elliptical", "linear"),
        "flower size": ("small", "large"),
    },
    "unknown B": {
        "plant height": ("short", "tall"),
        "seed color": ("green", "yellow"),
        "flower size": ("large", "small"),
        "flower color": ("orange", "yellow"),
    },
    "unknown C": {
        "plant height": ("short", "tall"),
        "leaf shape": ("pointed", "round"),
        "flower size": ("large", "small"),
        "flower color": ("orange", "yellow"),
    },
    "unknown D": {
        "seed shape": ("spherical", "ovate"),
        "leaf size": ("medium", "large"),
        "flower size": ("small", "medium"),
        "flower color": ("blue", "red"),
    },
}


def show_trait(species: str, genes: Genes, trait: str) -> str:
    """Return how a trait shows; empty when the species has no such trait."""
    for name, first, second in genes:
        if name == trait:
            return TRAITS[species][trait][first & second]
    return ""
