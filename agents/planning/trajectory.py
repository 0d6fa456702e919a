"""Trajectories: an instruction, and what was done and seen after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Move(NamedTuple):
    """One turn: the action, and the observation that answered it."""

    action: str
    observation: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What a reward model scores.

    Attributes:
        instruction: What was to be done: the environment's first prompt, or words found in
            hindsight.
        moves: Actions with the observations that answered them.
    """

    instruction: str
    moves: tuple[Move, ...]

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions alone; played from the same start they give the same trajectory."""
        return tuple(move.action for move in self.moves)

    @property
    def chars(self) -> int:
        """Characters of all moves."""
        return sum(len(move.action) + len(move.observation) for move in self.moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A trajectory that was played, and how the environment judged it.

    Attributes:
        trajectory: What happened.
        status: The environment's status after the last move; ``running`` for one that was cut.
        total: Sum of the rewards. Planners never look at it.
        metrics: The environment's metrics at the end.
        invalid: Actions that the environment could not read.
    """

    trajectory: Trajectory
    status: str
    total: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    invalid: int = 0

    @property
    def over(self) -> bool:
        """Whether the environment has nothing more to answer."""
        return self.status != "running"
