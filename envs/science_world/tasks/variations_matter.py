"""Variations of the tasks on states of matter and on measuring (1-x and 2-x)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

from .java_random import JavaRandom
from .params import Melting, StateChange, Thermometer

T = TypeVar("T")

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
    "water": 0,
    "orange juice": 0,
    "chocolate": 30,
    "mercury": -39,
    "gallium": 30,
    "tin": 232,
    "lead": 327,
}
UNKNOWN_MELTING = dict(
    zip(
        UNKNOWN_LETTERS,
        (
            75,
            115,
            -30,
            -10,
            275,
            30,
            225,
            -75,
            520,
            325,
            -25,
            175,
            25,
            75,
            425,
            30,
            15,
            -2,
            625,
            -220,
            575,
            -175,
            675,
            775,
        ),
        strict=True,
    )
)
_UNKNOWN_ROWS = 25
_START_TEMPERATURE = 10


def state_changes() -> list[StateChange]:
    """1-1 to 1-4: every substance with the stove whole, then broken."""
    return [
        StateChange(name, sink_broken, stove_broken)
        for name, sink_broken in _SUBSTANCES
        for stove_broken in (False, True)
    ]


def temperatures() -> list[Thermometer]:
    """2-1: objects, thresholds and boxes in every combination, thinned to 2 %."""
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
    kept = _thinned(len(objects) * len(choices), 0.02)
    return [Thermometer(*objects[k // len(choices)], *choices[k % len(choices)]) for k in kept]


def known_meltings() -> list[Melting]:
    """2-2: seven substances; half of the combinations."""
    objects = sorted(
        ((name, row) for row in range(len(MELTING_THRESHOLDS)) for name in KNOWN_MELTING),
        key=lambda found: found[0],
    )
    choices = _melting_choices()
    kept = _thinned(len(objects) * len(choices), 0.5)
    found = [(objects[k // len(choices)], choices[k % len(choices)]) for k in kept]
    return [Melting(name, KNOWN_MELTING[name], *choice, row) for (name, row), choice in found]


def unknown_meltings() -> list[Melting]:
    """2-3: unknown substances, called by their state at the start; 2 % of the combinations."""
    objects = sorted(
        (
            (unknown_name(letter), letter, row)
            for row in range(_UNKNOWN_ROWS)
            for letter in UNKNOWN_LETTERS
        ),
        key=lambda found: found[0],
    )
    choices = _melting_choices()
    kept = _thinned(len(objects) * len(choices), 0.02)
    found = [(objects[k // len(choices)], choices[k % len(choices)]) for k in kept]
    return [
        Melting(name, UNKNOWN_MELTING[letter], *choice, row, letter)
        for (name, letter, row), choice in found
    ]


def unknown_name(letter: str) -> str:
    """Name of an unknown substance at 10 degrees."""
    state = "solid" if UNKNOWN_MELTING[letter] > _START_TEMPERATURE else "liquid"
    return f"{state} unknown substance {letter}"


def _melting_choices() -> list[tuple[int, str, str]]:
    return [(at, above, below) for at in MELTING_THRESHOLDS for above, below in BOX_PAIRS]


def _thinned(count: int, share: float) -> list[int]:
    """Which of ``count`` combinations remain: a share of each split, shuffled in a fixed way."""
    random = JavaRandom(5)
    half, three_quarters = int(count * 0.5), int(count * 0.75)
    parts: Sequence[range] = (
        range(half),
        range(half, three_quarters),
        range(three_quarters, count),
    )
    return [k for part in parts for k in random.shuffled(part)[: int(len(part) * share)]]
