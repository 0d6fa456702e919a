"""Conditions of optional goals: most look around the agent's room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import facts
from .goal import NO, YES, Goal, Look

_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class See(Goal):
    """Something called ``name`` is in the room."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if self.name in look.sight.by_name else NO


@dataclass(frozen=True, slots=True)
class Alone(Goal):
    """Some container holds as many things as there are ``names``, and each has such a name."""

    names: tuple[str, ...]

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        by_name, names = look.sight.by_name, self.names
        for name in names:
            for thing in by_name.get(name.lower(), ()):
                holder = thing.container
                # The room itself is no container that counts.
                if holder is not None and not facts.is_place(holder) and self._holds(holder):
                    return YES
        return NO

    def _holds(self, holder: Any) -> bool:
        contents = facts.contents(holder)
        return len(contents) == len(self.names) and all(
            thing.name in self.names or facts.shown_name(thing) in self.names for thing in contents
        )


@dataclass(frozen=True, slots=True)
class Holds(Goal):
    """Something called ``holder`` in the room directly contains something called ``name``."""

    holder: str
    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for holder in look.sight.by_name.get(self.holder, ()):
            for thing in facts.contents(holder):
                if self.name in (thing.name, facts.shown_name(thing)):
                    return YES
        return NO


@dataclass(frozen=True, slots=True)
class Running(Goal):
    """A device called ``name`` in the room is on, or off where ``on`` is false."""

    name: str
    on: bool = True

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.sight.by_name.get(self.name, ()):
            if facts.is_device(thing) and facts.is_active(thing) is self.on:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Burns(Goal):
    """Something called ``name`` in the room burns."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.sight.by_name.get(self.name, ()):
            if facts.is_burning(thing):
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Opened(Goal):
    """A container called ``name`` in the room is open."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.sight.by_name.get(self.name, ()):
            if facts.is_open_container(thing):
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Inside(Goal):
    """The object in focus is somewhere inside something called ``holder``."""

    holder: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.focus is None or not look.same_object():
            return NO
        for depth, holder in enumerate(facts.containers(look.focus)):
            if depth >= _MAX_DEPTH:
                break
            if holder.name.lower() == self.holder:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Changed(Goal):
    """The object in focus is warmer by ``by`` degrees than when it was first looked at.

    A negative number means colder. The first temperature is that of whatever was in focus then.
    """

    by: float

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        temperature = None if look.focus is None else facts.temperature(look.focus)
        if temperature is None:
            return NO
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
        return YES if look.sight.place == self.place else NO


@dataclass(frozen=True, slots=True)
class NewRoom(Goal):
    """The agent is in another room than when it was first looked at, or in ``unless``."""

    unless: str = ""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        place = look.sight.place
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
        return YES if look.sight.near_open_door() else NO


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
        memory[slot] = (memory[slot] or 0) + 1 if look.sight.place == self.place else 0
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

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.sight.by_name.get(self.name.lower(), ()):
            terminal = facts.first_terminal(thing)
            if terminal is not None and not self.first:
                terminal = facts.other_terminal(thing, terminal)
            if any(facts.is_wire(facts.owner(end)) for end in facts.wired_to(terminal)):
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Joins(Goal):
    """One wire in the room touches both ends: each is a name, "any source" or "any bulb"."""

    one: str
    other: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.sight.objects:
            if facts.is_wire(thing):
                touched = facts.touched_by(thing)
                if any(_is(self.one, part) for part in touched) and any(
                    _is(self.other, part) for part in touched
                ):
                    return YES
        return NO


def _is(wanted: str, part: Any) -> bool:
    if wanted == "any source":
        return facts.is_generator(part)
    if wanted == "any bulb":
        return facts.is_light_bulb(part)
    return wanted.lower() in (part.name.lower(), facts.shown_name(part).lower())


@dataclass(frozen=True, slots=True)
class Plants(Goal):
    """At least ``least`` plants of a species in a stage are in the room."""

    species: str
    stage: str
    least: int

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        found = 0
        for thing in look.sight.objects:
            if facts.species(thing) == self.species and facts.stage(thing) == self.stage:
                found += 1
        return YES if found >= self.least else NO
