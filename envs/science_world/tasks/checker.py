"""Goals and their checker: what a goal is, how far a task has come, and its score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ...core.digest import digest_of
from ..house.state import NONE, TERMINALS, HouseState
from ..text.names import write_full_name


@dataclass(slots=True)
class Progress:
    """State of a task's goals. The focus itself is the house's.

    Attributes:
        ordered: How many ordered goals are done.
        optional: Which optional goals are done.
        failed: The task failed; its score is -1.
        last: The object that satisfied the last ordered goal; NONE when none did.
        state: State of matter that the task's object began in (task 1-4).
        keys: Names of goals done that other goals wait for.
        memory: What each optional goal remembers: a place, a temperature, a count.
        deeds: Uses, readings and looks so far, as tuples of a word and names.
    """

    ordered: int = 0
    optional: list[bool] = field(default_factory=list)
    failed: bool = False
    last: int = NONE
    state: str = ""
    keys: set[str] = field(default_factory=set)
    memory: list[Any] = field(default_factory=list)
    deeds: list[tuple[str, ...]] = field(default_factory=list)

    def fork(self) -> Progress:
        """Return an independent copy."""
        return Progress(
            self.ordered,
            self.optional.copy(),
            self.failed,
            self.last,
            self.state,
            self.keys.copy(),
            self.memory.copy(),
            self.deeds.copy(),
        )

    def restart(self) -> None:
        """Do what the action "reset task" does; keys and memories stay."""
        self.ordered = 0
        self.optional = [False] * len(self.optional)
        self.failed = False
        self.last = NONE


_RENAMED = frozenset(("animal", "bee", "plane"))
"""Ways of naming whose things are shown under another name than their plain one."""


class Surroundings:
    """The agent's room and everything in it that is not hidden, in closed containers too.

    Args:
        house: The house.
        wanted: Names that goals look for, as they may stand on a thing, to the name in lower case.
    """

    def __init__(self, house: HouseState, wanted: Mapping[str, str]) -> None:
        self._house = house
        self._wanted = wanted

    @cached_property
    def place(self) -> str:
        """Name of the agent's room."""
        return self._house.name[self._house.get_agent_place()]

    @cached_property
    def objects(self) -> list[int]:
        """The things in the room at any depth."""
        kids = self._house.kids
        found = list(kids[self._house.get_agent_place()])
        # The list grows while it is read: contents follow their containers.
        for thing in found:
            if kids[thing]:
                found += kids[thing]
        return found

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """The wanted things by their plain and by their shown names, in lower case."""
        house, wanted = self._house, self._wanted
        names, kinds, burning, burnt = house.name, house.kind, house.burning, house.burnt
        found: dict[str, list[int]] = {}
        for thing in self.objects:
            name = names[thing]
            if name in wanted:
                found.setdefault(wanted[name], []).append(thing)
            if burning[thing] or burnt[thing] or kinds[thing].refer in _RENAMED:
                shown = write_full_name(house, thing)
                if shown != name and shown in wanted:
                    found.setdefault(wanted[shown], []).append(thing)
        return found

    @cached_property
    def plants(self) -> Counter[tuple[str, str]]:
        """Numbers of plants by species and stage."""
        house = self._house
        return Counter(
            (house.kind[thing].species, house.get_stage(thing))
            for thing in self.objects
            if house.kind[thing].cycle == "plant"
        )

    def near_open_door(self) -> bool:
        """Return whether a door of the room is open."""
        house = self._house
        return any(
            house.open[portal] and house.kind[portal].key == "door"
            for portal in house.portals[house.get_agent_place()]
        )


NO, YES, FAIL = 0, 1, 2


class Look:
    """One look of the checker: the house, what is around the agent, the state to write to."""

    __slots__ = ("around", "focus", "house", "progress", "slot")

    def __init__(self, house: HouseState, progress: Progress, wanted: Mapping[str, str]) -> None:
        self.house = house
        self.around = Surroundings(house, wanted)
        self.progress = progress
        self.focus = NONE
        self.slot = 0

    def same_object(self) -> bool:
        """Return whether the focused object is the one that satisfied the last ordered goal."""
        return self.progress.last in (NONE, self.focus)


@dataclass(frozen=True, slots=True)
class Goal(ABC):
    """A condition with its place in the task.

    Attributes:
        text: What the list of goals says.
        key: Name under which other goals wait for this one.
        needs: Keys of the goals that must be done before this one is looked at.
    """

    text: str = field(default="", kw_only=True)
    key: str = field(default="", kw_only=True)
    needs: tuple[str, ...] = field(default=(), kw_only=True)

    @abstractmethod
    def check(self, look: Look) -> int:
        """Return NO, YES or FAIL; ``look.focus`` is NONE when the goal is asked without a focus."""

    def seeks(self) -> tuple[str, ...]:
        """Return the names of things that the goal looks for around the agent."""
        return ()


@dataclass(frozen=True, slots=True)
class OrderedGoal(Goal):
    """A goal that must be reached in its turn; it is asked about the focused object only.

    Attributes:
        defocus: The focus is cleared when the goal is passed.
    """

    defocus: bool = field(default=False, kw_only=True)

    def on_terminal(self) -> int:
        """Return the verdict when the focus is on a terminal of something: no task asks for one."""
        return NO


@dataclass(frozen=True, slots=True)
class Goals:
    """The goals of one variation."""

    ordered: tuple[OrderedGoal, ...]
    optional: tuple[Goal, ...]

    def wanted(self) -> dict[str, str]:
        """Return the names that optional goals look for, to the name in lower case.

        Things of the house have names in lower case or exactly as goals spell them.
        """
        names = [name for goal in self.optional for name in goal.seeks()]
        return {name.lower(): name.lower() for name in names} | {
            name: name.lower() for name in names
        }


FULL_SCORE = 100


@dataclass(slots=True)
class TaskState:
    """The goals of an episode and how far they have come; lives in ``HouseState.goals``.

    Attributes:
        task: Id of the task ("1-1").
        variation: Number of the variation.
        goals: What is to be reached.
        progress: What has been reached.
        wanted: Names that goals look for around the agent.
    """

    task: str
    variation: int
    goals: Goals
    progress: Progress
    wanted: Mapping[str, str]

    @classmethod
    def start(cls, task: str, variation: int, goals: Goals) -> TaskState:
        """Return the state before the first check."""
        count = len(goals.optional)
        progress = Progress(optional=[False] * count, memory=[None] * count)
        return cls(task, variation, goals, progress, goals.wanted())

    def fork(self) -> TaskState:
        """Return an independent copy; the goals stay shared."""
        progress = self.progress.fork()
        return TaskState(self.task, self.variation, self.goals, progress, self.wanted)

    def digest(self) -> str:
        """Return text that names the progress; the goals follow from the task."""
        return digest_of(self.progress)

    def state_digest(self) -> str:
        """Return the same for deeds in whatever order, and done once or several times."""
        progress = self.progress
        since = [
            frozenset(progress.deeds[start:]) if isinstance(start, int) else None
            for start in progress.memory
        ]
        return digest_of((replace(progress, deeds=[]), frozenset(progress.deeds), since))

    def check(self, house: HouseState) -> None:
        """Check ordered goals while the focus satisfies them, then optional ones."""
        look = Look(house, self.progress, self.wanted)
        if house.focus >= TERMINALS:
            self._check_terminal()
        elif house.focus != NONE:
            look.focus = house.focus
            self._check_ordered(look)
        self._check_optional(look)

    def note(self, house: HouseState, deed: str, thing: int, patient: int = NONE) -> None:
        """Remember that the agent used, read or looked at something.

        Args:
            house: Where it was done.
            deed: "use", "read" or "look at".
            thing: What was used, read or looked at.
            patient: What a tool was used on.
        """
        name = house.name[thing].lower()
        other = thing if patient == NONE else patient
        self.progress.deeds.append((deed, name, write_full_name(house, other).lower()))

    def reset(self) -> None:
        """Do what the action "reset task" does to the goals."""
        self.progress.restart()

    @property
    def completed(self) -> bool:
        """Whether all ordered goals are done."""
        return self.progress.ordered >= len(self.goals.ordered)

    @property
    def failed(self) -> bool:
        """Whether the task is failed, and its score -1."""
        return self.progress.failed

    @property
    def score(self) -> float:
        """Score from 0 to 1; -1 as long as the task is failed.

        An ordered goal is worth 1/n of n; all optional ones together 1/(n + 1).
        """
        if self.progress.failed:
            return -1.0
        count = len(self.goals.ordered)
        unit = (1 / (count + 1)) / len(self.goals.optional)
        # Added up one by one, as the original does, so that rounding ends in the same integer.
        extra = 0.0
        for done in self.progress.optional:
            if done:
                extra += unit
        return min(self.progress.ordered / count + extra, 1.0)

    @property
    def points(self) -> int:
        """The score as an integer, 0 to 100, or -100."""
        return round(FULL_SCORE * self.score)

    def _check_terminal(self) -> None:
        if not self.completed:
            verdict = self.goals.ordered[self.progress.ordered].on_terminal()
            self.progress.failed = self.progress.failed or verdict == FAIL

    def _check_ordered(self, look: Look) -> None:
        progress, goals = self.progress, self.goals.ordered
        while progress.ordered < len(goals):
            goal = goals[progress.ordered]
            verdict = goal.check(look)
            if verdict != YES:
                progress.failed = progress.failed or verdict == FAIL
                return
            progress.last = look.focus
            progress.ordered += 1
            if goal.key:
                progress.keys.add(goal.key)
            if goal.defocus:
                look.house.focus = look.focus = NONE
                return

    def _check_optional(self, look: Look) -> None:
        progress, focus = self.progress, look.focus
        waiting = [slot for slot, done in enumerate(progress.optional) if not done]
        while waiting:
            left: list[int] = []
            for slot in waiting:
                goal = self.goals.optional[slot]
                look.slot = slot
                if progress.keys.issuperset(goal.needs) and _is_satisfied(goal, look, focus):
                    progress.optional[slot] = True
                    if goal.key:
                        progress.keys.add(goal.key)
                else:
                    left.append(slot)
            if len(left) == len(waiting):
                return
            waiting = left


def _is_satisfied(goal: Goal, look: Look, focus: int) -> bool:
    """Return whether a goal holds when asked without a focus, or else with it."""
    look.focus = NONE
    verdict = goal.check(look)
    if verdict == NO and focus != NONE:
        look.focus = focus
        verdict = goal.check(look)
    return verdict == YES
