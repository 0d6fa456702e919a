"""The words of the game: prompt, tags, reminders."""

from __future__ import annotations

from collections.abc import Mapping

from ..grammar import TagGrammar

ONE_TURN = TagGrammar({"answer": "number"})
TURNS = TagGrammar({"step": "one sum", "answer": "number"})
GO_ON = "\n"
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


def reminder(grammar: TagGrammar) -> str:
    """The reply to an action that could not be read."""
    return f"\nThis holds neither a step nor an answer. Write {grammar.expected}.\n"


def first_observation(problem: str) -> str:
    """The problem as the model first sees it."""
    return f"Problem: {problem}\n"
