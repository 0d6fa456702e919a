"""The rule for verdicts, fixed before anything is run.

A comparison is the difference of two arms over training seeds. Each seed has one value per arm, its
mean over the tasks: tasks are nested in seeds, so more tasks sharpen a seed's value but do not
stand for more seeds. Arms with the same starting model, environment and tasks are paired by seed;
else, or where they have no seed in common, Welch's test is used.

1. Fewer than five seeds: not decided.
2. Both arms within 3 points of the floor, or of the ceiling, of a share, with seeds that deviate by
   at most 6: not decided (:class:`~turngym.envs.utils.seed_tests.Edges`, the rule of the matrix and
   of the ladder too). The floor is 0, or what the comparison declares: in Fog-v0 a blind guess is
   right in a third of the episodes, and two arms that only guess are not "equivalent", they have
   nothing to be compared by.
3. A comparison that expects a difference is *reproduced* when the 95 % interval of Student's t lies
   above the margin, p <= .05 after Holm over the claim's comparisons, the measured difference
   is at least ``min_effect`` beyond the margin, the exact permutation test agrees, and the seeds
   carry so many comparisons (see :func:`~turngym.envs.utils.seed_tests.decide_seeds`);
   *equivalent* when two one-sided tests at .05 place it within ``min_effect`` of 0; *not
   reproduced* when the interval lies below the margin, or below margin + ``min_effect``: the effect
   is absent or too small to matter.
4. A comparison that expects equality is *equivalent* by the same tests, and *not reproduced* when
   the interval lies outside the bound.
5. Else *not decided*, with the number of seeds that would decide, from the measured deviation. So
   is a comparison in which a finished seed has no value of its measure.

Why these tests (rates by simulation, ``turngym claims --null``). The difference of two equal arms
is symmetric whatever their own shape is, and there Student's t keeps its level or stays below it:
with five seeds .5 to 5 % of its p-values are <= .05 for two modes (the pool of Fork-v0's finals),
saturated, skewed, collapsing and correlated seeds. Only grids of two to four tries a seed come to 6
% (6.4 with two tries and eight seeds). The other tests are there for "reproduced": the permutation
test is exact for every shape, so at most 2.5 % of equal arms pass it in the expected direction.
Five pairs have 32 patterns of signs, of which two are .0625: there all seeds must agree, at most
3.1 %, and with Student's t 2.1 % for normal values and less for the others. Alone, permutations
could not decide with five pairs, and t would have no guarantee.
"Equivalent" after five seeds does not exclude what happens to one seed in ten.

A claim is reproduced when all of its comparisons are as expected, and not reproduced when one is
not; it is equivalent when all of its comparisons are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...envs.utils.seed_tests import (
    LEVEL,
    MIN_SEEDS,
    POWER,
    Edges,
    SeedTest,
    Show,
    compare_seeds,
    decide_seeds,
    seeds_needed,
    show_plain,
    show_points,
)
from ...envs.utils.statistics import holm
from .claim import Comparison, Unit
from .outcome import ArmRuns, Finding, Verdict

SHARES = (
    "success",
    "greedy",
    "recall",
    "area",
    "area_right",
    "area_coins",
    "area_tokens",
    "area_calls",
)
"""Metrics with a floor of 0 and a ceiling of 1."""
_SHOWN: Mapping[Unit, Show] = {
    "points": show_points,
    "times": lambda exponent: f"{exponent:.3g} doublings" if exponent else "0",
    "plain": show_plain,
}
"""How reasons write numbers of a unit."""
Floats = npt.NDArray[np.float64]


def decide(comparisons: Sequence[Comparison], arms: Mapping[str, ArmRuns]) -> tuple[Finding, ...]:
    """Return a finding per comparison, in order."""
    found = [_measure(comparison, arms) for comparison in comparisons]
    family = {
        i: test.p_value
        for i, finding in enumerate(found)
        if (test := finding.test) is not None and finding.comparison.expected == "above"
    }
    adjusted = dict(zip(family, holm(list(family.values())), strict=True))
    for i, finding in enumerate(found):
        if finding.test is not None:
            edge = _edge(_Seeds(finding.comparison, arms))
            verdict, why = _verdict(
                finding.comparison, finding.test, adjusted.get(i), len(family), edge
            )
            update = {"adjusted": adjusted.get(i), "verdict": verdict, "why": why}
            found[i] = finding.model_copy(update=update)
    return tuple(found)


def judge_claim(findings: Sequence[Finding]) -> tuple[Verdict, str]:
    """Return the claim's verdict with the reason."""
    count = len(findings)
    if all(finding.verdict == "equivalent" for finding in findings):
        return "equivalent", f"{count} of {count} comparisons are equal within their bounds"
    reasons = [finding.why for finding in findings if finding.verdict == "not decided"]
    still = len(reasons)
    fail = sum(not finding.holds for finding in findings) - still
    if fail:
        return "not reproduced", f"{fail} of {count} comparisons fail"
    if still:
        why = "; ".join(dict.fromkeys(reasons))
        return "not decided", f"{still} of {count} comparisons are open: {why}"
    return "reproduced", f"{count} of {count} comparisons hold"


def _measure(comparison: Comparison, arms: Mapping[str, ArmRuns]) -> Finding:
    seeds = _Seeds(comparison, arms)
    if seeds.problem:
        return Finding(comparison=comparison, seeds=seeds.count, units=0, why=seeds.problem)
    ours, theirs = seeds.sides()
    sign = 1.0 if comparison.higher else -1.0
    test = compare_seeds(
        sign * ours,
        sign * theirs,
        paired=seeds.paired,
        margin=comparison.margin,
        bound=comparison.bound,
    )
    return Finding(
        comparison=comparison,
        seeds=test.n,
        units=len(seeds.units),
        better=float(seeds.means(comparison.better).mean()),
        worse=float(seeds.means(comparison.worse).mean()) if comparison.worse else 0.0,
        test=test,
    )


def _verdict(
    comparison: Comparison, test: SeedTest, adjusted: float | None, family: int, edge: str
) -> tuple[Verdict, str]:
    if adjusted is None:
        return _verdict_on_equality(comparison, test, edge)
    decision, why = decide_seeds(
        test,
        adjusted,
        min_effect=comparison.min_effect,
        bound=comparison.bound,
        family=family if comparison.worse else 1,
        edge=edge,
        show=_SHOWN[comparison.unit],
    )
    if decision == "above":
        return "reproduced", why
    if decision == "equivalent":
        return "equivalent", why
    if decision == "below":
        return "not reproduced", why
    least = comparison.margin + comparison.min_effect
    if not edge and test.n >= MIN_SEEDS and test.high95 < least:
        return "not reproduced", "the interval excludes every difference that would matter"
    return "not decided", why


def _verdict_on_equality(comparison: Comparison, test: SeedTest, edge: str) -> tuple[Verdict, str]:
    bound, show = comparison.min_effect, _SHOWN[comparison.unit]
    if test.n < MIN_SEEDS:
        return "not decided", f"{test.n} seeds; at least {MIN_SEEDS} are needed to decide"
    if edge:
        return "not decided", edge
    if test.equivalence_p is not None and test.equivalence_p <= LEVEL:
        return "equivalent", f"the difference lies within ±{show(bound)}"
    if test.low95 > bound or test.high95 < -bound:
        return "not reproduced", f"the arms differ by more than {show(bound)}"
    if test.deviation == 0:
        all_by = f"all seeds differ by {show(test.difference)}"
        return "not decided", f"{all_by}, the bound is {show(bound)}"
    # Two one-sided tests at .05, each passed with probability (1 + power) / 2.
    needed = seeds_needed(test.deviation, bound, power=(1 + POWER) / 2, level=2 * LEVEL)
    return "not decided", (
        f"the interval reaches beyond ±{show(bound)}; equality within it needs "
        f"{max(needed, test.n + 1):,} seeds at a deviation of {show(test.deviation)}"
    )


def _edge(seeds: _Seeds) -> str:
    """Return at which end of the metric both arms are, in words; empty where they are not."""
    comparison = seeds.comparison
    if comparison.worse is None:
        return ""
    share = comparison.measure in SHARES
    known = Edges() if share else Edges(None, None)
    if comparison.floor is not None:
        known = known._replace(floor=comparison.floor)
    return known.describe(seeds.means(comparison.better), seeds.means(comparison.worse))


class _Seeds:
    """The values of a comparison's arms by seed.

    Attributes:
        problem: Reason why there is no comparison; empty if there is one.
        paired: Whether the arms are paired by seed.
        count: Seeds of the smallest arm that take part.
        units: Tasks that all of them have.
    """

    def __init__(self, comparison: Comparison, arms: Mapping[str, ArmRuns]) -> None:
        self.comparison = comparison
        self._values = {
            name: {
                run.seed: found
                for run in arms[name].runs
                if (found := run.values.get(comparison.measure))
            }
            for name in comparison.arms
        }
        common = sorted(set.intersection(*(set(found) for found in self._values.values())))
        pairings = {arms[name].pairing for name in comparison.arms}
        self.paired = bool(common) and len(pairings) == 1
        if self.paired:
            self._seeds = dict.fromkeys(self._values, common)
        else:
            self._seeds = {name: sorted(found) for name, found in self._values.items()}
        self.count = min(len(seeds) for seeds in self._seeds.values())
        tasks = [set(self._values[n][s]) for n, seeds in self._seeds.items() for s in seeds]
        self.units = sorted(set.intersection(*tasks)) if tasks else []
        self.problem = self._find_problem(arms)

    def _find_problem(self, arms: Mapping[str, ArmRuns]) -> str:
        for name, found in self._values.items():
            if arms[name].problem:
                return f"arm {name}: {arms[name].problem}"
            if not found:
                return f"arm {name}: nothing was measured"
            if lost := [run.seed for run in arms[name].runs if run.seed not in found]:
                measure, of = self.comparison.measure, len(arms[name].runs)
                return (
                    f"arm {name}: {len(lost)} of {of} seeds have no {measure} "
                    f"({', '.join(map(str, lost))}): the others are no fair sample"
                )
        if not self.paired and (self.comparison.beyond or self.comparison.worse is None):
            return "the arms have no seed in common, which this comparison needs"
        if not self.units:
            return "the arms have no task in common"
        if self.count < 2:
            return f"one seed has no deviation; at least {MIN_SEEDS} seeds are needed to decide"
        return ""

    def means(self, name: str) -> Floats:
        """Return an arm's means over the tasks, one per seed."""
        rows = [self._values[name][seed] for seed in self._seeds[name]]
        return np.array([[row[unit] for unit in self.units] for row in rows]).mean(axis=1)

    def sides(self) -> tuple[Floats, Floats]:
        """Return both sides' values, one per seed: what is compared with what."""
        comparison = self.comparison
        ours = self.means(comparison.better)
        theirs = self.means(comparison.worse) if comparison.worse else np.zeros_like(ours)
        if comparison.beyond is not None:
            first, second = comparison.beyond
            theirs = theirs + self.means(first) - self.means(second)
        return ours, theirs
