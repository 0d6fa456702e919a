"""The state of an episode of Game24."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .arithmetic import write_numbers


@dataclass(slots=True)
class Game24State:
    """The episode's state: the numbers that are left, and counts of what was tried."""

    left: tuple[Fraction, ...]
    steps: int = 0
    refused: int = 0
    answered: bool = False

    def digest(self) -> str:
        """Text that names the state."""
        return f"{write_numbers(self.left)}|{self.steps}|{self.refused}|{self.answered}"
