"""Corridor-v0: the first letter decides, and the reward comes many turns later.

What it asks for: credit for a turn long ago, among many turns that change nothing. Recall-v0 asks
for memory, this one does not: all that matters is done in the first turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ..core.env import Episode, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter

MAX_DELAY = 64


@dataclass(slots=True)
class Passage:
    """The episode's state: the right first letter, the one written, and the turns still to go.

    Every turn is a step on, so no state comes twice in an episode; other letters on the way lead
    to the same one.
    """

    right: str
    left: int
    chosen: str | None = None


class Corridor(LetterEnv[Passage, str]):
    """Choose a letter by the sign that is shown, then walk on until the reward comes.

    The first sign names the letter (1 means a); the other signs are noise. The difficulty is
    ``delay``, the turns between the choice and the reward, in which any letter will do.

    Control: ``delay=0``, where the reward comes at once and equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        delay: Further turns, whose letters have no effect.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``delay`` is out of range.
    """

    letters = "abc"
    stop = tuple(letters)

    def __init__(
        self, *, size: str = "micro", delay: int = 8, render_mode: str | None = None
    ) -> None:
        self.delay = check_integer("delay", delay, "Corridor", min=0, max=MAX_DELAY)
        if not check_size(size, "Corridor"):
            self.instructions = (
                "Some signs are shown. The first one alone says which letter is right: 1 means a, "
                f"2 means b, 3 means c. Write it. Then walk on with any {delay} of these letters; "
                "at the end you are told. Write one letter and nothing else.\n"
            )
        tasks = ["".join(signs) for signs in product("123", repeat=5)]
        super().__init__(source=ListedTasks(tasks), max_turns=delay + 1, render_mode=render_mode)

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Passage, str]:  # noqa: ARG002
        """Show the signs."""
        return Passage(self.letters[int(task.payload[0]) - 1], self.delay), f"{task.payload}:"

    def play(self, episode: Episode[Passage], action: str) -> Outcome:
        """Choose, or walk on; an unreadable action is a step too, and no choice."""
        letter, state = read_letter(action, self.letters), episode.state
        verdict = 0
        if state.chosen is None:
            state.chosen = letter or ""
            verdict = 1 if letter == state.right else -1
        else:
            state.left -= 1
        if state.left > 0:
            if letter is None:
                return Outcome.unreadable(ask_for_letter(self.letters), verdict=verdict)
            return Outcome.move("\n:", verdict=verdict)
        right = state.chosen == state.right
        done = Outcome.solved if right else Outcome.failed
        ended = done("\n", {"outcome": float(right)}, verdict=verdict)
        return ended._replace(valid=letter is not None)

    def metrics(self, episode: Episode[Passage]) -> dict[str, float]:
        """Return whether the choice was right."""
        return {"right": float(episode.state.chosen == episode.state.right)}

    def fork_state(self, state: Passage) -> Passage:
        """Copy the passage."""
        return Passage(state.right, state.left, state.chosen)

    def hidden_answers(self, episode: Episode[Passage]) -> tuple[str, ...]:
        """Return the right letter, where the rules do not list the letters."""
        return () if self.instructions else (episode.state.right,)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that writes the right letter in every turn."""
        return LetterExpert(lambda env: env.episode.state.right, self.letters, mistakes, seed)
