"""Fog-v0: a tool that is sometimes wrong, and a letter to be named.

What it asks for: acting on uncertain results. After a look the policy should be of several minds
where the looks disagree and of one mind where they agree, which is what rollouts that branch at
high entropy (ARPO, arXiv 2507.19849) look for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..core.env import Episode, GoldAnswer, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.settings import check_integer, check_number
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter

NAMES = "abc"
LOOK = "l"
COST = 0.02


@dataclass(slots=True)
class Haze:
    """The episode's state: the hidden letter, and what the looks have shown, in order."""

    hidden: str
    seen: str = ""


class Fog(LetterEnv[Haze, tuple[str, str]]):
    """Look for a hidden letter with a tool that may err, then name it.

    ``l`` looks: the answer is the hidden letter with probability ``1 - fog``, else one of the two
    others. A look costs 0.02; there are ``looks`` of them. Naming a letter ends the episode, with 1
    for the hidden one. The signs that are shown tell nothing about it. The expert reads the hidden
    state and never looks; what can be reached from the looks is the baseline ``looker``.

    The difficulty is ``fog``. Control: ``fog=0``, where a look tells everything and equality is the
    right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        fog: Probability that a look shows another letter; 2/3 tells nothing.
        looks: Number of looks.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``fog`` or ``looks`` is out of range.
    """

    letters = NAMES + LOOK
    has_gold = True
    stop = tuple(letters)

    def __init__(
        self,
        *,
        size: str = "micro",
        fog: float = 0.3,
        looks: int = 3,
        render_mode: str | None = None,
    ) -> None:
        self.fog = check_number("fog", fog, "Fog", min=0.0, max=2 / 3)
        self.looks = check_integer("looks", looks, "Fog", min=0, max=32)
        self.chance = self.fog > 0 and looks > 0
        if not check_size(size, "Fog"):
            self.instructions = (
                f"Name the hidden letter: a, b or c. Write l to look, at most {looks} times; a "
                "look costs something and may show the wrong letter. The signs tell nothing. Write "
                "one letter and nothing else.\n"
            )
        signs = ("".join(signs) for signs in product("123", repeat=4))
        super().__init__(
            source=ListedTasks(list(product(signs, NAMES))),
            max_turns=looks + 1,
            reward_range=(-COST * looks, 1.0),
            render_mode=render_mode,
        )

    def begin(
        self,
        task: Task[tuple[str, str]],
        random: EpisodeRandom,  # noqa: ARG002 - the first draw is a look's
    ) -> tuple[Haze, str]:
        """Show the signs."""
        signs, hidden = task.payload
        return Haze(hidden), f"{signs}:"

    def play(self, episode: Episode[Haze], action: str) -> Outcome:
        """Look, or name a letter."""
        letter, state = read_letter(action, self.letters), episode.state
        if letter is None:
            return Outcome.unreadable(ask_for_letter(self.letters), verdict=-1)
        if letter != LOOK:
            likely = letter in self.likeliest(state.seen)
            done = Outcome.solved if letter == state.hidden else Outcome.failed
            terms = {"outcome": float(letter == state.hidden)}
            return done("\n", terms, verdict=1 if likely else -1)
        if len(state.seen) >= self.looks:
            return Outcome.move("\nno:", verdict=-1)
        state.seen += self._look(state, episode.random)
        return Outcome.move(f"\n{state.seen[-1]}:", {"cost": -COST}, verdict=0)

    def _look(self, state: Haze, random: EpisodeRandom) -> str:
        if not self.fog:
            return state.hidden
        drawn = float(random.generator.random())
        if drawn >= self.fog:
            return state.hidden
        others = NAMES.replace(state.hidden, "")
        return others[int(drawn / self.fog * len(others))]

    def posterior(self, seen: str) -> Mapping[str, float]:
        """Return the probability of each letter after looks that showed ``seen``."""
        wrong = self.fog / (len(NAMES) - 1)
        weights = {
            name: (1.0 - self.fog) ** seen.count(name) * wrong ** (len(seen) - seen.count(name))
            for name in NAMES
        }
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    def likeliest(self, seen: str) -> Sequence[str]:
        """Return the letters that were shown most often, all of them where none was."""
        most = max(seen.count(name) for name in NAMES)
        return [name for name in NAMES if seen.count(name) == most]

    def metrics(self, episode: Episode[Haze]) -> dict[str, float]:
        """Return the number of looks."""
        return {"looks": float(len(episode.state.seen))}

    def fork_state(self, state: Haze) -> Haze:
        """Copy what was seen."""
        return Haze(state.hidden, state.seen)

    def identify_state(self, episode: Episode[Haze]) -> tuple[str, list[str]]:
        """Return the hidden letter and what was seen, in whatever order."""
        return episode.state.hidden, sorted(episode.state.seen)

    def hidden_answers(self, episode: Episode[Haze]) -> tuple[str, ...]:
        """Return the hidden letter, where the rules do not list the letters."""
        return () if self.instructions else (episode.state.hidden,)

    def baselines(self) -> Mapping[str, Callable[[int], Policy]]:
        """Return ``looker``: it looks as often as it can, then names what it saw most often."""
        return {"looker": lambda _: _look_then_name}

    def gold_answers(self, episode: Episode[Haze]) -> tuple[GoldAnswer, ...]:
        """Return the letter, which is the whole answer."""
        return (GoldAnswer("", episode.state.hidden),)

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that knows the letter."""
        return LetterExpert(lambda env: env.episode.state.hidden, self.letters, mistakes, seed)


def _look_then_name(env: Any, observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG001
    inner = env.unwrapped
    seen = inner.episode.state.seen
    return LOOK if len(seen) < inner.looks else inner.likeliest(seen)[0]
