"""Two rows against each other over the training seeds: the one comparison of every report.

The unit is a training seed. Rows share starts, tasks and seeds, so their seeds are paired; an A/A
row has seeds of its own and is compared unpaired. Holm's correction is over a family of tests, and
what they say is decided by :func:`~turngym.envs.utils.seed_tests.decide_seeds`: as for claims, two
rows at the floor or at the ceiling of the measure are not decided, for nothing was compared. Nor is
a row of which a seed failed: a run that diverges is not missing by chance, and the others would
stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ...envs.utils.seed_tests import (
    MIN_SEEDS,
    Decision,
    Edges,
    SeedTest,
    compare_seeds,
    decide_seeds,
    show_points,
)
from ...envs.utils.statistics import holm
from .cell import State
from .suite import Suite

APART = ("above", "below")
"""Verdicts of rows that differ."""
MIN_RUNS = 2
"""Fewest seeds that an interval or a test takes."""
ONE_SEED = f"one seed decides nothing; at least {MIN_SEEDS} are needed"
_NEEDS = re.compile(r"(?:a difference of (?P<size>[^,;]+), [^;]*)?needs (?P<seeds>[\d,]+) seeds")
Key = TypeVar("Key")


class Contrast(NamedTuple):
    """Two rows' areas over the training seeds, not yet decided.

    Attributes:
        test: Student's t over seeds.
        edge: At which end of the measure both rows are, in words; empty where they are not.
        lost: Which seeds failed, in words; empty where none did.
    """

    test: SeedTest
    edge: str
    lost: str = ""

    def reverse(self) -> Contrast:
        """Return theirs against ours."""
        return self._replace(test=self.test.reverse())


@dataclass(frozen=True)
class Comparison:
    """A row against another one over the training seeds.

    Attributes:
        other: The other row.
        test: Student's t over seeds; None with fewer than two seeds.
        adjusted: Its p-value after Holm over its family; of an A/A row its own, and None likewise.
        verdict: ``above``, ``below``, ``equivalent`` or ``not decided``.
        why: The reason, in points, with the number of seeds that a difference needs.
        edge: At which end of the measure both rows are, in words; empty where they are not.
        lost: Which seeds failed, in words; empty where none did.
    """

    other: str
    test: SeedTest | None
    adjusted: float | None
    verdict: Decision
    why: str
    edge: str = ""
    lost: str = ""

    @property
    def seeds(self) -> int:
        """Return the number of seeds that were compared; 0 without a test."""
        return 0 if self.test is None else self.test.n

    @property
    def difference(self) -> float | None:
        """Return the mean difference of areas; None without a test."""
        return None if self.test is None else self.test.difference

    @property
    def tested(self) -> bool:
        """Whether there are seeds enough, none of them lost, and the rows not both at an end."""
        return self.seeds >= MIN_SEEDS and not self.edge and not self.lost

    @property
    def apart(self) -> bool:
        """Whether the rows were found to differ."""
        return self.verdict in APART

    @property
    def needs(self) -> str:
        """Return the number of seeds that would decide; empty where the reason names none."""
        found = _NEEDS.search(self.why)
        return found["seeds"] if found and self.verdict == "not decided" else ""

    @property
    def missing(self) -> str:
        """Return which difference needs how many seeds, in a few words; empty likewise."""
        found = _NEEDS.search(self.why)
        if found is None or not self.needs:
            return ""
        size = found["size"]
        return f"{size} would need {self.needs} seeds" if size else f"needs {self.needs} seeds"


def compare_areas(
    suite: Suite,
    ours: Mapping[int, float],
    theirs: Mapping[int, float],
    edges: Edges,
    *,
    paired: bool = True,
    lost: str = "",
) -> Contrast | None:
    """Test areas of two rows, given by seed; None with fewer than two seeds.

    Args:
        suite: The suite, for the bound of equivalence.
        ours: Areas of a row.
        theirs: Areas of the other one.
        edges: Floor and ceiling of the areas.
        paired: Compare the seeds that both have; else all of them, by Welch's test.
        lost: Which seeds of the two failed, in words (:func:`describe_lost`).
    """
    if paired:
        seeds = sorted(ours.keys() & theirs.keys())
        left, right = [ours[s] for s in seeds], [theirs[s] for s in seeds]
    else:
        left, right = list(ours.values()), list(theirs.values())
    if min(len(left), len(right)) < MIN_RUNS:
        return None
    test = compare_seeds(left, right, paired=paired, bound=suite.equivalence)
    return Contrast(test, edges.describe(left, right), lost)


def describe_lost(states: Mapping[str, Sequence[State]]) -> str:
    """Return how many seeds of which rows failed, in words; empty where none did.

    Args:
        states: State of every seed, by row.
    """
    counts = {row: (found.count("failed"), len(found)) for row, found in states.items()}
    some = [f"{n} of {of} seeds of {row}" for row, (n, of) in counts.items() if n]
    return f"{' and '.join(some)} failed: the others are no fair sample" if some else ""


def adjust_family(tests: Mapping[Key, Contrast | None]) -> dict[Key, float]:
    """Return the p-values of the tests that there are, after Holm over all of them."""
    found = {key: each.test.p_value for key, each in tests.items() if each is not None}
    return dict(zip(found, holm(list(found.values())), strict=True))


def decide_test(
    suite: Suite,
    contrast: Contrast | None,
    adjusted: float | None,
    other: str,
    *,
    min_effect: float | None = None,
    family: int = 1,
) -> Comparison:
    """Decide a comparison.

    Args:
        suite: The suite, for its bounds.
        contrast: The test; None with fewer than two seeds, which decide nothing.
        adjusted: Its p-value after Holm; None likewise.
        other: The other row.
        min_effect: Smallest difference that matters; None takes the suite's.
        family: Comparisons that were corrected together.
    """
    if contrast is None or adjusted is None:
        return Comparison(other, None, None, "not decided", ONE_SEED)
    least = suite.min_effect if min_effect is None else min_effect
    test, edge, lost = contrast
    decision = decide_seeds(
        test,
        adjusted,
        min_effect=least,
        bound=suite.equivalence,
        family=family,
        edge=edge,
        show=show_points,
    )
    verdict, why = ("not decided", lost) if lost else decision
    return Comparison(other, test, adjusted, verdict, why, edge, lost)


def decide_family(
    suite: Suite,
    tests: Mapping[Key, Contrast | None],
    other: str,
    *,
    min_effect: float | None = None,
) -> dict[Key, Comparison]:
    """Decide all comparisons of a family with one row, after Holm; see :func:`decide_test`."""
    adjusted = adjust_family(tests)
    size = len(adjusted)
    return {
        key: decide_test(suite, test, adjusted.get(key), other, min_effect=min_effect, family=size)
        for key, test in tests.items()
    }
