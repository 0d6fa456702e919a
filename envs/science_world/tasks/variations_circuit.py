"""Variations of the tasks on electricity (3-x)."""

from __future__ import annotations

from .params import Conductivity, Power
from .variations_matter import BOX_PAIRS, UNKNOWN_LETTERS

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


def powered_parts() -> list[Power]:
    """3-1: any source will do."""
    return [Power(part, *sources) for part, sources in _circuits()]


def powered_parts_by_source() -> list[Power]:
    """3-2: in turn the renewable and the other source are asked."""
    return [
        Power(part, *sources, use=sources[index % 2])
        for index, (part, sources) in enumerate(_circuits())
    ]


def known_conductors() -> list[Conductivity]:
    """3-3: twelve things in three rooms."""
    found = sorted(
        ((name, place) for place in ("workshop", "kitchen", "living room") for name in _CONDUCTIVE),
        key=lambda item: item[0],
    )
    return [
        Conductivity(name, place, _CONDUCTIVE[name], part, yes, no)
        for name, place in found
        for part in PARTS
        for yes, no in BOX_PAIRS
    ]


def unknown_conductors() -> list[Conductivity]:
    """3-4: whether the substance conducts is drawn when a task is loaded."""
    return [
        Conductivity(f"unknown substance {letter}", "workshop", None, part, yes, no)
        for letter in UNKNOWN_LETTERS
        for part in PARTS
        for yes, no in BOX_PAIRS
    ]


def _circuits() -> list[tuple[str, tuple[str, str]]]:
    return [
        (part, (renewable, other))
        for part in PARTS
        for renewable in RENEWABLE
        for other in NONRENEWABLE
    ]
