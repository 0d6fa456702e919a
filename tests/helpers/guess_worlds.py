"""A small world for the tests: guess a number; with variants that ask, break and open sessions."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngym.envs.core.env import Call, Episode, Outcome, Policy, SessionSwitch, TextEnv
from turngym.envs.core.errors import EnvFault, UnknownNameError
from turngym.envs.core.randomness import EpisodeRandom
from turngym.envs.core.tasks import Task
from turngym.envs.tools.action_parsing import TagGrammar, Unreadable

COUNTS = {"train": 60, "dev": 20, "test": 20}
FIRST = {"train": 100, "dev": 300, "test": 500}


@dataclass(frozen=True)
class Secret:
    number: int
    low: int
    high: int


class Secrets:
    def sizes(self) -> Mapping[str, int | None]:
        return COUNTS

    def task(self, split: str, index: int) -> Task[Secret]:
        low = FIRST[split]
        return Task(f"{split}/{index}", split, index, Secret(low + index * 3, low, low + 199))

    def index_of(self, split: str, task_id: str) -> int | None:
        name, _, number = task_id.partition("/")
        good = name == split and number.isdecimal() and int(number) < COUNTS[split]
        return int(number) if good else None


@dataclass
class Guessing:
    secret: Secret
    asked: list[int] = field(default_factory=list)


class Guess(TextEnv[Guessing, Secret]):
    instructions = "Guess my number. Write <guess> number </guess>.\n"
    grammar = TagGrammar({"guess": "number"})
    stop = grammar.stop
    chance = True

    def __init__(
        self, *, size: str = "micro", max_turns: int = 12, render_mode: str | None = None
    ) -> None:
        if size not in ("micro", "full"):
            raise UnknownNameError("size", size, ("micro", "full"), type(self).__name__)
        super().__init__(source=Secrets(), max_turns=max_turns, render_mode=render_mode)

    def begin(self, task: Task[Secret], random: EpisodeRandom) -> tuple[Guessing, str]:
        secret = task.payload
        mood = int(random.generator.integers(1000))
        text = f"Game {mood}: a number from {secret.low} to {secret.high}. Your guess?\n"
        return Guessing(secret), text

    def play(self, episode: Episode[Guessing], action: str) -> Any:
        number = self.read(action)
        if isinstance(number, Unreadable):
            return Outcome.unreadable(number.message + "\n")
        return self.judge(episode, number)

    def read(self, action: str) -> int | Unreadable:
        parsed = self.grammar.parse(action)
        if isinstance(parsed, Unreadable):
            return parsed
        if not (parsed.content.isascii() and parsed.content.isdecimal()):
            return Unreadable(f"{parsed.content!r} is not a number.")
        return int(parsed.content)

    def judge(self, episode: Episode[Guessing], number: int) -> Outcome:
        world = episode.state
        verdict = 1 if number not in world.asked else -1
        world.asked.append(number)
        if number == world.secret.number:
            return Outcome.solved("Yes.\n", {"outcome": 1.0}, verdict=1)
        word = "higher" if number < world.secret.number else "lower"
        luck = int(episode.random.generator.integers(10))
        return Outcome.move(f"My number is {word} ({luck}).\n", verdict=verdict)

    def metrics(self, episode: Episode[Guessing]) -> Mapping[str, float]:
        return {"guesses": float(len(episode.state.asked))}

    def hidden_answers(self, episode: Episode[Guessing]) -> Sequence[str]:
        return (str(episode.state.secret.number),) if episode.task.index else ()

    def legal_actions(self) -> list[str] | None:
        secret = self.episode.state.secret
        return [self.grammar.write("guess", str(n)) for n in range(secret.low, secret.low + 5)]

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        def policy(env: Any, observation: str, info: Mapping[str, Any]) -> str:
            episode: Episode[Guessing] = env.unwrapped.episode
            known = episode.state.secret
            return self.grammar.write("guess", str(known.number if episode.turn else known.high))

        return policy


@dataclass
class Oracle:
    """Compares numbers in batches and remembers how large they were; 13 breaks the batch."""

    batches: list[int] = field(default_factory=list)

    def compare(self, pairs: Sequence[tuple[int, int]]) -> list[Any]:
        self.batches.append(len(pairs))
        if any(number == 13 for number, _ in pairs):
            raise EnvFault("the oracle is unlucky")
        return [
            EnvFault("the oracle slipped")
            if number == 666
            else (number > secret) - (number < secret)
            for number, secret in pairs
        ]


class AskingGuess(Guess):
    """The same game, judged by an oracle that answers batches; two questions per valid action."""

    def __init__(self, *, size: str = "micro", max_turns: int = 12) -> None:
        super().__init__(size=size, max_turns=max_turns)
        self.oracle = Oracle()

    def play(self, episode: Episode[Guessing], action: str) -> Generator[Call, Any, Outcome]:
        number = self.read(action)
        if isinstance(number, Unreadable):
            return Outcome.unreadable(number.message + "\n")
        secret = episode.state.secret.number
        side = yield Call(self.oracle.compare, (number, secret))
        again = yield Call(self.oracle.compare, (number, secret))
        assert side == again
        return self.judge(episode, number)


class FaultyGuess(Guess):
    """The tool breaks on 13, the end-of-episode grader on the guess 777 or at the limit."""

    def play(self, episode: Episode[Guessing], action: str) -> Any:
        if "13" in action:
            raise EnvFault("the tool is broken")
        return super().play(episode, action)

    def metrics(self, episode: Episode[Guessing]) -> Mapping[str, float]:
        if 777 in episode.state.asked:
            raise EnvFault("the grader is broken")
        return super().metrics(episode)


class SessionGuess(Guess):
    """``<guess> 0 </guess>`` opens a session of its own; the next guess returns to the first."""

    def judge(self, episode: Episode[Guessing], number: int) -> Outcome:
        if number == 0:
            opened = SessionSwitch(episode.session + 1, episode.session)
            return Outcome.move("A new room.\n", session=opened)
        outcome = super().judge(episode, number)
        back = SessionSwitch(0, None) if episode.session else None
        return outcome._replace(session=back)


def guess(number: int) -> str:
    return Guess.grammar.write("guess", str(number))


class GuessError(Exception):
    """Made of other arguments than it passes on, as many errors are."""

    def __init__(self, secret: int, words: str) -> None:
        super().__init__(f"{words} is not {secret}")
        self.secret = secret
        self.lock = threading.Lock()  # no pickle takes it


class FragileGuess(Guess):
    """Raises on 900, and sleeps half a minute on 901."""

    def judge(self, episode: Episode[Guessing], number: int) -> Outcome:
        if number == 900:
            raise GuessError(episode.state.secret.number, "nine hundred")
        if number == 901:
            time.sleep(30)
        return super().judge(episode, number)
