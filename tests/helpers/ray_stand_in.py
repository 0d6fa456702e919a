"""Rollout actors and their Ray, in this process and without the package."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from types import SimpleNamespace
from typing import Any

from turngym.agents.engines.base import EngineStats
from turngym.algos.core.forest import Group
from turngym.algos.core.protocols import Start
from turngym.algos.ray.work import PlayedGroup, Work
from turngym.algos.rollouts import Chains


class Fault(Exception):
    """Stands for ray.exceptions.RayError."""


class Death(Fault):
    """Stands for ray.exceptions.RayActorError."""


class Sent:
    """A reference: any event loop may wait for it."""

    def __init__(self, arrive: Callable[[], None]) -> None:
        self.arrive = arrive

    def __await__(self) -> Generator[Any, None, None]:
        yield from asyncio.sleep(0).__await__()
        self.arrive()


class FakeActor:
    """Plays at once, or dies when it is asked for the groups that it was told to die at."""

    def __init__(self, dies_at: set[str], log: list[str]) -> None:
        self.version, self.alive, self.dies_at, self.log = -1, True, dies_at, log
        self.take = SimpleNamespace(remote=self._take)
        self.play = SimpleNamespace(remote=self._play)

    def _take(self, version: int, weights: Any) -> Sent:
        return Sent(partial(setattr, self, "version", version))

    async def _play(self, work: Work) -> PlayedGroup:
        await asyncio.sleep(0)
        if work.start.uid in self.dies_at:
            self.dies_at.discard(work.start.uid)
            self.alive = False
        if not self.alive:
            raise Death("the node is gone")
        assert work.version == self.version
        self.log.append(work.start.uid)
        return PlayedGroup(Group(work.start.uid, "t"), "", EngineStats(sampled_tokens=1))


class TaskError(Fault):
    """Stands for ray.exceptions.RayTaskError."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class FakeRay:
    exceptions = SimpleNamespace(
        RayError=Fault, RayActorError=Death, RayTaskError=TaskError, GetTimeoutError=TimeoutError
    )

    def __init__(self) -> None:
        self.killed: list[Any] = []

    def put(self, value: Any) -> Any:
        return value

    def get(self, value: Any, timeout: float) -> Any:
        return value

    def kill(self, handle: Any) -> None:
        self.killed.append(handle)


def works(n: int, version: int = 0) -> list[Work]:
    return [Work("", Chains(n=1), Start("train", i, i, f"g{i}"), version) for i in range(n)]
