"""Recall-v0: a letter is shown at the start and must be named some turns later.

What it asks for: a context that holds what was seen before the last action. A rollout that renders
only the newest observation, or a learner that cuts paths wrongly, stays at chance here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ..core.env import Episode, GoldAnswer, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter


@dataclass(slots=True)
class Memory:
    """The episode's state: the letter to remember, and the signs that are still to come.

    Every turn uses up a sign, so no state comes twice in an episode.
    """

    letter: str
    noise: str


class Recall(LetterEnv[Memory, str]):
    """Repeat the first letter after a few meaningless signs.

    Args:
        size: ``"micro"`` asks after 2 turns; ``"full"`` after 4, and states the rules.
        delay: Turns between the letter and the question.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``delay`` is out of range.
    """

    letters = "abc"
    has_gold = True
    stop = tuple(letters)

    def __init__(
        self, *, size: str = "micro", delay: int | None = None, render_mode: str | None = None
    ) -> None:
        micro = check_size(size, "Recall")
        wait = (2 if micro else 4) if delay is None else delay
        check_integer("delay", wait, "Recall", min=1, max=6)
        if not micro:
            self.instructions = (
                "Remember the first letter. Signs follow; answer each with any of the letters a, "
                "b, c. At the question mark write the first letter and nothing else.\n"
            )
        signs = "123456789"[: max(2, round(40 ** (1 / wait)))]
        tasks = ["".join(p) for p in product(self.letters, *[signs] * wait)]
        super().__init__(source=ListedTasks(tasks), max_turns=wait + 1, render_mode=render_mode)

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Memory, str]:  # noqa: ARG002
        """Show the letter."""
        letter, noise = task.payload[0], task.payload[1:]
        return Memory(letter, noise), f"{letter}:"

    def play(self, episode: Episode[Memory], action: str) -> Outcome:
        """Accept any letter until the question, where only the first one is right."""
        letter = read_letter(action, self.letters)
        state = episode.state
        if state.noise:
            sign, state.noise = state.noise[0], state.noise[1:]
            if letter is None:
                return Outcome.unreadable(ask_for_letter(self.letters), verdict=-1)
            return Outcome.move(f"\n{sign}{':' if state.noise else ' ?'}", verdict=0)
        if letter == state.letter:
            return Outcome.solved("\n", {"outcome": 1.0}, verdict=1)
        done = Outcome.failed("\n", {"outcome": 0.0}, verdict=-1)
        return done._replace(valid=letter is not None)

    def fork_state(self, state: Memory) -> Memory:
        """Copy the letter and the signs."""
        return Memory(state.letter, state.noise)

    def gold_answers(self, episode: Episode[Memory]) -> tuple[GoldAnswer, ...]:
        """Return the letter, which is the whole answer."""
        return (GoldAnswer("", episode.state.letter),)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that repeats the letter."""
        return LetterExpert(lambda env: env.episode.state.letter, self.letters, mistakes, seed)
