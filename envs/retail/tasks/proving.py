"""A task is proved by playing it: the scripted assistant must solve it, idleness must not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tasks import Task
from ..setup import Knowledge
from ..shop.tables import Shop
from ..shop.toolset import MICRO, toolset
from .payload import RetailTask


class _One:
    """A source of the task under proof."""

    def __init__(self, shop: Shop) -> None:
        self.tables = shop
        self.now: Task[RetailTask] | None = None

    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 1}

    def task(self, split: str, index: int) -> Task[RetailTask]:  # noqa: ARG002 - there is one
        assert self.now is not None
        return self.now

    def index_of(self, split: str, task_id: str) -> int | None:  # noqa: ARG002 - there is one
        return 0

    def shop(self, name: str) -> Shop:  # noqa: ARG002 - there is one
        return self.tables


class Proof:
    """Plays tasks of one shop.

    Args:
        size: ``"full"`` or ``"micro"``.
        world_seed: Seed of the shop.
        shop: The shop.
    """

    def __init__(self, size: str, world_seed: int, shop: Shop) -> None:
        from ..env import Retail

        self.source = _One(shop)
        self.number = 0
        env: Any = object.__new__(Retail)
        tools = toolset("strict", MICRO if size == "micro" else None)
        env.set_up(Knowledge(size=size, source=self.source, tools=tools))
        self.env: Retail = env
        self.seed = world_seed

    def turns(self, task: RetailTask) -> int | None:
        """The scripted assistant's turns; None where it fails, or idleness succeeds."""
        self.number += 1
        self.source.now = Task(f"proof/{self.number}", "train", 0, task)
        env = self.env
        if self.number % 8 == 0 and self._idle():
            return None
        observation, info = env.reset(seed=self.seed, options={"task": 0})
        expert = env.expert()
        for turn in range(1, env.max_turns + 1):
            observation, _, ended, cut, info = env.step(expert(env, observation, info))
            if ended or cut:
                return turn if info["status"] == "solved" else None
        return None

    def _idle(self) -> bool:
        self.env.reset(seed=self.seed, options={"task": 0})
        for _ in range(self.env.max_turns):
            _, _, ended, cut, info = self.env.step("Okay.")
            if ended or cut:
                return info["status"] == "solved"
        return False
