"""Bandit-v0: one turn; which arm pays depends on the sign that is shown.

The smallest environment in which a policy gradient can be right or wrong: it needs a credit with
the right sign and a loss that moves the right tokens, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ..core.env import Episode, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter


@dataclass(slots=True)
class Machine:
    """The episode's state: the arm that pays."""

    best: str


class Bandit(LetterEnv[Machine, str]):
    """Pull the arm that the first sign names; the other signs are noise.

    Args:
        size: ``"micro"`` has 3 arms; ``"full"`` has 6 and states the rules.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
    """

    def __init__(self, *, size: str = "micro", render_mode: str | None = None) -> None:
        micro = check_size(size, "Bandit")
        self.letters = "abc" if micro else "abcdef"
        self.stop = tuple(self.letters)
        signs = "".join(str(i + 1) for i in range(len(self.letters)))
        if not micro:
            self.instructions = (
                "Some signs are shown. The first one alone says which arm pays: 1 means arm a, "
                f"2 means arm b, and so on. Write the letter of one arm ({', '.join(self.letters)})"
                " and nothing else.\n"
            )
        tasks = ["".join(signs) for signs in product(signs, repeat=5 if micro else 4)]
        super().__init__(source=ListedTasks(tasks), max_turns=1, render_mode=render_mode)

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Machine, str]:  # noqa: ARG002
        """Show the signs."""
        return Machine(self.letters[int(task.payload[0]) - 1]), f"{task.payload}:"

    def play(self, episode: Episode[Machine], action: str) -> Outcome:
        """Pull an arm; an unreadable action has consumed the only turn."""
        arm = read_letter(action, self.letters)
        if arm == episode.state.best:
            return Outcome.solved("\n", {"outcome": 1.0}, verdict=1)
        text = "\n" if arm else ask_for_letter(self.letters)
        done = Outcome.failed(text, {"outcome": 0.0}, verdict=-1)
        return done._replace(valid=arm is not None)

    def fork_state(self, state: Machine) -> Machine:
        """Return the state itself, which never changes."""
        return state

    def hidden_answers(self, episode: Episode[Machine]) -> tuple[str, ...]:
        """Return the arm, where the rules do not list the arms."""
        return () if self.instructions else (episode.state.best,)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that pulls the paying arm."""
        return LetterExpert(lambda env: env.episode.state.best, self.letters, mistakes, seed)
