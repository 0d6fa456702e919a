"""Fork-v0: a free walk into one of many rooms, and one good door in each.

What it is for: counting and testing forks. Two chains of a small group almost never meet in the
same room, while a tree that goes on from a room twice shows a good and a bad door of it. That gives
trees no advantage: all rooms are worth the same, so that the mean over the prompt is as good a
baseline as the mean over the room's branches. Where the way into a room matters, and trees gain by
comparing behind it, is Lottery-v0.

The good door is the letter after the last one walked, so that four associations are learned one by
one. (Before, it followed from the sum of all letters, which nobody learns in part.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ..core.env import Episode, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter


@dataclass(slots=True)
class Walk:
    """The episode's state: the letters walked."""

    steps: str = ""


class Fork(LetterEnv[Walk, str]):
    """Walk a few letters, any of them, then choose a door.

    Args:
        size: ``"micro"`` walks 3 letters; ``"full"`` 5, and states the rules.
        walk: Letters before the door; there are ``4 ** walk`` rooms.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``walk`` is out of range.
    """

    letters = "abcd"
    stop = tuple(letters)

    def __init__(
        self, *, size: str = "micro", walk: int | None = None, render_mode: str | None = None
    ) -> None:
        micro = check_size(size, "Fork")
        self.walk = (3 if micro else 5) if walk is None else walk
        check_integer("walk", self.walk, "Fork", min=1, max=8)
        if not micro:
            self.instructions = (
                f"Walk {self.walk} steps; every step is one of the letters a, b, c, d. Then choose "
                "a door by its letter. Which door is good depends on the last step. Write one "
                "letter and nothing else.\n"
            )
        tasks = ["".join(signs) for signs in product("12345", repeat=3)]
        super().__init__(
            source=ListedTasks(tasks), max_turns=self.walk + 1, render_mode=render_mode
        )

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Walk, str]:  # noqa: ARG002
        """Return the start; the signs on the entrance are noise."""
        return Walk(), f"{task.payload}:"

    def play(self, episode: Episode[Walk], action: str) -> Outcome:
        """Walk on, or choose a door at the end of the walk."""
        letter = read_letter(action, self.letters)
        state = episode.state
        if len(state.steps) < self.walk:
            if letter is None:
                return Outcome.unreadable(ask_for_letter(self.letters), verdict=-1)
            state.steps += letter
            return Outcome.move("\ndoor:" if len(state.steps) == self.walk else "\n:", verdict=0)
        if letter == self.good_door(state):
            return Outcome.solved("\n", {"outcome": 1.0}, verdict=1)
        done = Outcome.failed("\n", {"outcome": 0.0}, verdict=-1)
        return done._replace(valid=letter is not None)

    def good_door(self, state: Walk) -> str:
        """Return the good door of a walk's room: the letter after the last one walked."""
        return self.letters[(self.letters.index(state.steps[-1]) + 1) % len(self.letters)]

    def at_door(self, state: Walk) -> bool:
        """Return whether the next letter decides."""
        return len(state.steps) == self.walk

    def fork_state(self, state: Walk) -> Walk:
        """Copy the walk."""
        return Walk(state.steps)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that walks anywhere and knows the door."""
        return LetterExpert(self._best, self.letters, mistakes, seed)

    def _best(self, env: Fork) -> str:
        state = env.episode.state
        return self.good_door(state) if self.at_door(state) else self.letters[0]
