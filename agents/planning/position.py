"""A place in an episode that can be resumed, once or several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym

from ...envs.core.batched_calls import call_env
from ...envs.core.errors import EnvFault, EpisodeError
from ...envs.core.fork import fork
from ..scripted import text_env
from .trajectory import Attempt, Move, Trajectory


@dataclass(frozen=True, slots=True)
class Position:
    """A running or finished episode.

    Attributes:
        env: The environment at this place; whoever steps it owns it (see :meth:`step`).
        first: The first observation.
        moves: What was done since.
        info: What the environment reported last.
        total: Sum of the rewards.
        over: Whether the episode has ended.
        invalid: Actions that could not be read.
        memory: What the actor keeps of the dialogue so far; None before its first action.
        note: A plan from earlier attempts that is shown before the task.
    """

    env: gym.Env[Any, Any]
    first: str
    moves: tuple[Move, ...]
    info: Mapping[str, Any]
    total: float = 0.0
    over: bool = False
    invalid: int = 0
    memory: Any = None
    note: str = ""

    @classmethod
    def of(cls, env: gym.Env[Any, Any]) -> Position:
        """Return the place where ``env`` is: a running episode, just begun.

        Raises:
            EpisodeError: No episode, or one that was played already.
        """
        inner = text_env(env)
        episode = inner.episode
        if episode.turn or episode.status != "running":
            raise EpisodeError(
                f"planner: {inner.name} is at turn {episode.turn} (status {episode.status!r}); "
                "expected a new episode: call reset first."
            )
        return cls(env, episode.observation, (), episode.info({}, {}))

    @property
    def observation(self) -> str:
        """The latest observation."""
        return self.moves[-1].observation if self.moves else self.first

    @property
    def instructions(self) -> str:
        """The rules of the environment."""
        return text_env(self.env).instructions

    @property
    def attempt(self) -> Attempt:
        """The trajectory up to here, under the environment's own first prompt."""
        return Attempt(
            trajectory=Trajectory(self.instructions + self.first, self.moves),
            status=str(self.info["status"]),
            total=self.total,
            metrics=dict(self.info["metrics"]),
            invalid=self.invalid,
        )

    def fork(self) -> Position:
        """Return the same place with an environment of its own."""
        return replace(self, env=fork(self.env))

    async def step(self, action: str, memory: Any = None) -> Position:
        """Act; this position's environment moves on, so that the position is used up.

        Raises:
            EnvFault: The environment broke.
        """
        observation, reward, terminated, truncated, info = await call_env(
            self.env, lambda: self.env.step(action)
        )
        if info["status"] == "env_error":
            raise EnvFault(observation)
        return replace(
            self,
            moves=(*self.moves, Move(action, observation)),
            info=info,
            total=self.total + float(reward),
            over=bool(terminated or truncated),
            invalid=self.invalid + (not info["valid_action"]),
            memory=memory,
        )
