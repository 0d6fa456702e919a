"""Kinds of objects: what all sinks, cups or apples have in common, as read-only records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import UnknownNameError
from .materials import Material, material

OPEN, CLOSABLE, NO_BOX = "open", "closable", "no box"
"""Container kinds: always open; with a lid, closed at first; refuses contents as if closed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What objects of one kind share.

    Attributes:
        key: Name of the kind, unique ("wood table", "water").
        name: Name of a new object ("table").
        material: What it is made of; None for things that have no temperature.
        box: One of :data:`OPEN`, :data:`CLOSABLE`, :data:`NO_BOX`; empty for no container at all.
        words: Further names that it answers to.
        look: Which description it has (a key of ``wording.LOOKS``).
        refer: Which way of naming it has (a key of ``names.REFERS``).
        tick: What it does of itself every tick (a key of ``physics.ticking.TICKS``).
        movable: Whether it can be picked up.
        device: Whether it counts as a device, and which: ``switchable``, ``fixed`` or ``usable``.
        starts_on: A new device is active.
        heats: Temperature that the active device heats its contents to.
        cools: Temperature that the active device cools its contents to.
        poles: ``hidden`` (terminals of plain things), ``wire`` or ``polar`` (anode, cathode).
        role: Electrical role: ``user``, ``generator`` or ``switch``.
        edible: Whether it can be eaten.
        parts: Kinds of the objects that it is made with, in order.
        tags: Groups that it belongs to ("substance", "plant", "place").
        color: For foods that are shown with their colour.
        species: Of living things, the species that their stage names use.
        cycle: Of living things, which life cycle (a key of ``records.CYCLES``).
        plain_name: The descriptive name is the plain one but for fire (not of animals, inclined
            planes, doors and drains).
    """

    key: str
    name: str
    material: Material | None = None
    box: str = ""
    words: tuple[str, ...] = ()
    look: str = "a"
    refer: str = "plain"
    tick: str = ""
    movable: bool = True
    device: str = ""
    starts_on: bool = False
    heats: float | None = None
    cools: float | None = None
    poles: str = "hidden"
    role: str = "user"
    edible: bool = False
    parts: tuple[str, ...] = ()
    tags: frozenset[str] = field(default_factory=frozenset)
    color: str = ""
    species: str = ""
    cycle: str = ""
    plain_name: bool = True

    @property
    def digest(self) -> str:
        """The key stands for the record."""
        return self.key

    def __reduce__(self) -> tuple[object, ...]:
        return kind, (self.key,)


_KINDS: dict[str, Kind] = {}


def kind(key: str) -> Kind:
    """The kind of a name.

    Raises:
        UnknownNameError: There is none.
    """
    if key not in _KINDS:
        raise UnknownNameError("kind of object", key, _KINDS)
    return _KINDS[key]


def all_kinds() -> Iterable[Kind]:
    """Every kind, in the order of definition."""
    return _KINDS.values()


def define(key: str, made_of: str = "", tags: str = "", **rest: Any) -> None:
    """Add a kind; ``made_of`` names its material, ``tags`` its groups separated by blanks.

    The name of new objects is ``key`` unless ``name`` is given.
    """
    made = material(made_of) if made_of else None
    name = str(rest.pop("name", key))
    groups = frozenset(tags.split())
    rest["plain_name"] = groups.isdisjoint(("animal", "plane", "portal"))
    _KINDS[key] = Kind(key, name, made, tags=groups, **rest)
