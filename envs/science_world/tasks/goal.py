"""What a goal is: a small frozen value that looks at the world and says yes, no or failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .progress import Progress

NO, YES, FAIL = 0, 1, 2


class Sight(Protocol):
    """What goals ask about the agent's surroundings; see :mod:`.scene`."""

    @property
    def place(self) -> str:
        """Name of the agent's room."""
        ...

    @property
    def objects(self) -> Sequence[Any]:
        """Everything in the room that is not hidden, in closed containers too."""
        ...

    @property
    def by_name(self) -> Mapping[str, Sequence[Any]]:
        """The same by plain and by shown name, in lower case."""
        ...

    def near_open_door(self) -> bool:
        """Whether a door of the room is open."""
        ...


class Look:
    """One look of the checker: the surroundings, the object in focus, the state to write to."""

    __slots__ = ("focus", "progress", "sight", "slot")

    def __init__(self, sight: Sight, progress: Progress) -> None:
        self.sight = sight
        self.progress = progress
        self.focus: Any = None
        self.slot = 0

    def same_object(self) -> bool:
        """Whether the focused object is the one that satisfied the last ordered goal."""
        return self.progress.last in (0, self.focus.id)


@dataclass(frozen=True, slots=True)
class Goal:
    """A condition with its place in the task.

    Attributes:
        text: What the goal's list says.
        key: Name under which other goals wait for this one.
        needs: Keys of the goals that must be done before this one is looked at.
    """

    text: str = field(default="", kw_only=True)
    key: str = field(default="", kw_only=True)
    needs: tuple[str, ...] = field(default=(), kw_only=True)

    def check(self, look: Look) -> int:
        """NO, YES or FAIL; ``look.focus`` is None when the goal is asked without a focus."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class OrderedGoal(Goal):
    """A goal that must be reached in its turn; it is asked about the focused object only.

    Attributes:
        defocus: The focus is cleared when the goal is passed.
    """

    defocus: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Goals:
    """The goals of one variation."""

    ordered: tuple[OrderedGoal, ...]
    optional: tuple[Goal, ...]
