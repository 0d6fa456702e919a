"""Conditions of optional goals: most look around the agent's room."""

from __future__ import annotations

from dataclasses import dataclass

from ..wording import full_name
from ..world import NONE, World, terminal, terminal_owner
from .goal import NO, YES, Goal, Look

ANY_SOURCE, ANY_BULB = "any source", "any bulb"
_SEVERED = -1


@dataclass(frozen=True, slots=True)
class See(Goal):
    """Something called ``name`` is in the room."""

    name: str

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.name,)

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if self.name.lower() in look.around.by_name else NO


@dataclass(frozen=True, slots=True)
class Alone(Goal):
    """Some container holds as many things as there are ``names``, and each has such a name."""

    names: tuple[str, ...]

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return self.names

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world, by_name = look.world, look.around.by_name
        room = world.here()
        for name in self.names:
            for thing in by_name.get(name.lower(), ()):
                holder = world.parent[thing]
                # The room itself is no container that counts.
                if holder != room and self._fills(world, holder):
                    return YES
        return NO

    def _fills(self, world: World, holder: int) -> bool:
        contents = world.kids[holder]
        return len(contents) == len(self.names) and all(
            world.name[thing] in self.names or full_name(world, thing) in self.names
            for thing in contents
        )


@dataclass(frozen=True, slots=True)
class Holds(Goal):
    """Something called ``holder`` in the room directly contains something called ``name``."""

    holder: str
    name: str

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.holder,)

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world = look.world
        for holder in look.around.by_name.get(self.holder.lower(), ()):
            for thing in world.kids[holder]:
                if self.name in (world.name[thing], full_name(world, thing)):
                    return YES
        return NO


@dataclass(frozen=True, slots=True)
class Running(Goal):
    """A device called ``name`` in the room is on, or off where ``on`` is false."""

    name: str
    on: bool = True

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.name,)

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world = look.world
        for thing in look.around.by_name.get(self.name, ()):
            if world.kind[thing].device and world.on[thing] is self.on:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Burns(Goal):
    """Something called ``name`` in the room burns."""

    name: str

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.name,)

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.around.by_name.get(self.name, ()):
            if look.world.burning[thing]:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Opened(Goal):
    """A container called ``name`` in the room is open."""

    name: str

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.name,)

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.around.by_name.get(self.name, ()):
            if look.world.kind[thing].box and look.world.open[thing]:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Inside(Goal):
    """The object in focus is somewhere inside something called ``holder``."""

    holder: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.focus == NONE or not look.same_object():
            return NO
        names = look.world.name
        inside = any(names[holder] == self.holder for holder in look.world.holders(look.focus))
        return YES if inside else NO


@dataclass(frozen=True, slots=True)
class Changed(Goal):
    """The object in focus is warmer by ``by`` degrees than when it was first looked at.

    A negative number means colder. The first temperature is that of whatever was in focus then.
    """

    by: float

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.focus == NONE or look.world.material[look.focus] is None:
            return NO
        temperature = look.world.heat[look.focus]
        first = look.progress.memory[look.slot]
        if first is None:
            first = look.progress.memory[look.slot] = temperature
        if self.by > 0:
            return YES if temperature >= first + self.by else NO
        return YES if temperature <= first + self.by else NO


@dataclass(frozen=True, slots=True)
class InRoom(Goal):
    """The agent is in a room."""

    place: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if look.around.place == self.place else NO


@dataclass(frozen=True, slots=True)
class NewRoom(Goal):
    """The agent is in another room than when it was first looked at, or in ``unless``."""

    unless: str = ""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        place = look.around.place
        if place == self.unless:
            return YES
        first = look.progress.memory[look.slot]
        if first is None:
            look.progress.memory[look.slot] = place
            return NO
        return YES if place != first else NO


@dataclass(frozen=True, slots=True)
class OpenDoor(Goal):
    """A door of the agent's room is open."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if look.around.near_open_door() else NO


@dataclass(frozen=True, slots=True)
class Stay(Goal):
    """The agent is in a room for a number of questions in a row.

    As in the original every question counts: two a tick, and twice as many with a focus.
    """

    place: str
    least: int

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        memory, slot = look.progress.memory, look.slot
        memory[slot] = (memory[slot] or 0) + 1 if look.around.place == self.place else 0
        return YES if memory[slot] >= self.least else NO


@dataclass(frozen=True, slots=True)
class Done(Goal):
    """The agent has done something since the goal was first looked at.

    ``deed`` is "look at", "read" or "use"; ``name`` is that of the thing, for "use" the tool's.
    ``patient`` is what a tool was used on; with it, either name will do.
    """

    deed: str
    name: str
    patient: str = ""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        deeds, memory = look.progress.deeds, look.progress.memory
        if memory[look.slot] is None:
            memory[look.slot] = len(deeds)
        for deed in deeds[memory[look.slot] :]:
            if deed[0] == self.deed and self._fits(deed):
                return YES
        return NO

    def _fits(self, deed: tuple[str, ...]) -> bool:
        if self.deed == "use":
            return deed[1] == self.name or deed[2] == self.patient
        return self.name in deed[1:]


@dataclass(frozen=True, slots=True)
class Wired(Goal):
    """A wire touches something called ``name``: at its anode or terminal 1, or at the other."""

    name: str
    first: bool

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.name,)

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world = look.world
        if not world.wires:
            return NO
        for thing in look.around.by_name.get(self.name.lower(), ()):
            end = world.wires.get(terminal(thing, 0 if self.first else 1), _SEVERED)
            if end != _SEVERED and "wire" in world.kind[terminal_owner(end)].tags:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Joins(Goal):
    """One wire in the room touches both ends: each is a name, "any source" or "any bulb"."""

    one: str
    other: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world = look.world
        if not world.wires:
            return NO
        for thing in look.around.objects:
            if "wire" in world.kind[thing].tags:
                parts = _touched(world, thing)
                if any(_is(self.one, world, part) for part in parts) and any(
                    _is(self.other, world, part) for part in parts
                ):
                    return YES
        return NO


def _touched(world: World, wire: int) -> list[int]:
    ends = (world.wires.get(terminal(wire, side), _SEVERED) for side in (0, 1))
    return [terminal_owner(end) for end in ends if end != _SEVERED]


def _is(wanted: str, world: World, part: int) -> bool:
    if wanted == ANY_SOURCE:
        return "source" in world.kind[part].tags
    if wanted == ANY_BULB:
        return "bulb" in world.kind[part].tags
    return wanted.lower() in (world.name[part].lower(), full_name(world, part).lower())


@dataclass(frozen=True, slots=True)
class Plants(Goal):
    """At least ``least`` plants of a species in a stage are in the room."""

    species: str
    stage: str
    least: int

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        found = look.around.plants[self.species, self.stage]
        return YES if found >= self.least else NO
