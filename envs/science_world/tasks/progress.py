"""How far a task has come: the part of an episode's state that the goals own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..world import NONE


@dataclass(slots=True)
class Progress:
    """State of a task's goals. The focus itself is the world's.

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
        """An independent copy."""
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
        """What the action "reset task" does; keys and memories stay."""
        self.ordered = 0
        self.optional = [False] * len(self.optional)
        self.failed = False
        self.last = NONE
