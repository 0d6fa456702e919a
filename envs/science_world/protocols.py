"""What the world needs of a generator of random numbers and of a task's goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .world import World


class Random(Protocol):
    """The part of a generator of random numbers that play draws from."""

    state: int

    def next_int(self, bound: int) -> int:
        """Uniform over 0 to ``bound`` - 1."""
        ...


class Goals(Protocol):
    """What a task keeps in the world: its goals and how far they have come."""

    @property
    def completed(self) -> bool:
        """Whether the task is done."""
        ...

    @property
    def failed(self) -> bool:
        """Whether the task is failed."""
        ...

    @property
    def points(self) -> int:
        """The score, 0 to 100, or -100 after a failure."""
        ...

    def fork(self) -> Goals:
        """An independent copy."""
        ...

    def digest(self) -> str:
        """Text that names the progress."""
        ...

    def check(self, world: World) -> None:
        """One pass of the goal checker."""
        ...

    def note(self, world: World, deed: str, thing: int, patient: int = ...) -> None:
        """Remember that the agent used, read or looked at something."""
        ...

    def reset(self) -> None:
        """Start the goals anew."""
        ...
