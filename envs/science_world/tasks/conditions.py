"""The conditions that goals ask for: of the object in focus, or of the agent's room."""

from __future__ import annotations

from dataclasses import dataclass

from ..house.state import NONE, HouseState, get_other_terminal, get_terminal, get_terminal_owner
from ..objects.records import Slope
from ..text.names import write_full_name
from .checker import FAIL, NO, YES, Goal, Look, OrderedGoal

_MAX_HOPS = 10


@dataclass(frozen=True, slots=True)
class FocusGoal(OrderedGoal):
    """A goal to focus on a certain object; a terminal in its stead fails the task."""

    def on_terminal(self) -> int:
        """See :class:`OrderedGoal`."""
        return FAIL


@dataclass(frozen=True, slots=True)
class Find(FocusGoal):
    """Focus on an object called ``name``; another object fails the task."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if look.house.name[look.focus].lower() == self.name.lower() else FAIL


@dataclass(frozen=True, slots=True)
class FindBox(OrderedGoal):
    """Focus on the answer box called ``name``; another box fails, other objects do nothing."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if "answer" not in look.house.kind[look.focus].tags:
            return NO
        return YES if look.house.name[look.focus] == self.name else FAIL


@dataclass(frozen=True, slots=True)
class FindStage(FocusGoal):
    """Focus on a living thing of a species in a stage of its life."""

    species: str
    stage: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house, focus = look.house, look.focus
        if house.kind[focus].species == self.species and house.get_stage(focus) == self.stage:
            return YES
        return FAIL


@dataclass(frozen=True, slots=True)
class FindPlane(FocusGoal):
    """Focus on the inclined plane with a surface, or where ``by_letter`` with a letter."""

    name: str
    by_letter: bool = False

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        slope = look.house.note[look.focus]
        if not isinstance(slope, Slope):
            return FAIL
        return YES if (slope.letter if self.by_letter else slope.surface) == self.name else FAIL


@dataclass(frozen=True, slots=True)
class FindKind(OrderedGoal):
    """Focus on something "living", "plant", "animal", or "dead" (movable and not alive)."""

    kind: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        kind = look.house.kind[look.focus]
        if self.kind != "dead":
            return YES if self.kind in kind.tags else FAIL
        if "living" in kind.tags:
            return FAIL
        return YES if kind.movable else NO

    def on_terminal(self) -> int:
        """See :class:`OrderedGoal`."""
        return NO if self.kind == "dead" else FAIL


@dataclass(frozen=True, slots=True)
class InState(OrderedGoal):
    """The object is solid, liquid or gas; where ``burning_counts``, burning will do as well."""

    state: str
    burning_counts: bool = False

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house, focus = look.house, look.focus
        if house.material[focus] is None or not look.same_object():
            return NO
        if house.state[focus] == self.state:
            return YES
        return YES if self.burning_counts and house.burning[focus] else NO


@dataclass(frozen=True, slots=True)
class AnyState(OrderedGoal):
    """The object has a state of matter, which is remembered."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.house.material[look.focus] is None or not look.same_object():
            return NO
        look.progress.state = look.house.state[look.focus]
        return YES


@dataclass(frozen=True, slots=True)
class OtherState(OrderedGoal):
    """The object's state of matter is another one than the one remembered."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.house.material[look.focus] is None or not look.same_object():
            return NO
        return YES if look.house.state[look.focus] != look.progress.state else NO


@dataclass(frozen=True, slots=True)
class BoxByTemperature(OrderedGoal):
    """The object lies in the box that its temperature tells; in the other box the task fails."""

    threshold: float
    above: str
    below: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house, focus = look.house, look.focus
        box = house.parent[focus]
        if house.material[focus] is None or box < 0 or not look.same_object():
            return NO
        if house.name[box] == self.above:
            return YES if house.heat[focus] >= self.threshold else FAIL
        if house.name[box] == self.below:
            return YES if house.heat[focus] <= self.threshold else FAIL
        return NO


@dataclass(frozen=True, slots=True)
class Powered(OrderedGoal):
    """The part called ``name`` is on."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house, focus = look.house, look.focus
        is_device = bool(house.kind[focus].device)
        return YES if is_device and house.name[focus] == self.name and house.on[focus] else NO


@dataclass(frozen=True, slots=True)
class PoweredBy(OrderedGoal):
    """The part's cathode leads to the source called ``source``; else the task fails."""

    source: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not look.same_object():
            return NO
        anode = get_terminal(look.focus, 0)
        return YES if _leads_to(look.house, anode, self.source, _MAX_HOPS) else FAIL


def _leads_to(house: HouseState, entered: int, name: str, hops: int) -> bool:
    """Return whether the way from a part entered at a terminal reaches a part called ``name``."""
    if hops <= 0:
        return False
    reached = house.wires.get(get_other_terminal(entered), NONE)
    if reached == NONE:
        return False
    found = house.name[get_terminal_owner(reached)] == name
    return found or _leads_to(house, reached, name, hops - 1)


@dataclass(frozen=True, slots=True)
class PutInto(OrderedGoal):
    """The object is somewhere inside ``box``; inside the ``wrong`` box the task fails."""

    box: str
    wrong: str = ""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not look.same_object():
            return NO
        around = [look.house.name[holder] for holder in look.house.walk_holders(look.focus)]
        if self.wrong and self.wrong in around:
            return FAIL
        return YES if self.box in around else NO


@dataclass(frozen=True, slots=True)
class Grown(OrderedGoal):
    """The plant of a species is in a stage of its life; always the same plant."""

    species: str
    stage: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house, focus = look.house, look.focus
        if not look.same_object() or house.kind[focus].species != self.species:
            return NO
        return YES if house.get_stage(focus) == self.stage else NO


ANY_SOURCE, ANY_BULB = "any source", "any bulb"


@dataclass(frozen=True, slots=True)
class NamedGoal(Goal):
    """A goal about something called ``name`` in the room."""

    name: str

    def seeks(self) -> tuple[str, ...]:
        """See :class:`Goal`."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class See(NamedGoal):
    """Something called ``name`` is in the room."""

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
        house, by_name = look.house, look.around.by_name
        room = house.get_agent_place()
        for name in self.names:
            for thing in by_name.get(name.lower(), ()):
                holder = house.parent[thing]
                # The room itself is no container that counts.
                if holder != room and self._fills(house, holder):
                    return YES
        return NO

    def _fills(self, house: HouseState, holder: int) -> bool:
        contents = house.kids[holder]
        return len(contents) == len(self.names) and all(
            house.name[thing] in self.names or write_full_name(house, thing) in self.names
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
        house = look.house
        for holder in look.around.by_name.get(self.holder.lower(), ()):
            for thing in house.kids[holder]:
                if self.name in (house.name[thing], write_full_name(house, thing)):
                    return YES
        return NO


@dataclass(frozen=True, slots=True)
class Running(NamedGoal):
    """A device called ``name`` in the room is on, or off where ``on`` is false."""

    on: bool = True

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house = look.house
        for thing in look.around.by_name.get(self.name, ()):
            if house.kind[thing].device and house.on[thing] is self.on:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Burns(NamedGoal):
    """Something called ``name`` in the room burns."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.around.by_name.get(self.name, ()):
            if look.house.burning[thing]:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Opened(NamedGoal):
    """A container called ``name`` in the room is open."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        for thing in look.around.by_name.get(self.name, ()):
            if look.house.kind[thing].box and look.house.open[thing]:
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
        names = look.house.name
        inside = any(names[holder] == self.holder for holder in look.house.walk_holders(look.focus))
        return YES if inside else NO


@dataclass(frozen=True, slots=True)
class Changed(Goal):
    """The object in focus is warmer by ``by`` degrees than when it was first looked at.

    A negative number means colder. The first temperature is that of whatever was in focus then.
    """

    by: float

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.focus == NONE or look.house.material[look.focus] is None:
            return NO
        temperature = look.house.heat[look.focus]
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
class Wired(NamedGoal):
    """A wire touches something called ``name``: at its anode or terminal 1, or at the other."""

    first: bool

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house = look.house
        if not house.wires:
            return NO
        for thing in look.around.by_name.get(self.name.lower(), ()):
            end = house.wires.get(get_terminal(thing, 0 if self.first else 1), NONE)
            if end != NONE and "wire" in house.kind[get_terminal_owner(end)].tags:
                return YES
        return NO


@dataclass(frozen=True, slots=True)
class Joins(Goal):
    """One wire in the room touches both ends: each is a name, "any source" or "any bulb"."""

    one: str
    other: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        house = look.house
        if not house.wires:
            return NO
        for thing in look.around.objects:
            if "wire" in house.kind[thing].tags:
                parts = _find_touched(house, thing)
                if any(_is(self.one, house, part) for part in parts) and any(
                    _is(self.other, house, part) for part in parts
                ):
                    return YES
        return NO


def _find_touched(house: HouseState, wire: int) -> list[int]:
    ends = (house.wires.get(get_terminal(wire, side), NONE) for side in (0, 1))
    return [get_terminal_owner(end) for end in ends if end != NONE]


def _is(wanted: str, house: HouseState, part: int) -> bool:
    if wanted == ANY_SOURCE:
        return "source" in house.kind[part].tags
    if wanted == ANY_BULB:
        return "bulb" in house.kind[part].tags
    return wanted.lower() in (house.name[part].lower(), write_full_name(house, part).lower())


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
