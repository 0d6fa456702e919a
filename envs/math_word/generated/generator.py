"""Problems drawn at random: a start, links until there are enough steps, a question."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.errors import BadValueError
from ...core.generated_tasks import DrawnTasks
from ..problem import Problem, SolvingStep
from ..quantities import write_number
from .links import FULL, KINDS, MICRO, Dice, Draw, Link, Scale, Topic
from .topics import AGES, COLLECTION, FACTORY, MIXTURE, PEOPLE, SHOP, TRIP

TOPICS: Mapping[str, Topic] = {
    t.name: t for t in (COLLECTION, SHOP, AGES, FACTORY, TRIP, MIXTURE, PEOPLE)
}
SCALES: Mapping[str, Scale] = {"full": FULL, "micro": MICRO}
TRAPS = ("extra", "fewer", "units", "remainder", "others")
MAX_STEPS = 6
_SHARES = (6, 8, 10)
"""Of ten contents, the first six are train, the next two dev, the last test."""
_TRIES = 2000
EVAL_TASKS = 500
"""Problems of the dev and of the test split."""
_EXTRA_SHARE = 0.4
_NAMES: Sequence[str] = (
    "Ana", "Ben", "Eva", "Tom", "Lia", "Max", "Ida", "Leo", "Mia", "Jon", "Zoe", "Sam", "Amy",
    "Dan", "Fay", "Gus", "Kim", "Lou", "Nia", "Ola", "Pia", "Ray", "Sue", "Tim", "Una", "Vic",
    "Wes", "Yan", "Abe", "Bea", "Cleo", "Dora", "Emil", "Fred", "Gina", "Hugo", "Iris", "Jude",
    "Karl", "Lena",
)  # fmt: skip


@dataclass(slots=True)
class _Story:
    """A problem that is being written.

    ``key`` says what it is apart from names and wordings: it decides the split.
    """

    topic: Topic
    who: str
    names: list[str]
    thing: str
    x: str = ""
    value: Fraction | None = None
    sentences: list[str] = field(default_factory=list)
    question: str = ""
    steps: list[SolvingStep] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    traps: list[str] = field(default_factory=list)
    key: list[object] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Generator:
    """Draws problems.

    Attributes:
        size: ``"full"`` or ``"micro"``.
        steps: How many steps a problem may take.
        topics: Names of the topics.
        traps: Names of the traps that problems may hold.
    """

    size: str
    steps: tuple[int, ...]
    topics: tuple[str, ...]
    traps: tuple[str, ...]

    def draw(self, pool: int, rng: np.random.Generator) -> Problem | None:
        """A problem of a split (0 train, 1 dev, 2 test); None when none was found."""
        dice = Dice(rng)
        for _ in range(_TRIES):
            story = self._draw(dice)
            if story is not None and find_split(f"{story.topic.name} {story.key}") == pool:
                problem = self._finish(story, dice)
                if problem is not None:
                    return problem
        return None

    def _draw(self, dice: Dice) -> _Story | None:
        scale = SCALES[self.size]
        topic = TOPICS[dice.pick(self.topics)]
        names = dice.some(_NAMES[: scale.names], MAX_STEPS + 2)
        story = _Story(topic, names[0], names[1:], dice.pick(topic.things[: scale.things]))
        wanted = dice.pick(self.steps)
        if not self._continue(story, topic.starts, wanted, dice):
            return None
        while len(story.steps) < wanted:
            if not self._continue(story, topic.links, wanted, dice):
                return None
        return story

    def _continue(self, story: _Story, links: Sequence[Link], wanted: int, dice: Dice) -> bool:
        """Add one of the links whose numbers fit; False when there is none."""
        left = wanted - len(story.steps)
        used = story.used if links is story.topic.links else ()
        options = [i for i, link in enumerate(links) if i not in used and self._fits(link, left)]
        return any(self._tell(story, links, i, dice) for i in dice.some(options, len(options)))

    def _fits(self, link: Link, left: int) -> bool:
        cost = len(link.does)
        return (
            cost <= left
            and (not link.asks or cost == left)
            and (not link.trap or link.trap in self.traps)
            and (link.micro or self.size != "micro")
        )

    def _tell(self, story: _Story, links: Sequence[Link], at: int, dice: Dice) -> bool:
        """Add a link to the story; False when its numbers do not fit."""
        link = links[at]
        drawn: dict[str, int] = {}
        for name, kind in link.draws.items():
            number = KINDS[kind](Draw(dice, SCALES[self.size], story.value, drawn))
            if number is None:
                return False
            drawn[name] = number
        if not self._work(story, link, drawn):
            return False
        other = story.names[0] if story.names else ""
        words = {"who": story.who, "other": other, "thing": story.thing, **drawn}
        if link.says:
            story.sentences.append(dice.pick(link.says).format(**words))
        if link.asks:
            story.question = dice.pick(link.asks).format(**words)
        if link.trap:
            story.traps.append(link.trap)
        if links is story.topic.links:
            story.used.append(at)
        story.key += [at, *drawn.values()]
        if link.moves:
            story.who = story.names.pop(0)
        return True

    def _work(self, story: _Story, link: Link, drawn: Mapping[str, int]) -> bool:
        """Do the link's sums; False when a result is no sensible quantity."""
        last, value = story.x, story.value
        cap = SCALES[self.size].cap
        if story.topic.cap is not None and not link.asks:
            cap = min(cap, story.topic.cap)
        steps = list(story.steps)
        for form in link.does:
            form = form.format(x=story.x, y=last, **drawn)
            step = SolvingStep(form, "")
            value = step.evaluate([s.value for s in steps])
            if not _is_sensible(value, story.topic, cap):
                return False
            last = f"#{len(steps)}"
            steps.append(SolvingStep(form, write_number(value)))
        if not link.does:  # the start's number is the quantity
            value = Fraction(drawn["n"])
            last = str(drawn["n"])
        story.steps, story.x, story.value = steps, last, value
        return True

    def _finish(self, story: _Story, dice: Dice) -> Problem | None:
        """The problem, None where its answer could be found by copying."""
        question = story.question or dice.pick(story.topic.asks).format(
            who=story.who, thing=story.thing
        )
        sentences, traps = list(story.sentences), list(dict.fromkeys(story.traps))
        if "extra" in self.traps and dice() < _EXTRA_SHARE:
            words = {"who": story.who, "thing": story.thing}
            words["n"] = str(dice.within(2, SCALES[self.size].count[1]))
            sentences.insert(
                dice.within(1, len(sentences)), dice.pick(story.topic.extras).format(**words)
            )
            traps.append("extra")
        text = " ".join([*sentences, question])
        answer = story.steps[-1].value
        if re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text):
            return None
        return Problem(text, answer, tuple(story.steps), story.topic.name, tuple(traps))


def find_split(key: str) -> int:
    """0, 1 or 2 for train, dev and test: problems of equal links and numbers stay together."""
    place = zlib.crc32(key.encode()) % _SHARES[-1]
    return next(i for i, share in enumerate(_SHARES) if place < share)


def _is_sensible(value: Fraction, topic: Topic, cap: int) -> bool:
    if not 0 < value <= cap:
        return False
    return value.denominator == 1 or (not topic.whole and 1000 % value.denominator == 0)


class GeneratedProblems(DrawnTasks[Problem]):
    """Problems drawn at random: train has no end, dev and test have 500 each.

    The problem at an index depends on the generator's settings, the seed, the split and the index
    alone. No two splits share a problem, not even with other names in it.
    """

    def __init__(self, generator: Generator, seed: int) -> None:
        super().__init__(seed, EVAL_TASKS)
        self.generator = generator

    def __reduce__(self) -> Any:
        return load_generated_problems, (self.generator, self.seed)

    def draw(self, pool: int, random: np.random.Generator) -> Problem:
        """A problem of split number ``pool``.

        Raises:
            BadValueError: No problem fits the settings.
        """
        problem = self.generator.draw(pool, random)
        if problem is None:
            raise BadValueError(
                f"MathWord: no problem fits steps={self.generator.steps}, topics="
                f"{self.generator.topics}, traps={self.generator.traps} in size "
                f"{self.generator.size!r}; allow more of them."
            )
        return problem


@lru_cache(maxsize=32)
def load_generated_problems(generator: Generator, seed: int) -> GeneratedProblems:
    """The source of these settings, one per process."""
    return GeneratedProblems(generator, seed)
