"""A chain of turns without effect, with one choice between two ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.core.tasks import Task

RIGHT = "ab"
"""Letters that take the way to the reward; all others take the other one."""


@dataclass(slots=True)
class Way:
    good: bool = False


class Numbers:
    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 50, "dev": 0, "test": 0}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index)

    def index_of(self, split: str, task_id: str) -> int | None:
        return None


class Bifurcation(TextEnv[Way, int]):
    """``length`` turns; the letter at turn ``at`` (from 0) decides.

    Args:
        length: Turns of an episode.
        at: Where the choice is.
        noise: Whether the reward is drawn too, so that transitions are random.
    """

    def __init__(self, length: int = 4, at: int = 2, noise: bool = False) -> None:
        super().__init__(source=Numbers(), max_turns=length)
        self.length, self.at, self.noise = length, at, noise

    def begin(self, task: Task[int], random: Any) -> tuple[Way, str]:
        return Way(), "."

    def play(self, episode: Episode[Way], action: str) -> Outcome:
        way = episode.state
        if episode.turn == self.at + 1:
            way.good = action.strip() != "" and action.strip() in RIGHT
        if episode.turn < self.length:
            return Outcome.move(".")
        lucky = not self.noise or episode.random.generator.random() < 0.8
        done = Outcome.solved if way.good and lucky else Outcome.failed
        return done(".", {"outcome": float(way.good and lucky)})

    def legal_actions(self) -> list[str]:
        return list("abcd")


register_environment(
    EnvironmentSpec(
        id="Bifurcation-v0",
        entry_point=f"{__name__}:Bifurcation",
        summary="one choice",
        sizes=(),
        hidden=True,
    )
)
