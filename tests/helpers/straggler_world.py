"""A toy world whose tasks take different numbers of turns: some groups are done early."""

from __future__ import annotations

from typing import Any

from helpers.letters_world import LetterTasks, LetterWorld

from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.core.tasks import Task


class Stragglers(TextEnv[LetterWorld, str]):
    """Task ``i`` takes ``1 + i % 4`` turns; each turn earns the share of vowels in the action."""

    stop = ("!",)

    def __init__(self, *, count: int = 12) -> None:
        super().__init__(source=LetterTasks(count), max_turns=9, reward_range=(0.0, 4.0))

    def begin(self, task: Task[str], random: Any) -> tuple[LetterWorld, str]:
        turns = 1 + task.index % 4
        return LetterWorld(f"{turns}"), f"{task.payload}: "

    def play(self, episode: Episode[LetterWorld], action: str) -> Outcome:
        share = sum(c in "aeiou" for c in action) / max(1, len(action))
        terms = {"vowels": share}
        if episode.turn >= int(episode.state.word):
            return Outcome.failed("done", terms)
        return Outcome.move("\nagain: ", terms)


register_environment(
    EnvironmentSpec(
        id="Stragglers-v0",
        entry_point=f"{__name__}:Stragglers",
        summary="vowels",
        sizes=(),
        hidden=True,
    )
)
