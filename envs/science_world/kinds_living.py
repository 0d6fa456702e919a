"""Kinds of living things: animals, bees, trees, pea plants and the plants of unknown species."""

from __future__ import annotations

from typing import Any

from .kinds import NO_BOX, OPEN, define

FRUITS = (
    *("apple", "apricot", "avocado", "banana", "cherry"),
    *("grapefruit", "lemon", "orange", "peach", "pear"),
)
UNKNOWN_PLANTS = ("B", "C", "D", "E")

LIFE_SPANS: dict[str, float] = {
    **{"giant tortoise": 150.0, "parrot": 80.0, "elephant": 70.0, "crocodile": 45.0},
    **{"brown bear": 30.0, "turtle": 30.0, "beaver": 16.0, "wolf": 14.0, "chipmunk": 12.0},
    **{"common toad": 10.0, "rabbit": 9.0, "blue jay": 7.0, "frog": 6.0, "hedgehog": 5.0},
    **{"mouse": 4.0, "chameleon": 3.0, "dove": 2.0, "dragonfly": 0.4, "moth": 0.2},
    **{"ant": 0.1, "bee": 0.1, "butterfly": 0.1},
}
"""Years that each species lives; the tasks about life spans go by it."""

_CYCLES = {
    **dict.fromkeys(("giant tortoise", "turtle", "crocodile", "chameleon"), "hatching"),
    **dict.fromkeys(("parrot", "dove", "blue jay"), "hatching"),
    **dict.fromkeys(("common toad", "frog"), "frog"),
    **dict.fromkeys(("butterfly", "moth"), "butterfly"),
}


def _animals() -> None:
    words = ("living thing", "organism")
    living: dict[str, Any] = {"look": "animal", "words": words}
    for species in LIFE_SPANS:
        if species == "bee":
            continue
        cycle = _CYCLES.get(species, "mammal")
        rest = {**living, "refer": "animal", "tick": "animal", "species": species}
        define(species, cycle=cycle, tags="animal living", **rest)
    bee = {**living, "look": "bee", "refer": "bee", "tick": "bee", "species": "bee"}
    define("bee", cycle="adult", tags="animal living bee", **bee)


def _plants() -> None:
    words = ("living thing", "organism")
    living: dict[str, Any] = {"box": OPEN, "words": words, "edible": True, "cycle": "plant"}
    groups = "plant living tree"
    for fruit in FRUITS:
        shown: dict[str, Any] = {"look": "tree", "refer": "tree", "tick": "tree"}
        name: dict[str, Any] = {"name": "plant", "species": fruit}
        define(f"{fruit} tree", "plant matter", groups, **name, **living, **shown)
    for species in ("pea", *(f"unknown {letter}" for letter in UNKNOWN_PLANTS)):
        shown = {"look": "bred plant", "refer": "bred plant", "tick": "tree"}
        key = f"{species} plant"
        define(key, "plant matter", groups, name=species, species=species, **living, **shown)
    flower: dict[str, Any] = {"look": "flower", "refer": "flower", "tick": "flower"}
    define("flower", "flower matter", "flower", box=OPEN, **flower)
    define("pollen", "pollen matter", "pollen", box=NO_BOX, look="pollen", refer="pollen")


_animals()
_plants()
