"""All pairs of rows within each family: which of them are told apart anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ...envs.utils.seed_tests import MIN_SEEDS, SeedTest, compare_seeds, decide_seeds
from ...envs.utils.statistics import holm
from ..matrix.suite import Suite
from .scoring import MIN_RUNS, Comparison, FamilyScore

Pair = tuple[str, str]
APART = ("above", "below")


@dataclass(frozen=True)
class PairScore:
    """Two rows over the families in which they are not one gradient.

    Attributes:
        first: A row.
        second: Another one.
        families: Comparison at the middle size by family; the first row above or below the second.
    """

    first: str
    second: str
    families: dict[str, Comparison]

    @property
    def separated(self) -> list[str]:
        """Return the families in which the rows differ."""
        return [name for name, found in self.families.items() if found.decision.verdict in APART]

    @property
    def tested(self) -> bool:
        """Whether a family has seeds enough to decide."""
        return any(found.test.n >= MIN_SEEDS for found in self.families.values())


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
    tests: dict[tuple[str, Pair], SeedTest] = {}
    for score in scores:
        own = [row.label for row in score.rows if row.label in labels]
        for pair in combinations(own, 2):
            test = _compare(score, pair, suite.equivalence)
            if test is not None:
                tests[score.family.name, pair] = test
    adjusted = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    found = {at: _decide(suite, test, adjusted[at]) for at, test in tests.items()}
    return [
        PairScore(first, second, _of_pair(scores, (first, second), found))
        for first, second in combinations(labels, 2)
    ]


def _of_pair(
    scores: Sequence[FamilyScore], pair: Pair, found: dict[tuple[str, Pair], Comparison]
) -> dict[str, Comparison]:
    families = {}
    for score in scores:
        rows = [score.row(label) for label in pair]
        names = [row.label for row in rows if row is not None]
        if len(names) < len(pair):
            continue
        first, second = names
        name = score.family.name
        if (name, (first, second)) in found:
            families[name] = found[name, (first, second)]
        elif (name, (second, first)) in found:
            families[name] = _turned(found[name, (second, first)])
    return families


def _compare(score: FamilyScore, pair: Pair, bound: float) -> SeedTest | None:
    rungs = [row.rung(score.middle) for label in pair if (row := score.row(label)) is not None]
    first, second = ({} if rung is None else rung.areas for rung in rungs)
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < MIN_RUNS:
        return None
    return compare_seeds([first[s] for s in seeds], [second[s] for s in seeds], bound=bound)


def _decide(suite: Suite, test: SeedTest, adjusted: float) -> Comparison:
    decision = decide_seeds(test, adjusted, min_effect=suite.min_effect, bound=suite.equivalence)
    return Comparison(test, adjusted, decision)


def _turned(found: Comparison) -> Comparison:
    """Return the comparison of the second row with the first."""
    test = found.test
    turned = test.model_copy(
        update={
            "difference": -test.difference,
            "low95": -test.high95,
            "high95": -test.low95,
        }
    )
    verdict, why = found.decision
    sides = {"above": "below", "below": "above"}
    words = why.replace(verdict, sides[verdict]) if verdict in sides else why
    decision = found.decision._replace(verdict=sides.get(verdict, verdict), why=words)
    return Comparison(turned, found.adjusted, decision)
