"""Proof that a generated task is fair: the scripted assistant solves it, and idleness does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.tasks import Task
from ..shop.tables import Shop
from .payload import RetailTask


class SingleTaskSource:
    """A source of one task, which is exchanged from proof to proof."""

    rules = ""

    def __init__(self, shop: Shop) -> None:
        self.tables = shop
        self.current: Task[RetailTask] | None = None

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of tasks per split."""
        return {"train": 1}

    def task(self, split: str, index: int) -> Task[RetailTask]:  # noqa: ARG002 - there is one
        """Return the task."""
        assert self.current is not None
        return self.current

    def index_of(self, split: str, task_id: str) -> int | None:  # noqa: ARG002 - there is one
        """Return the place of the task."""
        return 0

    def shop(self, name: str) -> Shop:  # noqa: ARG002 - there is one
        """Return the shop."""
        return self.tables


class SolvabilityProof:
    """Plays tasks of one shop.

    Args:
        build_env: Builds the environment that plays the tasks of a source.
        shop: The shop.
        seed: Seed of the episodes.
    """

    def __init__(self, build_env: Callable[[SingleTaskSource], Any], shop: Shop, seed: int) -> None:
        self.source = SingleTaskSource(shop)
        self.env = build_env(self.source)
        self.seed = seed
        self.number = 0

    def __call__(self, task: RetailTask) -> int | None:
        """Return the scripted assistant's turns; None where it fails, or idleness succeeds."""
        self.number += 1
        self.source.current = Task(f"proof/{self.number}", "train", 0, task)
        if self.number % 8 == 0 and self._play(lambda *_: "Okay.") is not None:
            return None
        return self._play(self.env.expert())

    def _play(self, policy: Callable[[Any, str, Any], str]) -> int | None:
        """Return the turns of a policy that solves the task; None for one that does not."""
        env = self.env
        observation, info = env.reset(seed=self.seed, options={"task": 0})
        while info["status"] == "running":
            observation, *_, info = env.step(policy(env, observation, info))
        return env.episode.turn if info["status"] == "solved" else None
