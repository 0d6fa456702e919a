"""Whether an answer is right: plain numbers exactly here, everything else by math-verify."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, Protocol

from ..core.errors import MissingExtraError, UnknownNameError
from .quantities import MAX_CHARS, read_quantity

GRADERS = ("numbers", "math-verify")
_SECONDS = 5


class Grader(Protocol):
    """Says whether answers are right."""

    def can_grade(self, answer: str) -> bool:
        """Whether this can be the right answer of a problem: it can be read."""
        ...

    def is_right(self, given: str, answer: str) -> bool:
        """Whether ``given`` says the same number as ``answer``, the right one."""
        ...


class NumberGrader:
    """Exact comparison of what :func:`read_quantity` reads; the same on every machine."""

    def can_grade(self, answer: str) -> bool:
        """Whether the answer is a plain number."""
        return read_quantity(answer) is not None

    def is_right(self, given: str, answer: str) -> bool:
        """Whether both are the same plain number."""
        said, meant = read_quantity(given), read_quantity(answer)
        return said is not None and meant is not None and said.equals(meant)


class MathVerifyGrader:
    """Plain numbers exactly; any other expression as the package math-verify compares it.

    Raises:
        MissingExtraError: The package is not installed.
    """

    def __init__(self) -> None:
        try:
            import math_verify
        except ImportError as fault:
            what = "MathWord's LaTeX grader"
            raise MissingExtraError(what, "math-verify", "math", fault) from fault
        self._package: Any = math_verify
        self._numbers = NumberGrader()

    def __reduce__(self) -> Any:
        return make_grader, ("math-verify",)

    def can_grade(self, answer: str) -> bool:
        """Whether the answer can be read in either way."""
        return self._numbers.can_grade(answer) or bool(self._read(answer))

    def is_right(self, given: str, answer: str) -> bool:
        """Whether both are the same: as plain numbers if they are, else symbolically.

        An answer with more beside its number than known units is no plain number here.
        """
        said, meant = read_quantity(given), read_quantity(answer)
        if said is not None and meant is not None and meant.whole:
            return said.equals(meant)
        parsed, gold = self._read(given), self._read(answer)
        seconds = _SECONDS if _may_interrupt() else None
        return bool(parsed and gold and self._package.verify(gold, parsed, timeout_seconds=seconds))

    def _read(self, text: str) -> list[Any]:
        text = text.strip()
        if not text or len(text) > MAX_CHARS:
            return []
        wrapped = text if "$" in text or "\\boxed" in text else f"${text}$"
        seconds = _SECONDS if _may_interrupt() else None
        return self._package.parse(wrapped, parsing_timeout=seconds)


def _may_interrupt() -> bool:
    """Whether a time limit can be set: it works by a signal, which only the main thread gets."""
    return threading.current_thread() is threading.main_thread()


@lru_cache(maxsize=2)
def make_grader(name: str) -> Grader:
    """A grader by name.

    Raises:
        UnknownNameError: There is none of that name.
        MissingExtraError: It needs a package that is not installed.
    """
    if name not in GRADERS:
        raise UnknownNameError("grader", name, GRADERS, "MathWord")
    return NumberGrader() if name == "numbers" else MathVerifyGrader()
