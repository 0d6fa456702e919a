"""Password-v0: letter after letter goes on, and only the end tells how many were right.

What it asks for: credit over several turns that share one late reward. The reward is the share of
right letters, so that a policy that knows nothing earns something to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from ..core.env import Episode, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter

CODE = "bacabcbaccab"
"""The letters that open the doors, door by door: the same in all tasks, never shown."""


@dataclass(slots=True)
class Doors:
    """The episode's state: letters written so far, so that only equal letters lead to it again."""

    written: list[str] = field(default_factory=list)


class Password(LetterEnv[Doors, str]):
    """Open a few doors with a letter each; only the last one reports how many were right.

    Args:
        size: ``"micro"`` has 3 doors; ``"full"`` has 6 and states the rules.
        doors: Another number of doors.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``doors`` is out of range.
    """

    letters = "abc"
    stop = tuple(letters)

    def __init__(
        self, *, size: str = "micro", doors: int | None = None, render_mode: str | None = None
    ) -> None:
        micro = check_size(size, "Password")
        count = (3 if micro else 6) if doors is None else doors
        check_integer("doors", count, "Password", min=1, max=len(CODE))
        self.code = CODE[:count]
        if not micro:
            self.instructions = (
                f"There are {count} doors. Each takes one letter (a, b or c); the password is "
                "always the same. After the last door you are told how many letters were right. "
                "Write one letter and nothing else.\n"
            )
        tasks = ["".join(signs) for signs in product("123", repeat=5)]
        super().__init__(source=ListedTasks(tasks), max_turns=count, render_mode=render_mode)

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Doors, str]:  # noqa: ARG002
        """Return the first door; the signs over it are noise."""
        return Doors(), f"{task.payload}:"

    def play(self, episode: Episode[Doors], action: str) -> Outcome:
        """Write a letter; one that cannot be read counts as a wrong one."""
        letter = read_letter(action, self.letters)
        state = episode.state
        right = self.code[len(state.written)]
        state.written.append(letter or "")
        verdict = 1 if letter == right else -1
        if len(state.written) < len(self.code):
            if letter is None:
                return Outcome.unreadable(ask_for_letter(self.letters), verdict=verdict)
            return Outcome.move("\nnext:", verdict=verdict)
        share = self.share(episode)
        done = Outcome.solved if share == 1.0 else Outcome.failed
        return done("\n", {"outcome": share}, verdict=verdict)._replace(valid=letter is not None)

    def share(self, episode: Episode[Doors]) -> float:
        """Return the share of right letters."""
        hits = sum(a == b for a, b in zip(self.code, episode.state.written, strict=False))
        return hits / len(self.code)

    def metrics(self, episode: Episode[Doors]) -> dict[str, float]:
        """Return the share of right letters."""
        return {"right": self.share(episode)}

    def fork_state(self, state: Doors) -> Doors:
        """Copy the letters."""
        return Doors(list(state.written))

    def hidden_answers(self, episode: Episode[Doors]) -> tuple[str, ...]:  # noqa: ARG002
        """Return the password."""
        return (self.code,)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that knows the password."""
        return LetterExpert(
            lambda env: self.code[len(env.episode.state.written)], self.letters, mistakes, seed
        )
