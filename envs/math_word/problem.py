"""A word problem and its solution, step by step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .arithmetic import evaluate

_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class SolvingStep:
    """One sum of a solution.

    Attributes:
        form: The sum, in which ``#k`` stands for the result of step k (from 0): ``#0 * 3``.
        value: What it comes to, as :func:`.write_number` writes it.
    """

    form: str
    value: str

    def fill_in(self, results: Sequence[str]) -> str:
        """The sum with the results of earlier steps put in: ``7 * 3``; fractions in brackets."""

        def result(found: re.Match[str]) -> str:
            text = results[int(found[1])]
            return f"({text})" if "/" in text or text.startswith("-") else text

        return _REFERENCE.sub(result, self.form)

    def evaluate(self, results: Sequence[str]) -> Fraction:
        """What the sum comes to with these results of earlier steps."""
        value = evaluate(self.fill_in(results))
        assert value is not None, self.form  # forms are made by the generator, which worked it out
        return value


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with the number that answers it.

    Attributes:
        text: What is asked.
        answer: The number, as text; for a user's own problems in any form that the grader reads.
        plan: The steps that lead there; empty for a user's own problems.
        topic: What a generated problem is about.
        traps: Names of the traps in it.
        solution: A user's own worked solution, empty if none was given.
    """

    text: str
    answer: str
    plan: tuple[SolvingStep, ...] = ()
    topic: str = ""
    traps: tuple[str, ...] = ()
    solution: str = ""

    def results(self) -> list[str]:
        """The right results of the steps."""
        return [step.value for step in self.plan]
