"""The learner's side of an engine whose rollout actors sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from ...agents.engines.base import Completion, EngineStats, Request
from ...agents.engines.hand_over.learner_processes import LearnerProcesses
from ...envs.core.errors import EpisodeError
from ..core.forest import Group
from ..core.protocols import Rollout, Start
from ..rollouts import EpisodeRunner
from ..runs.process_group import Channel
from .pool import ActorPool
from .work import PlayedGroup, Work, pack_weights


class RemoteEngine:
    """Sends weights to the actors and adds up their engines' statistics.

    Where several processes share the learner, the first one has the actors: it sends the weights
    that all of them gather, and all get the groups that its actors play.

    Args:
        pool: The actors; None in a process that is not the first.
        ranks: The learner's processes.
    """

    def __init__(self, pool: ActorPool | None, ranks: Channel | None = None) -> None:
        self.pool = pool
        ranks = ranks or Channel()
        share = None if ranks.world_size == 1 else ranks.from_first
        self.processes = LearnerProcesses(ranks.rank == 0, share)
        limits = self.processes.agreed(lambda: _own(pool).limits())
        self.max_context, self.vocabulary = limits
        self.version = 0
        self.stats = EngineStats()

    @property
    def shares_weights(self) -> bool:
        """False: the actors have copies."""
        return False

    def sync(self, model: Any, version: int | None = None) -> None:
        """Send the learner's present weights to all actors."""
        self.version = self.version + 1 if version is None else version
        packed = pack_weights(model, keep=self.pool is not None)
        if self.pool is not None:
            self.pool.take(self.version, packed)

    def rest(self) -> None:
        """Do nothing: the actors free their own engines."""

    def release(self, cache: int | None) -> None:
        """Do nothing: no cache handles are given out here."""

    async def generate(self, request: Request) -> Completion:  # noqa: ARG002 - the protocol's
        """Refuse: actions are sampled by the actors.

        Raises:
            EpisodeError: Always: whole groups are played by the actors.
        """
        raise EpisodeError(
            "RemoteEngine: single actions are sampled inside the rollout actors only; play groups "
            "through RemoteRunner.groups."
        )

    def make_runner(self, eval_set: str, env: gym.Env[Any, Any], *given: Any) -> RemoteRunner:
        """Return a runner whose groups the actors play."""
        return RemoteRunner(eval_set, self, env, *given)

    def count(self, stats: EngineStats) -> None:
        """Add what an actor counted."""
        self.stats = EngineStats(
            prompt_tokens=self.stats.prompt_tokens + stats.prompt_tokens,
            cached_tokens=self.stats.cached_tokens + stats.cached_tokens,
            sampled_tokens=self.stats.sampled_tokens + stats.sampled_tokens,
        )


class RemoteRunner(EpisodeRunner):
    """An episode runner whose groups are played by the actors.

    Args:
        scene: Name of the evaluation set; empty for the training environment.
        engine: The learner's side of the actors.
        given: What :class:`~turngym.algos.rollouts.EpisodeRunner` takes, the engine left out.
    """

    def __init__(self, scene: str, engine: RemoteEngine, env: Any, *given: Any) -> None:
        super().__init__(env, engine, *given)
        self.scene = scene
        self.remote = engine

    async def groups(
        self, rollout: Rollout, starts: Sequence[Start], tick: Callable[[], None] = lambda: None
    ) -> list[Group]:
        """Return one group per start."""
        works = [Work(self.scene, rollout, start, self.remote.version) for start in starts]
        played: list[PlayedGroup] = []
        fault: Exception | None = None
        if self.remote.pool is not None:
            try:
                played = await self.remote.pool.play(works, tick)
            except Exception as raised:  # noqa: BLE001 - the other processes wait for an answer
                fault = raised

        def outcome() -> list[PlayedGroup]:
            if fault is not None:
                raise fault
            return played

        answers = self.remote.processes.agreed(outcome)
        for answer in answers:
            self.remote.count(answer.stats)
        self.fault = next((a.fault for a in answers if a.fault), self.fault)
        return [answer.group for answer in answers]


def _own(pool: ActorPool | None) -> ActorPool:
    assert pool is not None, "the first process has the actors"
    return pool
