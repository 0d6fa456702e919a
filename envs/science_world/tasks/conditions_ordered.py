"""Conditions of ordered goals: all are asked about the object in focus."""

from __future__ import annotations

from dataclasses import dataclass

from . import facts
from .goal import FAIL, NO, YES, Look, OrderedGoal

_MAX_DEPTH = 20
_MAX_HOPS = 10


@dataclass(frozen=True, slots=True)
class Find(OrderedGoal):
    """Focus on an object called ``name``; another object fails the task."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if look.focus.name.lower() == self.name.lower() else FAIL


@dataclass(frozen=True, slots=True)
class FindBox(OrderedGoal):
    """Focus on the answer box called ``name``; another box fails, other objects do nothing."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not facts.is_answer_box(look.focus):
            return NO
        return YES if look.focus.name == self.name else FAIL


@dataclass(frozen=True, slots=True)
class FindStage(OrderedGoal):
    """Focus on a living thing of a species in a stage of its life."""

    species: str
    stage: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if facts.species(look.focus) == self.species and facts.stage(look.focus) == self.stage:
            return YES
        return FAIL


@dataclass(frozen=True, slots=True)
class FindPlane(OrderedGoal):
    """Focus on the inclined plane with a surface, or where ``by_letter`` with a letter."""

    name: str
    by_letter: bool = False

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        letter, surface = facts.plane(look.focus) or ("", "")
        return YES if (letter if self.by_letter else surface) == self.name else FAIL


@dataclass(frozen=True, slots=True)
class FindKind(OrderedGoal):
    """Focus on something "living", "plant", "animal", or "dead" (movable and not alive)."""

    kind: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        focus = look.focus
        if self.kind == "dead":
            if facts.is_living(focus):
                return FAIL
            return YES if facts.is_movable(focus) else NO
        return YES if _KINDS[self.kind](focus) else FAIL


_KINDS = {
    "living": facts.is_living,
    "plant": facts.is_plant,
    "animal": facts.is_animal,
}


@dataclass(frozen=True, slots=True)
class InState(OrderedGoal):
    """The object is solid, liquid or gas; where ``burning_counts``, burning will do as well."""

    state: str
    burning_counts: bool = False

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        state = facts.state_of_matter(look.focus)
        if not state or not look.same_object():
            return NO
        return YES if state == self.state or self._burns(look) else NO

    def _burns(self, look: Look) -> bool:
        return self.burning_counts and facts.is_burning(look.focus)


@dataclass(frozen=True, slots=True)
class AnyState(OrderedGoal):
    """The object has a state of matter, which is remembered."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        state = facts.state_of_matter(look.focus)
        if not state or not look.same_object():
            return NO
        look.progress.state = state
        return YES


@dataclass(frozen=True, slots=True)
class OtherState(OrderedGoal):
    """The object's state of matter is another one than the one remembered."""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        state = facts.state_of_matter(look.focus)
        if not state or not look.same_object():
            return NO
        return YES if state != look.progress.state else NO


@dataclass(frozen=True, slots=True)
class BoxByTemperature(OrderedGoal):
    """The object lies in the box that its temperature tells; in the other box the task fails."""

    threshold: float
    above: str
    below: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        temperature = facts.temperature(look.focus)
        box = look.focus.container
        if temperature is None or box is None or not look.same_object():
            return NO
        if box.name == self.above:
            return YES if temperature >= self.threshold else FAIL
        if box.name == self.below:
            return YES if temperature <= self.threshold else FAIL
        return NO


@dataclass(frozen=True, slots=True)
class Powered(OrderedGoal):
    """The part called ``name`` is on."""

    name: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        return YES if look.focus.name == self.name and facts.is_active(look.focus) else NO


@dataclass(frozen=True, slots=True)
class PoweredBy(OrderedGoal):
    """The part's cathode leads to the source called ``source``; else the task fails."""

    source: str

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not look.same_object():
            return NO
        first = facts.first_terminal(look.focus)
        if first is None:
            return FAIL
        return YES if _leads_to(look.focus, first, self.source, _MAX_HOPS) else FAIL


def _leads_to(part: object, entered: object, name: str, hops: int) -> bool:
    """Whether a walk that entered ``part`` at a terminal reaches a part called ``name``."""
    if hops <= 0:
        return False
    reached = facts.wired_to(facts.other_terminal(part, entered))
    if any(facts.owner(terminal).name == name for terminal in reached):
        return True
    return any(
        _leads_to(facts.owner(terminal), terminal, name, hops - 1) for terminal in reached
    )


@dataclass(frozen=True, slots=True)
class PutInto(OrderedGoal):
    """The object is somewhere inside ``box``; inside the ``wrong`` box the task fails."""

    box: str
    wrong: str = ""

    def check(self, look: Look) -> int:
        """See :class:`Goal`."""
        if not look.same_object():
            return NO
        around = [container.name.lower() for container in facts.containers(look.focus)]
        around = around[:_MAX_DEPTH]
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
        if not look.same_object() or facts.species(look.focus) not in ("", self.species):
            return NO
        return YES if facts.stage(look.focus) == self.stage else NO
