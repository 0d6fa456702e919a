"""Password-v0: letter after letter goes on, and only the end tells how many were right.

What it asks for: credit over several turns that share one late reward. The reward is the share of
right letters, so that a policy that knows nothing earns something to learn from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from ..core.env import Episode, Outcome, Policy, Verdict
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter

CODE = "bacabcbaccab"
"""The letters that open the doors, door by door: the same in all tasks, never shown."""
FREE = "*"
"""Stands in a code where every letter will do."""


@dataclass(slots=True)
class Doors:
    """The episode's state: letters written so far, so that only equal letters lead to it again."""

    written: list[str] = field(default_factory=list)


class CodedDoors(LetterEnv[Doors, str]):
    """A row of doors that take a letter each by a fixed code; the end pays.

    Args:
        code: The right letter of each door, :data:`FREE` where there is none.
        rules: Instructions; empty for none.
        reward_range: See :class:`TextEnv`.
        render_mode: See :class:`TextEnv`.
    """

    letters = "abc"
    stop = tuple(letters)

    def __init__(
        self,
        code: str,
        rules: str,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        render_mode: str | None = None,
    ) -> None:
        self.code, self.instructions = code, rules
        self.doors = len(code) - code.count(FREE)
        super().__init__(
            source=ListedTasks(["".join(signs) for signs in product("123", repeat=5)]),
            max_turns=len(code),
            reward_range=reward_range,
            render_mode=render_mode,
        )

    def pay(self, episode: Episode[Doors]) -> Mapping[str, float]:
        """Return the reward terms of the end."""
        raise NotImplementedError

    def judge(self, right: bool) -> Verdict:
        """Return the verdict on a letter at a door that has a right one."""
        return 1 if right else -1

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Doors, str]:  # noqa: ARG002
        """Return the first door; the signs over it are noise."""
        return Doors(), f"{task.payload}:"

    def play(self, episode: Episode[Doors], action: str) -> Outcome:
        """Write a letter; one that cannot be read counts as a wrong one."""
        letter = read_letter(action, self.letters)
        state = episode.state
        wanted = self.code[len(state.written)]
        state.written.append(letter or "")
        verdict = 0 if wanted == FREE else self.judge(letter == wanted)
        if len(state.written) < len(self.code):
            if letter is None:
                return Outcome.unreadable(ask_for_letter(self.letters), verdict=verdict)
            return Outcome.move("\nnext:", verdict=verdict)
        done = Outcome.solved if self.share(episode) == 1.0 else Outcome.failed
        return done("\n", self.pay(episode), verdict=verdict)._replace(valid=letter is not None)

    def share(self, episode: Episode[Doors]) -> float:
        """Return the share of right letters."""
        hits = sum(a == b for a, b in zip(self.code, episode.state.written, strict=False))
        return hits / self.doors

    def metrics(self, episode: Episode[Doors]) -> dict[str, float]:
        """Return the share of right letters."""
        return {"right": self.share(episode)}

    def fork_state(self, state: Doors) -> Doors:
        """Copy the letters."""
        return Doors(list(state.written))

    def hidden_answers(self, episode: Episode[Doors]) -> tuple[str, ...]:  # noqa: ARG002
        """Return the code; a single letter is no secret that a text could tell."""
        code = self.code.replace(FREE, "")
        return (code,) if len(code) > 1 else ()

    def best_letter(self, episode: Episode[Doors]) -> str:
        """Return the letter that is worth most now."""
        return self.code[len(episode.state.written)]

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that knows the code."""
        return LetterExpert(lambda env: env.best_letter(env.episode), self.letters, mistakes, seed)


class Password(CodedDoors):
    """Open a few doors with a letter each; only the last one reports how many were right.

    Args:
        size: ``"micro"`` has 3 doors; ``"full"`` has 6 and states the rules.
        doors: Another number of doors.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``doors`` is out of range.
    """

    def __init__(
        self, *, size: str = "micro", doors: int | None = None, render_mode: str | None = None
    ) -> None:
        micro = check_size(size, "Password")
        count = (3 if micro else 6) if doors is None else doors
        code = make_code(count, "Password")
        rules = describe_doors(
            count, "After the last door you are told how many letters were right."
        )
        super().__init__(code, "" if micro else rules, render_mode=render_mode)

    def pay(self, episode: Episode[Doors]) -> dict[str, float]:
        """Return the share of right letters."""
        return {"outcome": self.share(episode)}


def make_code(doors: int, where: str, free: int = 0) -> str:
    """Return the code of so many doors behind so many free letters.

    Raises:
        BadValueError: There are no such codes: a number is out of range.
    """
    check_integer("doors", doors, where, min=1, max=len(CODE) - free)
    return FREE * free + CODE[free : free + doors]


def describe_doors(doors: int, end: str) -> str:
    """Return the rules of a row of doors; ``end`` says what happens at the last one."""
    return (
        f"There are {doors} doors. Each takes one letter (a, b or c); the password is always the "
        f"same. {end} Write one letter and nothing else.\n"
    )
