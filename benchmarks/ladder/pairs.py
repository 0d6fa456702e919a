"""All pairs of rows within each family: which of them are told apart anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ...envs.utils.seed_tests import FEW_FOR_FAMILY
from ..matrix.comparison import (
    Comparison,
    Contrast,
    adjust_family,
    compare_areas,
    decide_test,
    describe_lost,
)
from ..matrix.suite import Suite
from .scoring import FamilyScore

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairScore:
    """Two rows over the families in which they are not one gradient.

    Attributes:
        first: A row.
        second: Another one.
        families: Comparison at the middle size by family; the first row above or below the second.
        lent_by: Families in which another row with the same gradient stands for one of them.
        rated_by: Families in which the runs of the two have other learning rates.
    """

    first: str
    second: str
    families: dict[str, Comparison]
    lent_by: frozenset[str] = frozenset()
    rated_by: frozenset[str] = frozenset()

    @property
    def separated(self) -> list[str]:
        """Return the families in which the rows differ."""
        return [name for name, found in self.families.items() if found.apart]

    @property
    def lent(self) -> bool:
        """Whether the rows are told apart only where another row's runs stand for one of them."""
        return self.tested and bool(self.separated) and self.lent_by.issuperset(self.separated)

    @property
    def rated(self) -> bool:
        """Whether the rows are told apart only where their learning rates differ."""
        return self.tested and bool(self.separated) and self.rated_by.issuperset(self.separated)

    @property
    def crowded(self) -> bool:
        """Whether only the number of comparisons stands in the way of telling the rows apart."""
        return not self.separated and any(FEW_FOR_FAMILY in c.why for c in self.families.values())

    @property
    def tested(self) -> bool:
        """Whether a family has seeds enough to decide and the rows are not at one end there."""
        return any(found.tested for found in self.families.values())


def compare_pairs(
    suite: Suite, scores: Sequence[FamilyScore], labels: Sequence[str]
) -> list[PairScore]:
    """Compare every row with every other one at each family's middle size, paired by seed.

    Holm's correction is over all tests of all families together. Where a row is not run because it
    is one gradient with another one, that one's test counts for it; where both rows of a pair are
    one gradient, the family has nothing to compare.

    Args:
        suite: The suite, for its bounds.
        scores: Families.
        labels: The competing rows; A/A rows are none.
    """
    tests: dict[tuple[str, Pair], Contrast] = {}
    for score in scores:
        own = [row.label for row in score.rows if row.label in labels]
        for pair in combinations(own, 2):
            test = _test_pair(suite, score, pair)
            if test is not None:
                tests[score.family.name, pair] = test
    adjusted = adjust_family(tests)
    size = len(adjusted)
    found = {}
    for (name, (first, second)), test in tests.items():
        p = adjusted[name, (first, second)]
        found[name, (first, second)] = decide_test(suite, test, p, second, family=size)
        found[name, (second, first)] = decide_test(suite, test.reverse(), p, first, family=size)
    return [
        PairScore(
            first,
            second,
            _of_pair(scores, (first, second), found),
            frozenset(
                score.family.name
                for score in scores
                if score.stands_in(first) or score.stands_in(second)
            ),
            frozenset(
                score.family.name
                for score in scores
                if _rates(score, first) != _rates(score, second)
            ),
        )
        for first, second in combinations(labels, 2)
    ]


def _of_pair(
    scores: Sequence[FamilyScore], pair: Pair, found: dict[tuple[str, Pair], Comparison]
) -> dict[str, Comparison]:
    families = {}
    for score in scores:
        first, second = (score.row(label) for label in pair)
        if first is None or second is None:
            continue
        name = score.family.name
        compared = found.get((name, (first.label, second.label)))
        if compared is not None:
            families[name] = compared
    return families


def _rates(score: FamilyScore, label: str) -> tuple[float, ...]:
    """Return the learning rates of a row's runs at the middle size; empty without one."""
    row = score.row(label)
    rung = None if row is None else row.rung(score.middle)
    return () if rung is None else rung.place.rates


def _test_pair(suite: Suite, score: FamilyScore, pair: Pair) -> Contrast | None:
    rungs = [row.rung(score.middle) for label in pair if (row := score.row(label)) is not None]
    first, second = ({} if rung is None else rung.areas for rung in rungs)
    lost = describe_lost({r.place.recipe: r.place.states for r in rungs if r is not None})
    return compare_areas(suite, first, second, score.family.edges(score.middle), lost=lost)
