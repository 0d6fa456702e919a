"""A toy world that rewards vowels: dense enough for a random model to learn something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.errors import EnvFault
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.core.tasks import Task

WORDS = ("pear", "plum", "fig", "kiwi")


@dataclass(slots=True)
class LetterWorld:
    word: str


class LetterTasks:
    def __init__(self, count: int) -> None:
        self.count = count

    def sizes(self) -> Mapping[str, int | None]:
        return {"train": self.count, "dev": 6, "test": 0}

    def task(self, split: str, index: int) -> Task[str]:
        return Task(f"{split}/{index}", split, index, WORDS[index % len(WORDS)])

    def index_of(self, split: str, task_id: str) -> int | None:
        head, _, tail = task_id.partition("/")
        return int(tail) if head == split and tail.isdigit() else None


class Letters(TextEnv[LetterWorld, str]):
    """Two turns; each earns the share of vowels in the action, 'e' in the second one solves."""

    stop = ("!",)

    def __init__(
        self, *, count: int = 12, max_turns: int = 2, broken: str = "", padding: int = 0
    ) -> None:
        super().__init__(source=LetterTasks(count), max_turns=max_turns, reward_range=(0.0, 2.0))
        self.broken = broken
        self.padding = padding

    def begin(self, task: Task[str], random: Any) -> tuple[LetterWorld, str]:
        return LetterWorld(task.payload), f"{'so ' * self.padding}{task.payload}: "

    def play(self, episode: Episode[LetterWorld], action: str) -> Outcome:
        if self.broken and episode.state.word == self.broken:
            raise EnvFault("the letter counter is broken")
        share = sum(c in "aeiou" for c in action) / max(1, len(action))
        terms = {"vowels": share, "length": 0.0}
        if not action:
            return Outcome.unreadable("\nempty\n", terms)
        if episode.turn == 2:
            done = Outcome.solved if "e" in action else Outcome.failed
            return done("", terms)
        return Outcome.move("\nagain: ", terms)

    def metrics(self, episode: Episode[LetterWorld]) -> Mapping[str, float]:
        return {"hops": float(1 + episode.task.index % 2)}

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Any:
        return lambda env, observation, info: "e!"


register_environment(
    EnvironmentSpec(
        id="Letters-v0",
        entry_point=f"{__name__}:Letters",
        summary="vowels",
        breakdown=("hops",),
        sizes=(),
        hidden=True,
    )
)
