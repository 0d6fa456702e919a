"""The scripted player: writes the plan step by step, answers, and errs on request."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ..core.noisy_expert import NoisyExpert
from .problem import Problem
from .quantities import write_number

if TYPE_CHECKING:
    from .env import MathWord

_NOTICED = 1 / 3
"""Share of the wrong sums that are taken back at once."""
_SIGN_SHARE = 0.5
"""Share of the wrong sums with a wrong sign; the others are a little off."""
_OTHER_SIGN = {"+": "-", "-": "+", "*": "+", "/": "*"}


class Expert(NoisyExpert):
    """A policy for :class:`MathWord`: the plan's sums one by one, then the answer.

    In its last turn it writes all sums that are left. To a user's problems, which have no plan, it
    only gives the answer.

    Args:
        mistakes: Probability per sum of a wrong one: another sign, or a result that is a little
            off. A third of them is taken back at once ("Wait, …"), the others are carried on.
        seed: Seed of the mistakes.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0) -> None:
        super().__init__(mistakes, seed)
        self._results: list[str] = []

    def choose_action(self, env: MathWord) -> str:
        """Return the next action of the episode in ``env``."""
        problem: Problem = env.episode.task.payload
        if not problem.plan:
            return self._answer_given_problem(env, problem)
        if env.episode.turn == 0:
            self._results = []
        if len(self._results) < len(problem.plan) and env.episode.turn + 1 < env.max_turns:
            return env.grammar.write("step", self._write_step(problem))
        left = [f"{self._write_step(problem)}." for _ in problem.plan[len(self._results) :]]
        return " ".join([*left, env.grammar.write("answer", self._results[-1])])

    def _answer_given_problem(self, env: MathWord, problem: Problem) -> str:
        """A problem without a plan: its answer, or a number beside it by mistake."""
        wrong = self._rng.random() < self.mistakes
        return env.grammar.write("answer", "0" if wrong else problem.answer)

    def _write_step(self, problem: Problem) -> str:
        """The next sum with its result, which is noted; wrong results are carried on."""
        step = problem.plan[len(self._results)]
        sum_, right = step.fill_in(self._results), step.evaluate(self._results)
        if self._rng.random() >= self.mistakes:
            self._results.append(write_number(right))
            return f"{sum_} = {write_number(right)}"
        wrong_sum, wrong = self._spoil(sum_, right)
        if self._rng.random() < _NOTICED:
            self._results.append(write_number(right))
            return f"{wrong_sum} = {write_number(wrong)}. Wait, {sum_} = {write_number(right)}"
        self._results.append(write_number(wrong))
        return f"{wrong_sum} = {write_number(wrong)}"

    def _spoil(self, sum_: str, right: Fraction) -> tuple[str, Fraction]:
        """A plausible wrong sum: another sign worked out well, or a result that is a little off."""
        parts = sum_.split(" ")
        if self._rng.random() < _SIGN_SHARE and len(parts) == 3:
            a, b = Fraction(parts[0].strip("()")), Fraction(parts[2].strip("()"))
            sign = _OTHER_SIGN[parts[1]]
            result = a - b if sign == "-" else a + b if sign == "+" else a * b
            if result > 0:
                return f"{parts[0]} {sign} {parts[2]}", result
        off = (1, 2, 10)[int(self._rng.integers(3 if right > 20 else 2))]
        return sum_, right + off if self._rng.random() < 0.5 or right <= off else right - off
