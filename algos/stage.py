"""Where rollouts are played: in turn with the updates, or ahead of them in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ..agents.engine import EngineStats, TrainingEngine
from .clock import Clock
from .playing import Played

T = TypeVar("T")
Play = Callable[[int], Coroutine[Any, Any, "Rollouts"]]


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """What was played for one step.

    Attributes:
        played: The groups.
        told: A word about environments that broke, or nothing.
        stats: What the engine counted meanwhile.
        seconds: By stage: ``rollout``, and ``sync`` of the weights before it.
    """

    played: Played
    told: str = ""
    stats: EngineStats = field(default_factory=EngineStats)
    seconds: dict[str, float] = field(default_factory=dict)


class Stage(Protocol):
    """Plays the steps in order; the engine is its own while it exists."""

    def take(self, step: int, last: int | None) -> Rollouts:
        """The rollouts of a step; none after step ``last`` are begun."""
        ...

    def hand_over(self, version: int, model: Any) -> None:
        """These are the weights after an update."""
        ...

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something else on the engine, under the newest weights that were handed over."""
        ...

    def ahead(self, *, wait: bool) -> dict[int, Rollouts]:
        """Rollouts by step that no update has taken yet, those that are not ready left out."""
        ...

    def close(self) -> None:
        """Stop what is being played."""
        ...


class InTurn:
    """Plays a step when it is asked for, in the calling thread.

    Args:
        play: Plays a step.
        engine: Samples for it.
    """

    def __init__(self, play: Play, engine: TrainingEngine) -> None:
        self._play = play
        self._engine = engine
        self._loop = asyncio.Runner()
        self._new: tuple[int, Any] | None = None

    def take(self, step: int, last: int | None) -> Rollouts:  # noqa: ARG002 - nothing is begun
        """Hand over the newest weights, then play."""
        clock = Clock()
        self._sync()
        clock.lap("sync")
        done = self._loop.run(self._play(step))
        self._engine.rest()
        clock.lap("rollout")
        done.seconds.update(clock.laps)
        return done

    def hand_over(self, version: int, model: Any) -> None:
        """The engine takes them before it is used again."""
        self._new = version, model

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run it at once."""
        self._sync()
        return self._loop.run(work())

    def ahead(self, *, wait: bool) -> dict[int, Rollouts]:  # noqa: ARG002 - the protocol's
        """Nothing is ever ahead."""
        return {}

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()

    def _sync(self) -> None:
        if self._new is not None:
            version, model = self._new
            self._engine.sync(model, version)
            self._new = None
