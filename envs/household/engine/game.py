"""A game, compiled: the room, the things in it, and the task; read-only and shared.

Objects and receptacles are numbers: their place in the order of raw ids, which is the order of
every list that the original prints. A set of them is an int whose bit ``i`` stands for number
``i``. Locations are numbers too; the last one is where the agent starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...core.digest import digest_of
from ...core.fork import Shared

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The kinds of tasks, as the original's paths name them."""
SIMPLE, LIGHT, CLEAN, HEAT, COOL, TWO = TASK_TYPES
CHANGES = {CLEAN: "clean", HEAT: "heat", COOL: "cool"}
"""Command that changes the object of a task, by the task's type."""
DEVICES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""Type of the receptacle that a command needs."""
KNIVES = ("knife", "butterknife")
NONE = -1


def walk_bits(mask: int) -> Iterator[int]:
    """Yield the numbers in a set, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def make_mask(flags: Sequence[bool]) -> int:
    """Return the set of the places that are true."""
    return sum(1 << number for number, flag in enumerate(flags) if flag)


@dataclass(frozen=True)
class Room(Shared):
    """The receptacles of a room and where they stand.

    Attributes:
        names: Name of each receptacle, as commands say it.
        types: Type of each, without numbers.
        location: Location of each.
        openable: Set of those that open and close.
        location_names: What the original calls each location, ``loc 9``.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    location: tuple[int, ...]
    openable: int
    location_names: tuple[str, ...]

    @cached_property
    def start(self) -> int:
        """Where the agent starts: no receptacle stands there."""
        return len(self.location_names)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Receptacles by name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def here(self) -> tuple[tuple[int, ...], ...]:
        """Receptacles at each location, the start at last."""
        places: list[list[int]] = [[] for _ in range(self.start + 1)]
        for number, location in enumerate(self.location):
            places[location].append(number)
        return tuple(map(tuple, places))

    @cached_property
    def here_masks(self) -> tuple[int, ...]:
        """The same as sets."""
        return tuple(sum(1 << r for r in numbers) for numbers in self.here)

    @cached_property
    def go_commands(self) -> tuple[tuple[str, ...], ...]:
        """Commands that go somewhere from each location, sorted."""
        return tuple(
            tuple(
                sorted(
                    f"go to {name}"
                    for name, there in zip(self.names, self.location, strict=True)
                    if there != location
                )
            )
            for location in range(self.start + 1)
        )

    def of_type(self, kind: str) -> int:
        """Return the set of receptacles of a type."""
        return make_mask([other == kind for other in self.types])

    @cached_property
    def devices(self) -> Mapping[str, int]:
        """Receptacles that clean, heat and cool, by the command."""
        return {verb: self.of_type(kind) for verb, kind in DEVICES.items()}


@dataclass(frozen=True)
class Goal:
    """What a task asks for.

    Attributes:
        kind: One of :data:`TASK_TYPES`.
        object: Type of the object.
        place: Type of the receptacle, or of the lamp.
    """

    kind: str
    object: str
    place: str


@dataclass(frozen=True)
class Things(Shared):
    """The objects of a game; properties are sets.

    Attributes:
        names: Name of each.
        types: Type of each.
        pickupable: Those that can be taken.
        cleanable: Those that can be cleaned.
        heatable: Those that can be heated.
        coolable: Those that can be cooled.
        sliceable: Those that can be sliced.
        toggleable: Those that can be turned on.
        holders: Those that hold other objects.
        inside: What each holds; empty for most.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    pickupable: int
    cleanable: int
    heatable: int
    coolable: int
    sliceable: int
    toggleable: int
    holders: int
    inside: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Objects by name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def knives(self) -> int:
        """What slices."""
        return make_mask([kind in KNIVES for kind in self.types])

    def of_type(self, kind: str) -> int:
        """Return the set of objects of a type."""
        return make_mask([other == kind for other in self.types])


@dataclass(frozen=True)
class Game(Shared):
    """A game: where everything is at first, and what is to be done.

    Attributes:
        id: Its name: the original's path, or the task's id.
        text: The task, in words; a whole line.
        room: The receptacles.
        things: The objects.
        fits: What each receptacle takes, as sets of objects.
        goal: The task.
        contents: What each receptacle holds at first.
        beside: Objects that the original notes at each receptacle's location, at first.
        cool: Objects that are cool at first.
    """

    id: str
    text: str
    room: Room
    things: Things
    fits: tuple[int, ...]
    goal: Goal
    contents: tuple[int, ...]
    beside: tuple[int, ...]
    cool: int = 0

    @cached_property
    def movable(self) -> int:
        """Wanted objects that can be taken."""
        return self.wanted & self.things.pickupable

    @cached_property
    def wanted(self) -> int:
        """Objects of the type that the task asks for, fit for what it asks."""
        things, change = self.things, CHANGES.get(self.goal.kind)
        able = {"clean": things.cleanable, "heat": things.heatable, "cool": things.coolable}
        mask = things.of_type(self.goal.object)
        return mask if change is None else mask & able[change]

    @cached_property
    def targets(self) -> tuple[int, ...]:
        """Receptacles of the type that the task asks for; none where it is about a lamp."""
        if self.goal.kind == LIGHT:
            return ()
        return tuple(walk_bits(self.room.of_type(self.goal.place)))

    @cached_property
    def takers(self) -> Mapping[int, int]:
        """Receptacles of the task's type that take each wanted object, as sets."""
        return {
            obj: sum(1 << place for place in self.targets if self.fits[place] >> obj & 1)
            for obj in walk_bits(self.wanted)
        }

    @cached_property
    def lamps(self) -> int:
        """Lamps of the type that the task asks for."""
        if self.goal.kind != LIGHT:
            return 0
        return self.things.of_type(self.goal.place) & self.things.toggleable

    @cached_property
    def traced(self) -> tuple[int, ...]:
        """Objects per receptacle that leave a trace when taken: others here take them too."""
        found = []
        for number, location in enumerate(self.room.location):
            others = 0
            for other in self.room.here[location]:
                others |= self.fits[other] if other != number else 0
            found.append(others)
        return tuple(found)

    def digest(self) -> str:
        """Return a hash of the whole game."""
        room, things = self.room, self.things
        return digest_of(
            (
                self.text,
                (room.names, room.types, room.location, room.openable, room.location_names),
                (things.names, things.types, things.pickupable, things.cleanable),
                (things.heatable, things.coolable, things.sliceable, things.toggleable),
                (things.holders, sorted(things.inside.items())),
                (self.goal, self.fits, self.contents, self.beside, self.cool),
            )
        )
