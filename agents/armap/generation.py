"""Pairs without people: players of different strength on the same task, and edited trajectories."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import gymnasium as gym
import numpy as np

from ...envs.api import Policy
from ...envs.errors import BadValueError
from ...envs.forking import fork
from ...envs.randomness import derive_seed
from ...envs.tasks import split_size
from ..scripted import closed, text_env
from .edits import Change, edited, other_action
from .position import Position
from .records import Pair
from .search import Planner, Tools, started
from .trajectory import Attempt

Player = Callable[[gym.Env[Any, Any], int], Awaitable[Attempt]]
"""Plays the episode that an environment has just begun; the number is its seed."""
Instruct = Callable[[Attempt], Awaitable[str]]
"""An instruction for what an attempt did, instead of the world's own first prompt."""
Score = Callable[[Attempt], float]


def policy_player(policy_for: Callable[[int], Policy]) -> Player:
    """A scripted policy as a player, made anew for every episode from its seed."""

    async def play(env: gym.Env[Any, Any], seed: int) -> Attempt:
        policy, here, stop = policy_for(seed), Position.of(env), text_env(env).stop
        while not here.over:
            action = policy(here.env, here.observation, here.info)
            here = await here.step(closed(action, stop))
        return here.attempt

    return play


def planner_player(planner: Planner, tools: Callable[[], Tools]) -> Player:
    """A planner (most often :class:`~turngym.agents.armap.planners.Sampling`) as a player."""

    async def play(env: gym.Env[Any, Any], seed: int) -> Attempt:
        return (await planner.plan(env, tools(), seed)).attempt

    return play


def env_score(attempt: Attempt) -> float:
    """The environment's own score: the sum of the rewards."""
    return attempt.total


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """How pairs are made.

    Attributes:
        tasks: The first so many tasks of the split.
        tries: Attempts of each player per task.
        contrasts: Most pairs per task of two attempts with different scores; those that differ
            least come first.
        edits: Edits tried per task on its best attempt, where that scored above the worst
            possible; one is kept where it scores lower.
        concurrency: Most tasks at a time.
        seed: Of episodes, players and edits.
    """

    tasks: int = 500
    tries: int = 1
    contrasts: int = 1
    edits: int = 1
    concurrency: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"tasks": 1, "tries": 1, "contrasts": 0, "edits": 0, "concurrency": 1, "seed": 0}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise BadValueError(
                    f"pairs: {name} is {getattr(self, name)}; expected {low} or more."
                )
        if not (self.contrasts or self.edits):
            raise BadValueError("pairs: contrasts and edits are both 0; there would be no pair.")


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes pairs.

    Attributes:
        env: Of the tasks; it is only forked.
        players: Who plays. One that samples gives contrasts by itself with ``tries`` above 1.
        settings: How pairs are made.
        instruct: Hindsight instructions; None keeps the world's own first prompt.
        change: How an action is edited.
        score: What the environment makes of an attempt.
    """

    env: gym.Env[Any, Any]
    players: Sequence[Player]
    settings: PairSettings
    instruct: Instruct | None = None
    change: Change = other_action
    score: Score = env_score

    async def pairs(self, split: str, tell: Callable[[int, int], None] | None = None) -> list[Pair]:
        """Pairs from the first tasks of a split; the same settings give the same ones.

        Args:
            split: Of the tasks.
            tell: Called with the tasks done and their number.

        Raises:
            UnknownNameError: There is no such split.
            BadValueError: No players, or no two attempts with different scores.
            EnvFault: The environment broke.
        """
        if not self.players:
            raise BadValueError("pairs: there are no players; expected at least one.")
        world = text_env(self.env)
        size = split_size(world.source, split, world.name)
        tasks = range(self.settings.tasks if size is None else min(size, self.settings.tasks))
        seats = asyncio.Semaphore(self.settings.concurrency)
        done = 0

        async def one(task: int) -> list[Pair]:
            nonlocal done
            async with seats:
                found = await self._of_task(split, task)
            done += 1
            if tell is not None:
                tell(done, len(tasks))
            return found

        found = await asyncio.gather(*(one(task) for task in tasks))
        pairs = [pair for some in found for pair in some]
        if not pairs:
            raise BadValueError(
                f"pairs: all attempts at the {len(tasks)} tasks of split {split!r} scored the "
                "same; add players of another strength, or let one sample several tries."
            )
        return pairs

    async def _of_task(self, split: str, task: int) -> list[Pair]:
        seed = derive_seed(self.settings.seed, task)
        begun = await started(fork(self.env), seed, split, task)
        attempts: list[Attempt] = []
        for number, player in enumerate(self.players):
            for again in range(self.settings.tries):
                attempts.append(await player(fork(begun), derive_seed(seed, number, again)))
        rng = np.random.default_rng([seed, 4])
        found = self._contrasts(attempts, rng) + await self._edits(begun, attempts, rng)
        name = f"{text_env(begun).name}/{text_env(begun).episode.task.id}"
        return [
            await self._pair(f"{name}/{number}", better, worse)
            for number, (better, worse) in enumerate(found)
        ]

    def _contrasts(
        self, attempts: Sequence[Attempt], rng: np.random.Generator
    ) -> list[tuple[Attempt, Attempt]]:
        """Pairs with different scores: those first whose actions are the same for longest.

        The later two trajectories part, the more exactly a reward model has to find the error.
        Equals are drawn by ``rng``; none is taken twice.
        """
        scores = [self.score(attempt) for attempt in attempts]
        unlike = {
            (better.trajectory, worse.trajectory): (better, worse)
            for better, high in zip(attempts, scores, strict=True)
            for worse, low in zip(attempts, scores, strict=True)
            if high > low
        }
        choices = list(unlike.values())
        drawn = sorted(rng.permutation(len(choices)), key=lambda i: -_in_common(*choices[i]))
        return [choices[i] for i in drawn[: self.settings.contrasts]]

    async def _edits(
        self, begun: gym.Env[Any, Any], attempts: Sequence[Attempt], rng: np.random.Generator
    ) -> list[tuple[Attempt, Attempt]]:
        best = max(attempts, key=self.score)
        if self.score(best) <= text_env(begun).reward_range[0]:
            return []
        start = Position.of(begun)
        found: dict[Any, tuple[Attempt, Attempt]] = {}
        for _ in range(self.settings.edits):
            other = await edited(start, best, rng, self.change)
            if other is not None and self.score(other) < self.score(best):
                found.setdefault(other.trajectory, (best, other))
        return list(found.values())

    async def _pair(self, name: str, better: Attempt, worse: Attempt) -> Pair:
        one, other = better.trajectory, worse.trajectory
        if self.instruct is not None:
            said = await self.instruct(better)
            one, other = replace(one, instruction=said), replace(other, instruction=said)
        return Pair(name, one, other)


def _in_common(one: Attempt, other: Attempt) -> int:
    """First actions that two attempts share."""
    pairs = zip(one.trajectory.actions, other.trajectory.actions, strict=False)
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], pairs))
