"""The scripted player: solves by search, and errs in the four ways that solutions go wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import UnknownNameError
from ..core.noisy_expert import NoisyExpert
from .arithmetic import Move, Numbers, find_solution, list_moves, make_numbers, write_expression

if TYPE_CHECKING:
    from .env import Game24

MISTAKE_KINDS = ("invented", "absent", "format", "unused")
"""A result that is made up; a number that is not there; a step in no readable form; an answer that
leaves a number out."""
_SIGNS = {"+": "plus", "-": "minus", "*": "times", "/": "by"}


class Expert(NoisyExpert):
    """A policy for :class:`Game24`: steps that lead to 24, or an answer where steps no longer do.

    Args:
        mistakes: Probability per action of a mistake of a random kind (:data:`MISTAKE_KINDS`); an
            answer that leaves a number out ends the episode.
        seed: Seed of the mistakes.
    """

    def choose_action(self, env: Game24) -> str:
        """Return the next action of the episode in ``env``."""
        episode = env.episode
        given, left = make_numbers(episode.task.payload.numbers), episode.state.left
        if self.draw_mistake():
            kind = MISTAKE_KINDS[int(self._rng.integers(len(MISTAKE_KINDS)))]
            return write_mistake(kind, given, left, self._rng)
        plan = find_solution(left)
        return str(plan[0]) if plan else f"answer: {write_expression(given, find_solution(given))}"


def write_mistake(kind: str, given: Numbers, left: Numbers, rng: np.random.Generator) -> str:
    """An action that is wrong in one way, otherwise as close to a right one as can be.

    Args:
        kind: One of :data:`MISTAKE_KINDS`.
        given: The numbers of the puzzle.
        left: Those that are left, two at least.
        rng: Chooses among the wrong actions.

    Raises:
        UnknownNameError: No such kind.
    """
    if kind not in MISTAKE_KINDS:
        raise UnknownNameError("kind of mistake", kind, MISTAKE_KINDS, "Game24 expert")
    if kind == "unused":
        return f"answer: {write_expression(given, find_solution(given)[:-1])}"
    move = (find_solution(left) or list(list_moves(left)))[0]
    if kind == "format":
        return f"{move.left} {_SIGNS[move.operator]} {move.right}"
    if kind == "invented":
        return str(move._replace(result=move.result + int(rng.integers(1, 6))))
    high = int(max(map(abs, left))) + 3
    foreign = [Fraction(n) for n in range(1, high) if Fraction(n) not in left]
    number = foreign[int(rng.integers(len(foreign)))]
    if move.operator == "/":
        return str(Move(number, "*", move.right, number * move.right))
    result = {"+": number + move.right, "-": number - move.right, "*": number * move.right}
    return str(Move(number, move.operator, move.right, result[move.operator]))
