"""The yardsticks of a page of verdicts: how often arms that are equal were called different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...envs.utils.seed_tests import LEVEL, MIN_SEEDS
from ..matrix.comparison import Comparison
from ..matrix.ranking import compare_by_column
from ..matrix.results import Results
from .scoring import FamilyScore, compare_rows
from .suites import is_ladder

SUSPECT = 0.025
"""A yardstick is out of bounds when so many false calls have at most this probability."""


@dataclass(frozen=True)
class Yardstick:
    """How often arms that are equal were called different.

    Attributes:
        name: Which arms.
        where: The suite.
        tests: Comparisons with seeds enough to decide.
        small: Those with p of at most .05; None where p-values are corrected.
        called: Those called above or below.
        equivalent: Those called equivalent.
        at_edge: Further comparisons, of rows that are both at the floor or at the ceiling: their
            equality is none that was shown, so they are no tests.
        which: The ones called different, by name.
        same: Whether the arms are the same but for their seeds, so that every call is false.
    """

    name: str
    where: str
    tests: int
    small: int | None
    called: int
    equivalent: int
    at_edge: int
    which: tuple[str, ...]
    same: bool

    @property
    def chance(self) -> float:
        """Return the probability of at least so many false calls where each has 5 %."""
        counts = [self.called, *([] if self.small is None else [self.small])]
        return _at_least(max(counts), self.tests)

    @property
    def can_fail(self) -> bool:
        """Whether it would be out of bounds if all of its comparisons were called different."""
        return self.tests > 0 and _at_least(self.tests, self.tests) <= SUSPECT

    @property
    def holds(self) -> bool:
        """Whether the calls are no more than chance allows."""
        return self.chance > SUSPECT


def compare_with_itself(results: Results, baseline: str) -> list[Yardstick]:
    """Return how often A/A rows were called different, over all columns of a suite.

    Areas are those that the suite's rows are compared by: a ladder's as they are, those of other
    suites between the random player's and the expert's.
    """
    apart = results.suite.yardsticks
    if is_ladder(results.suite):
        found = {
            (row, column): compared
            for column in results.envs
            for row, twin in apart.items()
            if (compared := compare_rows(results, column, [row], twin).get(row)) is not None
        }
    else:
        found = {at: c for at, c in compare_by_column(results, baseline).items() if at[0] in apart}
    tested = {at: c for at, c in found.items() if c.tested}
    called = [f"{at[0]} in {at[1]}" for at, c in tested.items() if c.apart]
    if not apart:
        return []
    return [
        Yardstick(
            name="A/A: " + ", ".join(apart),
            where=results.suite.name,
            tests=len(tested),
            small=sum(c.test is not None and c.test.p_value <= LEVEL for c in tested.values()),
            called=len(called),
            equivalent=sum(c.verdict == "equivalent" for c in tested.values()),
            at_edge=_count_edges(found.values()),
            which=tuple(called),
            same=True,
        )
    ]


def compare_controls(scores: Sequence[FamilyScore], suite: str) -> list[Yardstick]:
    """Return how often rows were called different in the controls of the families."""
    compared = {
        f"{row.label} in {score.family.name}": row.equal
        for score in scores
        for row in score.rows
        if row.equal is not None and row.label not in score.yardsticks
    }
    found = {name: equal for name, equal in compared.items() if equal.tested}
    called = tuple(name for name, equal in found.items() if equal.apart)
    return [
        Yardstick(
            name="controls: all rows",
            where=suite,
            tests=len(found),
            small=None,
            called=len(called),
            equivalent=sum(c.verdict == "equivalent" for c in found.values()),
            at_edge=_count_edges(compared.values()),
            which=called,
            same=False,
        )
    ]


def _count_edges(found: Iterable[Comparison]) -> int:
    """Return how many comparisons with seeds enough are of rows at the floor or the ceiling."""
    return sum(bool(c.edge) and c.seeds >= MIN_SEEDS for c in found)


def find_repeated(suites: Sequence[Results], ladder: Results) -> list[str]:
    """Return the suites whose A/A runs were all taken over from the ladder of the page."""

    def runs(results: Results) -> set[str]:
        apart = results.suite.yardsticks
        return {r.digest for r in results.cells.values() if r.cell.recipe in apart}

    own = runs(ladder)
    others = [results for results in suites if results is not ladder and runs(results)]
    return [results.suite.name for results in others if runs(results) <= own]


def _at_least(count: int, tests: int) -> float:
    """Return the probability of at least so many successes of 5 % each."""
    from scipy.special import bdtrc  # slow to import

    return 1.0 if count == 0 else float(bdtrc(count - 1, tests, LEVEL))
