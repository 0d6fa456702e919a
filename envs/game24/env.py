"""Game24-v0: four numbers, one operation a turn, 24 at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..core.env import TextEnv
from ..core.episode import NO_TERMS, Episode, Outcome
from ..core.errors import BadValueError
from ..core.randomness import EpisodeRandom
from ..core.tasks import Task
from .arithmetic import (
    TARGET,
    Move,
    Numbers,
    apply,
    apply_move,
    find_solution,
    is_reachable,
    list_moves,
    make_numbers,
    remove_numbers,
    write_expression,
    write_numbers,
)
from .puzzles import Puzzle, check_size, load_generated_puzzles, read_puzzles
from .reading import Answer, Step, UnreadableAction, read_action

RULES = """\
Make 24 out of the four numbers with +, -, * and /. Use each number exactly once.
Take one step per turn: one operation on two of the numbers that are left, with its result, as in
4 + 8 = 12
The two numbers are gone then and the result is left in their place; after three steps 24 must be
left. Fractions are written 8/3. Or give an expression of all four numbers at once, as in
answer: (6 - 4) * (4 + 8)
An answer ends the game. Only the last line of what you write counts.
"""
HOW = "Write a step like 3 + 5 = 8, or answer: and an expression of all four numbers."
HOW_SHORT = "Write a step like 3 + 5 = 8."


@dataclass(slots=True)
class Game24State:
    """The episode's state: the numbers that are left, and counts of what was tried."""

    left: tuple[Fraction, ...]
    steps: int = 0
    refused: int = 0
    answered: bool = False

    def digest(self) -> str:
        """Text that names the state."""
        return f"{write_numbers(self.left)}|{self.steps}|{self.refused}|{self.answered}"


class Game24(TextEnv[Game24State, Puzzle]):
    """Make 24 out of four numbers.

    Description:
        The first observation lists the numbers. An action is a step ``a op b = c`` on two of the
        numbers that are left, answered by what is left then, or ``answer:`` and an expression of
        the four given numbers, which ends the episode (the word may be left out where the
        expression has three numbers or more). The third step ends it too. All arithmetic is exact.
        A step with a number that is not left, with a wrong result or with a division by zero is
        refused with the reason and costs a turn. ``(left: 4 6 12)`` after a step is read, and has
        to be right. Only the last line of an action counts, so that thinking before is free.

        The verdict of a turn is +1 while 24 can still be made from what is left, -1 where the step
        lost it, and 0 where it was lost before.

    Rewards:
        ``outcome``: 1 for 24 by the rules, else 0.

    Args:
        size: ``"full"`` (all 1,362 solvable sets of numbers from 1 to 13) or ``"micro"`` (numbers
            up to 9 that need no division and nothing negative; short texts, an action is a line).
        puzzles: CSV file of puzzles in place of the generated ones; see
            :func:`~turngym.envs.game24.puzzles.read_puzzles`.
        max_turns: Actions per episode; three steps are needed.
        render_mode: ``"ansi"`` makes :meth:`render` return the transcript.

    Raises:
        UnknownNameError: No such size.
        BadValueError: A value out of range, or no such file.
        DataError: A file that does not hold puzzles.

    References:
        The game as a benchmark: Tree of Thoughts, arXiv 2305.10601; ARMAP, arXiv 2502.12130.

    Version history:
        v0: first.
    """

    def __init__(
        self,
        *,
        size: str = "full",
        puzzles: str | os.PathLike[str] | None = None,
        max_turns: int = 6,
        render_mode: str | None = None,
    ) -> None:
        check_size(size)
        source = load_generated_puzzles(size) if puzzles is None else read_puzzles(puzzles)
        super().__init__(source=source, max_turns=max_turns, render_mode=render_mode)
        if max_turns < 3:
            raise BadValueError(f"Game24: max_turns is {max_turns}; expected at least 3.")
        self.micro = size == "micro"
        self.instructions = "" if self.micro else RULES
        self.stop = ("\n",) if self.micro else ()

    def begin(self, task: Task[Puzzle], random: EpisodeRandom) -> tuple[Game24State, str]:  # noqa: ARG002
        """The four numbers."""
        desk = Game24State(make_numbers(task.payload.numbers))
        return desk, self._show(desk) if self.micro else f"Numbers: {task.payload}\n"

    def play(self, episode: Episode[Game24State], action: str) -> Outcome:
        """Take a step, grade an answer, or say what is wrong."""
        desk: Game24State = episode.state
        try:
            read = read_action(action)
        except UnreadableAction as fault:
            how = HOW_SHORT if self.micro else HOW
            return Outcome.unreadable(f"{fault} {how} {self._show(desk)}", verdict=-1)
        if isinstance(read, Answer):
            return self._grade(desk, make_numbers(episode.task.payload.numbers), read)
        if fault := find_step_fault(desk.left, read):
            desk.refused += 1
            return Outcome.move(f"{fault} {self._show(desk)}", verdict=-1)
        return self._take_step(desk, Move(read.left, read.operator, read.right, read.result))

    def fork_state(self, state: Game24State) -> Game24State:
        """A copy; its fields are immutable."""
        return Game24State(state.left, state.steps, state.refused, state.answered)

    def identify_state(self, episode: Episode[Game24State]) -> str:
        """The numbers that are left; what was refused leaves no trace."""
        return write_numbers(episode.state.left)

    def hidden_answers(self, episode: Episode[Game24State]) -> Sequence[str]:
        """The expert's answer."""
        numbers = make_numbers(episode.task.payload.numbers)
        return (write_expression(numbers, find_solution(numbers)),)

    def metrics(self, episode: Episode[Game24State]) -> Mapping[str, float]:
        """Steps taken, steps refused, and whether it ended with an answer."""
        desk = episode.state
        return {
            "steps": float(desk.steps),
            "refused": float(desk.refused),
            "answered": float(desk.answered),
        }

    def legal_actions(self) -> list[str]:
        """Every operation on two of the numbers that are left."""
        return [str(move) for move in list_moves(self.episode.state.left)]

    def _show(self, desk: Game24State) -> str:
        return (
            f"{write_numbers(desk.left)}\n" if self.micro else f"Left: {write_numbers(desk.left)}\n"
        )

    def _take_step(self, desk: Game24State, move: Move) -> Outcome:
        before = desk.steps == 0 or is_reachable(desk.left)  # every puzzle has a solution
        desk.left = apply_move(desk.left, move)
        desk.steps += 1
        still = is_reachable(desk.left)
        if len(desk.left) > 1:
            return Outcome.move(self._show(desk), verdict=1 if still else -1 if before else 0)
        if still:
            return Outcome.solved("24 is made.\n", {"outcome": 1.0}, verdict=1)
        said = f"{write_numbers(desk.left)} is left and not 24.\n"
        return Outcome.failed(said, NO_TERMS, verdict=-1 if before else 0)

    def _grade(self, desk: Game24State, given: Numbers, answer: Answer) -> Outcome:
        desk.answered = True
        if fault := find_answer_fault(given, answer):
            return Outcome.failed(f"{fault}\n", NO_TERMS, verdict=-1)
        return Outcome.solved("24 is made.\n", {"outcome": 1.0}, verdict=1)


def find_step_fault(left: Numbers, step: Step) -> str:
    """What is wrong with a step when ``left`` are left; empty when nothing is."""
    rest = remove_numbers(left, step.left, step.right)
    if rest is None:
        for number in (step.left, step.right):
            if number not in left:
                return f"{number} is not among the numbers left."
        return f"{step.left} is left only once."
    result = apply(step.left, step.operator, step.right)
    if result is None:
        return f"{step.left} / {step.right} divides by zero."
    if result != step.result:
        return f"{step.left} {step.operator} {step.right} is {result}, not {step.result}."
    now = tuple(sorted((*rest, result)))
    if step.rest is not None and step.rest != now:
        return f"After that {write_numbers(now)} would be left, not {write_numbers(step.rest)}."
    return ""


def find_answer_fault(given: Numbers, answer: Answer) -> str:
    """What is wrong with an answer to the puzzle ``given``; empty when it makes 24."""
    for number in answer.numbers:
        if number not in given:
            return f"{number} is not among the numbers given."
    for number in given:
        used, there = answer.numbers.count(number), given.count(number)
        if used < there:
            return f"{number} is given {_write_times(there)} and used {_write_times(used)}."
        if used > there:
            return f"{number} is used {_write_times(used)} and given {_write_times(there)}."
    if answer.value is None:
        return "The answer divides by zero."
    return "" if answer.value == TARGET else f"The answer is {answer.value}, not 24."


def _write_times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
