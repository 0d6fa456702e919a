"""MathWord-v0: a word problem, room to think, a number."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..core.env import TextEnv
from ..core.episode import Episode, GoldAnswer, Outcome, Verdict
from ..core.errors import BadValueError, UnknownNameError
from ..core.randomness import EpisodeRandom
from ..core.settings import check_bool, check_integer
from ..core.tasks import Task
from ..tools.action_parsing import Tagged, TagGrammar
from ..utils.response_stats import compute_response_metrics
from .data import Data, GivenProblems, load_problems
from .equations import find_equations
from .generated.generator import (
    MAX_STEPS,
    SCALES,
    TOPICS,
    TRAPS,
    GeneratedProblems,
    Generator,
    load_generated_problems,
)
from .grading import make_grader
from .problem import Problem

ONE_TURN = TagGrammar({"answer": "number"})
TURNS = TagGrammar({"step": "one sum", "answer": "number"})
STEP_REPLY = "\n"
"""What is shown after a step."""
_RULES = (
    "Solve the problem. Read it to the end first: some numbers may not matter, units may change, "
    "and 'fewer than' may stand on either side. Write down every sum with its result, check it, "
    "and take back what turns out to be wrong. "
)
_ANSWER = (
    "Finish with the number alone between <answer> and </answer>: an integer, a decimal or a "
    "fraction, exact and not rounded. The first answer counts. "
)
PROMPTS: Mapping[str, Mapping[bool, str]] = {
    "plain": {
        False: f"{_RULES}{_ANSWER}",
        True: (
            f"{_RULES}Write one sum at a time between <step> and </step>; each is a turn of its "
            f"own, and your turns are limited. {_ANSWER}"
        ),
    },
    "none": {False: "", True: ""},
}
"""By name, then by whether steps are turns."""
_MICRO_STEPS = (1, 2)
REACHING = 3
"""Sums of one step, its last ones, that may reach results of the plan: a step is one sum with its
check, and a list of all numbers as sums earns nothing."""


@dataclass(slots=True)
class MathState:
    """Steps of the plan that were reached, and the answer."""

    reached: tuple[int, ...] = ()  # steps of the plan whose results were written
    answer: str | None = None


class MathWord(TextEnv[MathState, Problem]):
    """Solve a word problem (the maths tasks that TARL mixes in).

    Description:
        The first observation is ``Problem: …``. An action thinks freely and ends with ``<answer>
        number </answer>``, which ends the episode; a reply without one is wrong. With ``max_turns``
        above 1 the agent may think in turns: ``<step> 3 + 4 = 7 </step>`` is a turn of its own,
        and anything else is answered by a reminder and costs a turn.

        Problems are generated: 1 to 6 steps about collections, shops, ages, factories, trips,
        mixtures and people, with traps: numbers that do not matter (``extra``), "fewer than" from
        the other side (``fewer``), changes of unit (``units``), remainders (``remainder``) and
        "the others" of a percentage (``others``). Train has no end, dev and test hold 500 each;
        no two splits share a problem's numbers. Or they are read from files with ``data``.

    Rewards:
        ``outcome``: 1 for the right number, else 0.

    Verdicts:
        A step that ends with a false sum is -1, one that reaches a result of the plan +1, any
        other 0, also one that takes back a false sum itself; the answer is +1 or -1. A sum has an
        operation (``7 = 7`` is none), and only the last three of a step can reach results. A
        product or quotient may be rounded to the decimals written (``10 / 3 = 3.33``).

    Args:
        size: ``"full"``, or ``"micro"``: 1 or 2 steps, quantities up to 20 (a bill may be paid
            with more), few words.
        steps: Steps that a problem takes: one number or several, 1 to 6.
        topics: Topics of the problems; default all of the size.
        traps: Traps that may occur, a name or several; default all, ``()`` for none.
        world_seed: Seed of the generated problems.
        max_turns: Actions per episode: 1 is one reply; more lets the agent think in turns.
        prompt: ``"plain"`` or ``"none"`` (micro's default).
        data: A user's own problems, see :mod:`turngym.envs.math_word.data`.
        grader: ``"numbers"`` (exact, on every machine alike) or ``"math-verify"``, which also
            reads LaTeX and expressions (needs the extra ``turngym[math]``).
        skip_unreadable: Leave out rows of ``data`` whose answer the grader cannot read.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: An unknown value; names the nearest.
        BadValueError: A value out of range, or settings that exclude each other.
        DataError: A file that does not hold what it should.
        MissingExtraError: math-verify is asked for and not installed.

    References:
        TARL, arXiv 2509.14480; the file format is DeepScaleR's.

    Version history:
        v0: first.
    """

    has_gold = True

    def __init__(  # noqa: PLR0913 - the knobs are what gym.make takes
        self,
        *,
        size: str | None = None,
        steps: int | Sequence[int] | None = None,
        topics: str | Sequence[str] | None = None,
        traps: str | Sequence[str] | None = None,
        world_seed: int | None = None,
        max_turns: int = 1,
        prompt: str | None = None,
        data: Data | None = None,
        grader: str = "numbers",
        skip_unreadable: bool = False,
        render_mode: str | None = None,
    ) -> None:
        made = {"size": size, "steps": steps, "topics": topics, "traps": traps}
        made["world_seed"] = world_seed
        self.grader = make_grader(grader)
        check_bool("skip_unreadable", skip_unreadable, "MathWord")
        if data is None:
            if skip_unreadable:
                raise BadValueError(
                    "MathWord: skip_unreadable=True is about rows of data; give data with it."
                )
            source: GeneratedProblems | GivenProblems = _generate_problems(**made)
        else:
            if used := sorted(name for name, value in made.items() if value is not None):
                raise BadValueError(
                    f"MathWord: {', '.join(used)} shape generated problems, but data gives the "
                    "problems; drop one or the other."
                )
            source = load_problems(data, self.grader, skip_unreadable)
        super().__init__(source=source, max_turns=max_turns, render_mode=render_mode)
        self.in_turns = max_turns > 1
        self.grammar = TURNS if self.in_turns else ONE_TURN
        self.stop = self.grammar.stop
        name = ("none" if size == "micro" else "plain") if prompt is None else prompt
        if name not in PROMPTS:
            raise UnknownNameError("prompt", name, PROMPTS, "MathWord")
        self.instructions = PROMPTS[name][self.in_turns]

    def begin(self, task: Task[Problem], random: EpisodeRandom) -> tuple[MathState, str]:  # noqa: ARG002
        """The problem; nothing has been worked out yet."""
        return MathState(), f"Problem: {task.payload.text}\n"

    def play(self, episode: Episode[MathState], action: str) -> Outcome:
        """A step, the answer, or a reminder of how to write them."""
        read = self.grammar.parse(action)
        if not isinstance(read, Tagged):
            if not self.in_turns:  # the one reply holds no answer
                failed = Outcome.failed("", {"outcome": 0.0}, verdict=-1)
                return failed._replace(valid=False)
            reminder = (
                f"\nThis holds neither a step nor an answer. Write {self.grammar.expected}.\n"
            )
            return Outcome.unreadable(reminder, verdict=-1)
        state, problem = episode.state, episode.task.payload
        if read.tag == "step":
            return Outcome.move(STEP_REPLY, verdict=_judge_step(state, problem, read.content))
        state.answer = read.content
        if self.grader.is_right(read.content, problem.answer):
            return Outcome.solved("", {"outcome": 1.0}, verdict=1)
        return Outcome.failed("", {"outcome": 0.0}, verdict=-1)

    def fork_state(self, state: MathState) -> MathState:
        """A copy; its fields are immutable."""
        return MathState(state.reached, state.answer)

    def identify_state(self, episode: Episode[MathState]) -> Any:
        """The results reached, in whatever order, and the answer."""
        return sorted(episode.state.reached), episode.state.answer

    def hidden_answers(self, episode: Episode[MathState]) -> Sequence[str]:
        """The answer of a generated problem; a user's own may well state theirs."""
        return (episode.task.payload.answer,) if episode.task.payload.plan else ()

    def gold_answers(self, episode: Episode[MathState]) -> Sequence[GoldAnswer]:
        """The answer, in the tag that ends the episode."""
        return [GoldAnswer("<answer>", f" {episode.task.payload.answer}")]

    def metrics(self, episode: Episode[MathState]) -> Mapping[str, float]:
        """Length of the replies, self-corrections, whether there was an answer, the plan's steps.

        ``false_sums`` is the share of the written sums that do not hold, 0 where there is none;
        see :func:`turngym.envs.math_word.equations.find_equations` for what holds.
        """
        said = [step.action for step in episode.steps]
        sums = [holds for text in said for holds, _ in find_equations(text)]
        metrics = compute_response_metrics(said)
        metrics["answered"] = float(episode.state.answer is not None)
        metrics["sums"] = float(len(sums))
        metrics["false_sums"] = 1.0 - sum(sums) / len(sums) if sums else 0.0
        if plan := episode.task.payload.plan:
            metrics["steps"] = float(len(plan))
        return metrics


def _judge_step(state: MathState, problem: Problem, said: str) -> Verdict:
    """The verdict on a step; notes which results of the plan it reached."""
    found = find_equations(said)
    if found and not found[-1][0]:
        return -1
    results: list[Fraction] = [result for holds, result in found[-REACHING:] if holds]
    fresh: dict[Fraction, int] = {}  # of equal results the first that is left, as each has its sum
    for i, step in enumerate(problem.plan):
        if i not in state.reached and (value := Fraction(step.value)) in results:
            fresh.setdefault(value, i)
    state.reached += tuple(fresh.values())
    return 1 if fresh and all(holds for holds, _ in found) else 0


def _generate_problems(
    *, size: Any, steps: Any, topics: Any, traps: Any, world_seed: Any
) -> GeneratedProblems:
    size = "full" if size is None else size
    if size not in SCALES:
        raise UnknownNameError("size", size, SCALES, "MathWord")
    micro = size == "micro"
    known = tuple(name for name, topic in TOPICS.items() if topic.micro or not micro)
    seed = 0 if world_seed is None else check_integer("world_seed", world_seed, "MathWord", min=0)
    wanted = known if topics is None else _check_names("topic", topics, known)
    if not wanted:
        raise BadValueError("MathWord: topics is empty; expected at least one name.")
    generator = Generator(
        size=size,
        steps=_check_steps(steps, micro),
        topics=wanted,
        traps=TRAPS if traps is None else _check_names("trap", traps, TRAPS),
    )
    return load_generated_problems(generator, seed)


def _check_steps(steps: int | Sequence[int] | None, micro: bool) -> tuple[int, ...]:
    if steps is None:
        return _MICRO_STEPS if micro else tuple(range(1, MAX_STEPS + 1))
    given = steps if isinstance(steps, Sequence) else [steps]
    for n in given:
        check_integer("steps", n, "MathWord", min=1, max=MAX_STEPS)
    if not given:
        raise BadValueError("MathWord: steps is empty; expected at least one number.")
    return tuple(sorted(set(given)))


def _check_names(kind: str, given: object, known: Collection[str]) -> tuple[str, ...]:
    """The given names, one or several, in the order of the known ones."""
    names = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence):
        raise BadValueError(f"MathWord: {kind}s is {given!r}; expected names.")
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, "MathWord")
    return tuple(name for name in known if name in names)
