"""How many steps of transcripts agree, counted and shown, whatever the environment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self


@dataclass(frozen=True)
class Difference:
    """The first thing of a task that came out otherwise.

    Attributes:
        where: The transcript: its file, or its game and edition.
        step: Number of the step; 0 for the first observation.
        action: The action.
        what: What differs.
        expected: What the original had.
        got: What came out here.
    """

    where: str
    step: int
    action: str
    what: str
    expected: str
    got: str


@dataclass
class Agreement(ABC):
    """What was compared and what agrees, for one task or all of them; subclasses add counters.

    Attributes:
        runs: Transcripts.
        steps: Their steps.
        first: The first difference; None where all agrees.
        heads: Headings of the table's columns, that of the tasks first.
    """

    runs: int = 0
    steps: int = 0
    first: Difference | None = field(default=None)

    heads: ClassVar[tuple[str, ...]]

    @abstractmethod
    def cells(self) -> tuple[str, ...]:
        """Return the row of the table below ``heads[1:]``."""

    def add(self, other: Self) -> None:
        """Count another agreement in."""
        for name in (part.name for part in fields(self) if part.name != "first"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = self.first or other.first

    def compare(
        self, where: str, step: int, action: str, pairs: Iterable[tuple[str, str, Any, Any]]
    ) -> None:
        """Count what agrees, and keep the first difference.

        Args:
            where: The transcript.
            step: Number of the step; 0 for the first observation.
            action: The action.
            pairs: For each thing its counter ("" for none), its name, what the original had and
                what came out here.
        """
        for counter, what, expected, got in pairs:
            if expected != got:
                difference = Difference(where, step, action, what, str(expected), str(got))
                self.first = self.first or difference
            elif counter:
                setattr(self, counter, getattr(self, counter) + 1)

    def share(self, count: int, whole: int | None = None) -> str:
        """Return a count as percent of the steps, or of ``whole``."""
        return f"{100 * count / max(self.steps if whole is None else whole, 1):.1f} %"

    def as_row(self) -> dict[str, Any]:
        """Return plain data for a JSON file."""
        row = {name: value for name, value in vars(self).items() if name != "first"}
        return row | {"first_difference": None if self.first is None else vars(self.first)}


def tabulate(
    found: Mapping[str, Agreement], kind: type[Agreement], title: Callable[[str], str] = str
) -> list[tuple[str, ...]]:
    """Return a row per task and one for all, below ``kind.heads``.

    Args:
        found: By task.
        kind: What is counted.
        title: What a task's row is called.
    """
    whole = kind()
    rows = []
    for name, agreement in found.items():
        whole.add(agreement)
        rows.append((title(name), *agreement.cells()))
    return [*rows, ("all", *whole.cells())]
