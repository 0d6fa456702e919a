"""What a goal is: a small frozen value that looks at the world and says yes, no or failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..world import NONE, World
from .progress import Progress
from .surroundings import Surroundings

NO, YES, FAIL = 0, 1, 2


class Look:
    """One look of the checker: the world, what is around the agent, the state to write to."""

    __slots__ = ("around", "focus", "progress", "slot", "world")

    def __init__(self, world: World, progress: Progress, wanted: Mapping[str, str]) -> None:
        self.world = world
        self.around = Surroundings(world, wanted)
        self.progress = progress
        self.focus = NONE
        self.slot = 0

    def same_object(self) -> bool:
        """Whether the focused object is the one that satisfied the last ordered goal."""
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
        """NO, YES or FAIL; ``look.focus`` is NONE when the goal is asked without a focus."""

    def seeks(self) -> tuple[str, ...]:
        """Names of things that the goal looks for around the agent."""
        return ()


@dataclass(frozen=True, slots=True)
class OrderedGoal(Goal):
    """A goal that must be reached in its turn; it is asked about the focused object only.

    Attributes:
        defocus: The focus is cleared when the goal is passed.
    """

    defocus: bool = field(default=False, kw_only=True)

    def on_terminal(self) -> int:
        """The verdict when the focus is on a terminal of something: no task asks for one."""
        return NO


@dataclass(frozen=True, slots=True)
class Goals:
    """The goals of one variation."""

    ordered: tuple[OrderedGoal, ...]
    optional: tuple[Goal, ...]

    def wanted(self) -> dict[str, str]:
        """Names that optional goals look for, to the name in lower case.

        Things of the world have names in lower case or exactly as goals spell them.
        """
        names = [name for goal in self.optional for name in goal.seeks()]
        return {name.lower(): name.lower() for name in names} | {
            name: name.lower() for name in names
        }
