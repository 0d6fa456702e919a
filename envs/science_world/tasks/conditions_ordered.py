"""Conditions of ordered goals: all are asked about the object in focus."""

from __future__ import annotations

from dataclasses import dataclass

from ..records import Slope
from ..world import World, other_terminal, terminal, terminal_owner
from .goal import FAIL, NO, YES, Look, OrderedGoal

_MAX_HOPS = 10
_NO_TERMINAL = -1


@dataclass(frozen=True, slots=True)
class Find(OrderedGoal):
    """Focus on an object called ``name``; another object fails the task."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if look.world.name[look.focus].lower() == self.name.lower() else FAIL

    def on_terminal(self) -> int:
        """See :class:`OrderedGoal`."""
        return FAIL


@dataclass(frozen=True, slots=True)
class FindBox(OrderedGoal):
    """Focus on the answer box called ``name``; another box fails, other objects do nothing."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if "answer" not in look.world.kind[look.focus].tags:
            return NO
        return YES if look.world.name[look.focus] == self.name else FAIL


@dataclass(frozen=True, slots=True)
class FindStage(OrderedGoal):
    """Focus on a living thing of a species in a stage of its life."""

    species: str
    stage: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world, focus = look.world, look.focus
        if world.kind[focus].species == self.species and world.stage(focus) == self.stage:
            return YES
        return FAIL

    def on_terminal(self) -> int:
        """See :class:`OrderedGoal`."""
        return FAIL


@dataclass(frozen=True, slots=True)
class FindPlane(OrderedGoal):
    """Focus on the inclined plane with a surface, or where ``by_letter`` with a letter."""

    name: str
    by_letter: bool = False

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        slope = look.world.note[look.focus]
        if not isinstance(slope, Slope):
            return FAIL
        return YES if (slope.letter if self.by_letter else slope.surface) == self.name else FAIL

    def on_terminal(self) -> int:
        """See :class:`OrderedGoal`."""
        return FAIL


@dataclass(frozen=True, slots=True)
class FindKind(OrderedGoal):
    """Focus on something "living", "plant", "animal", or "dead" (movable and not alive)."""

    kind: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        kind = look.world.kind[look.focus]
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
        world, focus = look.world, look.focus
        if world.material[focus] is None or not look.same_object():
            return NO
        if world.state[focus] == self.state:
            return YES
        return YES if self.burning_counts and world.burning[focus] else NO


@dataclass(frozen=True, slots=True)
class AnyState(OrderedGoal):
    """The object has a state of matter, which is remembered."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.world.material[look.focus] is None or not look.same_object():
            return NO
        look.progress.state = look.world.state[look.focus]
        return YES


@dataclass(frozen=True, slots=True)
class OtherState(OrderedGoal):
    """The object's state of matter is another one than the one remembered."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if look.world.material[look.focus] is None or not look.same_object():
            return NO
        return YES if look.world.state[look.focus] != look.progress.state else NO


@dataclass(frozen=True, slots=True)
class BoxByTemperature(OrderedGoal):
    """The object lies in the box that its temperature tells; in the other box the task fails."""

    threshold: float
    above: str
    below: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world, focus = look.world, look.focus
        box = world.parent[focus]
        if world.material[focus] is None or box < 0 or not look.same_object():
            return NO
        if world.name[box] == self.above:
            return YES if world.heat[focus] >= self.threshold else FAIL
        if world.name[box] == self.below:
            return YES if world.heat[focus] <= self.threshold else FAIL
        return NO


@dataclass(frozen=True, slots=True)
class Powered(OrderedGoal):
    """The part called ``name`` is on."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        world, focus = look.world, look.focus
        is_device = bool(world.kind[focus].device)
        return YES if is_device and world.name[focus] == self.name and world.on[focus] else NO


@dataclass(frozen=True, slots=True)
class PoweredBy(OrderedGoal):
    """The part's cathode leads to the source called ``source``; else the task fails."""

    source: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not look.same_object():
            return NO
        anode = terminal(look.focus, 0)
        return YES if _leads_to(look.world, anode, self.source, _MAX_HOPS) else FAIL


def _leads_to(world: World, entered: int, name: str, hops: int) -> bool:
    """Whether the way from a part entered at a terminal reaches a part called ``name``."""
    if hops <= 0:
        return False
    reached = world.wires.get(other_terminal(entered), _NO_TERMINAL)
    if reached == _NO_TERMINAL:
        return False
    found = world.name[terminal_owner(reached)] == name
    return found or _leads_to(world, reached, name, hops - 1)


@dataclass(frozen=True, slots=True)
class PutInto(OrderedGoal):
    """The object is somewhere inside ``box``; inside the ``wrong`` box the task fails."""

    box: str
    wrong: str = ""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not look.same_object():
            return NO
        around = [look.world.name[holder] for holder in look.world.holders(look.focus)]
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
        world, focus = look.world, look.focus
        if not look.same_object() or world.kind[focus].species != self.species:
            return NO
        return YES if world.stage(focus) == self.stage else NO
