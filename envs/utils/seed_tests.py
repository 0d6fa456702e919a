"""Comparisons over training seeds: Student's t, detectable effects, equivalence, rank correlation.

A training run is the unit: two runs with different seeds differ far more than two evaluations of
one run, so every value here is the mean of one seed over its tasks, and tasks are nested in seeds.
Everything is deterministic.

Student's t holds its level for the differences of two equal arms, whose distribution is symmetric
whatever the arms' own is (measured for bimodal, saturated, skewed and tied values; `turngym claims
--null` prints the rates). Two cases need more, and :func:`decide_seeds` asks for it: with few
values on a coarse grid t rejects slightly too often, so an exact permutation test (sign flips of
paired seeds, exchange of seeds between unpaired arms) must agree; and seeds that all differ by the
same amount have no deviation, so their p-value is that of the permutation test. A third one is a
family of tens of comparisons: runs of two modes come out as two complete blocks once in 4 ** n / 2
comparisons, with a p-value that outlives any correction, so few seeds decide small families only.
Arms of one mean but different shapes are another null (``docs/comparisons.md``).
No test of five seeds sees what happens to one run in ten: "equivalent" says nothing about rare
collapses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import combinations, count, product
from math import ceil, comb, isfinite, log2, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from ..core.errors import BadValueError
from .statistics import Estimate

LEVEL = 0.05
"""Level of every two-sided test here."""
POWER = 0.8
"""Probability with which a detectable effect is found."""
MIN_SEEDS = 5
"""Fewer seeds decide nothing."""
FEW_FOR_FAMILY = "decide in families of at most"
"""What the reason says where only the size of the family stands in the way."""
EXACT = 20_000
"""Permutations that are all tried; where there are more, :data:`DRAWN` random ones are."""
DRAWN = 9_999
EDGE = 0.03
"""Distance from a measure's floor or ceiling within which an arm counts as being there."""
EDGE_DEVIATION = 2 * EDGE
"""Largest standard deviation of the seeds of an arm at an end."""
AT_END = "both arms are at the"
"""What the reason begins with where both arms are at the same end of the measure."""
RESAMPLES = 2_000
Floats = npt.NDArray[np.float64]
Show = Callable[[float], str]
"""How a number is written."""
Decision = Literal["above", "below", "equivalent", "not decided"]


class SeedTest(BaseModel):
    """How two arms differ over seeds.

    Attributes:
        n: Pairs of seeds; unpaired: seeds of the smaller arm.
        paired: Whether seeds were paired.
        margin: What the difference was tested against.
        difference: Mean of ours minus theirs.
        low95: Lower end of Student's 95 % interval.
        high95: Upper end.
        p_value: Two-sided p-value of Student's t (unpaired: Welch's) against the margin. Without
            any deviation the smallest of the permutation test (2 ** (1 - n) for pairs), and 1 at
            the margin itself.
        permutation_p: Two-sided p-value of the exact permutation test: sign flips of the pairs'
            differences, or exchange of seeds between the arms.
        deviation: Standard deviation of the seeds' differences; unpaired: what it would be for
            pairs with the same standard error.
        detectable: Smallest true distance from the margin that this number of seeds with this
            deviation finds with 80 % power at the two-sided level .05.
        equivalence_p: p-value of two one-sided tests that the difference lies within the bound
            (Schuirmann 1987); None where no bound was given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    n: int
    paired: bool
    margin: float
    difference: float
    low95: float
    high95: float
    p_value: float
    permutation_p: float
    deviation: float
    detectable: float
    equivalence_p: float | None = None

    def reverse(self) -> SeedTest:
        """Return the test of theirs minus ours, against the negated margin."""
        return self.model_copy(
            update={
                "margin": 0.0 - self.margin,  # no minus zero
                "difference": -self.difference,
                "low95": -self.high95,
                "high95": -self.low95,
            }
        )


def show_plain(number: float) -> str:
    """Format a number of no unit for a reason."""
    return f"{number:.3g}"


def show_points(share: float) -> str:
    """Format a share, or a difference of shares, in points for a reason: ``2 points``."""
    points = f"{100 * share:.3g}"
    return points if points == "0" else f"{points} point{'' if points in ('1', '-1') else 's'}"


class SeedDecision(NamedTuple):
    """What a comparison over seeds says, and why."""

    verdict: Decision
    why: str


class Edges(NamedTuple):
    """Where a measure ends: two arms at the same end have nothing to be compared by.

    Attributes:
        floor: What a policy scores that has learned nothing: 0 of a share, or what a blind guess
            scores; None where it is not known.
        ceiling: The best that can be reached; None where it is not known.
    """

    floor: float | None = 0.0
    ceiling: float | None = 1.0

    def describe(self, ours: Sequence[float] | Floats, theirs: Sequence[float] | Floats) -> str:
        """Return at which end both arms are, in words; empty where they are not.

        An arm is at an end when the mean of its seeds is within :data:`EDGE` of it or beyond, and
        their standard deviation is at most :data:`EDGE_DEVIATION`: the mean of seeds that learned
        and seeds that forgot is no end.

        Args:
            ours: One value per seed of an arm.
            theirs: The other arm's.
        """
        arms = [np.asarray(arm, dtype=np.float64) for arm in (ours, theirs)]
        if self.ceiling is not None and all(_is_above(a, self.ceiling - EDGE) for a in arms):
            return f"{AT_END} ceiling"
        if self.floor is None or not all(_is_above(-a, -self.floor - EDGE) for a in arms):
            return ""
        guess = f" ({self.floor:.3g}, of a policy that has learned nothing)" if self.floor else ""
        return f"{AT_END} floor{guess}"


class RankCorrelation(NamedTuple):
    """Spearman's rank correlation with its 95 % interval and a two-sided p-value.

    The interval's ends are None where nothing that is left out or resampled changes the value: no
    spread is known then, which is not a spread of 0.
    """

    rho: float
    low95: float | None
    high95: float | None
    p: float


def compare_seeds(
    ours: Sequence[float] | Floats,
    theirs: Sequence[float] | Floats,
    *,
    paired: bool = True,
    margin: float = 0.0,
    bound: float | None = None,
) -> SeedTest:
    """Compare two arms by Student's t over their training seeds.

    Args:
        ours: One value per seed, a mean over its tasks.
        theirs: The other arm's; paired: of the same seeds in the same order.
        paired: Whether seeds are paired by position (shared starts and tasks); else Welch's test.
        margin: Difference that the test is against; below 0 tests non-inferiority.
        bound: Differences of at most this size count as equal; None tests no equivalence.

    Raises:
        BadValueError: Fewer than two seeds in an arm, values that are not finite, pairs without a
            partner, or a bound that is not positive.
    """
    first, second = _values(ours, "our"), _values(theirs, "their")
    if bound is not None and not bound > 0:
        raise BadValueError(f"compare_seeds: bound {bound}; expected above 0, or None for no test.")
    if not isfinite(margin):
        raise BadValueError(f"compare_seeds: margin {margin}; expected a finite number.")
    if paired and len(first) != len(second):
        raise BadValueError(
            f"compare_seeds: {len(first)} and {len(second)} seeds; expected pairs. Leave out "
            "seeds that one arm lacks, or say paired=False."
        )
    error, df = _error_paired(first - second) if paired else _error_welch(first, second)
    patterns = _signs(len(first)) if paired else _exchanges(len(first), len(second))
    permutation_p = (
        _flip_p(first - second - margin, patterns)
        if paired
        else _exchange_p(first - margin, second, patterns)
    )
    n, difference = min(len(first), len(second)), float(first.mean() - second.mean())
    rounding = 1e-12 * max(float(np.abs(first).max()), float(np.abs(second).max()), abs(margin))
    if error > rounding:
        from scipy.special import stdtr  # slow to import

        half = _critical(df, LEVEL) * error
        p_value = min(1.0, 2 * float(stdtr(df, -abs(difference - margin) / error)))
        # The larger p-value of the tests against -bound (from above) and +bound (from below).
        within = float(stdtr(df, (abs(difference) - (bound or 0.0)) / error))
    else:
        error, half, least = 0.0, 0.0, 2 / len(patterns)
        p_value = 1.0 if abs(difference - margin) <= rounding else least
        within = least / 2 if abs(difference) < (bound or 0.0) else 1.0
    return SeedTest(
        n=n,
        paired=paired,
        margin=margin,
        difference=difference,
        low95=difference - half,
        high95=difference + half,
        p_value=p_value,
        permutation_p=permutation_p,
        deviation=error * sqrt(n),
        detectable=_detectable(df) * error if error else 0.0,
        equivalence_p=None if bound is None else within,
    )


def seed_interval(values: Sequence[float] | Floats) -> Estimate:
    """Return the mean over seeds with Student's 95 % interval.

    The interval is as good as the mean of the seeds is normal: of few, skewed or saturated values
    it is too narrow. A difference of two arms does not have this weakness.

    Args:
        values: One per seed.

    Raises:
        BadValueError: Fewer than two seeds, or a value that is not finite.
    """
    array = _values(values, "the")
    mean, n = float(array.mean()), len(array)
    half = _critical(n - 1.0, LEVEL) * float(array.std(ddof=1)) / sqrt(n)
    return Estimate(mean=mean, low95=mean - half, high95=mean + half)


def seeds_needed(
    deviation: float, effect: float, *, power: float = POWER, level: float = LEVEL
) -> int:
    """Return the number of seeds with which a true difference is found.

    Args:
        deviation: Standard deviation of the seeds' differences; of two unpaired arms with equal
            deviation, that times the square root of 2.
        effect: The true difference.
        power: Probability of finding it.
        level: Two-sided level of Student's t.

    Returns:
        Pairs of seeds, at least 2.

    Raises:
        BadValueError: A number out of range.
    """
    if not (deviation >= 0 and isfinite(deviation) and effect > 0 and isfinite(effect)):
        raise BadValueError(
            f"seeds_needed: deviation {deviation}, effect {effect}; expected at least 0, above 0."
        )
    if not (0 < level < power < 1):
        raise BadValueError(
            f"seeds_needed: level {level}, power {power}; expected 0 < level < power < 1."
        )
    from scipy.special import ndtri  # slow to import

    ratio = deviation / effect
    shift = float(ndtri(1 - level / 2) + ndtri(power))
    rough = (ratio * shift) ** 2
    if rough > 2_000:  # Student's correction is two seeds there
        return ceil(rough) + 2
    n = max(2, int(rough))
    while ratio > 0 and _power(n, sqrt(n) / ratio, level) < power:
        n += 1
    return n


def decide_seeds(  # noqa: PLR0913 - settings by name
    test: SeedTest,
    adjusted_p: float,
    *,
    min_effect: float,
    bound: float | None,
    family: int = 1,
    edge: str = "",
    show: Show = show_plain,
) -> SeedDecision:
    """Decide a comparison: "above", "below", "equivalent" or "not decided".

    Above (or below) needs all of: at least five seeds; Student's p-value, after the correction for
    its family, at most .05; the 95 % interval beyond the margin; a measured difference of at least
    ``min_effect`` beyond the margin; and the exact permutation test at .05 two-sided. Five pairs
    cannot reach that (2 of 32 patterns of signs are .0625): there every seed must agree. And the
    family must be no larger than the seeds carry (:func:`largest_family`).
    Equivalent needs at least five seeds and two one-sided tests at .05 within the bound. Two arms
    that are both at the floor or at the ceiling of the measure are not decided: that they are equal
    there says nothing about them.

    Args:
        test: The comparison.
        adjusted_p: Its p-value after Holm over the family.
        min_effect: Smallest difference beyond the margin that matters; 0 where any does.
        bound: The bound that ``test`` was given; None for no equivalence.
        family: Comparisons of two trained arms that were corrected together.
        edge: At which end of the measure both arms are (:meth:`Edges.describe`); empty for none.
        show: How the reason writes differences and deviations: as what stands beside it does.

    Raises:
        BadValueError: A bound that the test did not use, or numbers out of range.
    """
    if min_effect < 0 or not 0 <= adjusted_p <= 1:
        raise BadValueError(
            f"decide_seeds: min_effect {min_effect}, adjusted_p {adjusted_p}; expected at least 0 "
            "and a number from 0 to 1."
        )
    if bound is not None and test.equivalence_p is None:
        raise BadValueError(
            f"decide_seeds: bound {bound}, but the test has no equivalence_p; give compare_seeds "
            "the bound."
        )
    if test.n < MIN_SEEDS:
        return SeedDecision(
            "not decided", f"{test.n} seeds; at least {MIN_SEEDS} are needed to decide"
        )
    if edge:
        return SeedDecision("not decided", edge)
    beyond = test.difference - test.margin
    doubt = _doubt(test, adjusted_p, min_effect, show)
    largest = largest_family(test.n)
    if not doubt and family <= largest:
        side: Decision = "above" if beyond > 0 else "below"
        return SeedDecision(side, f"the interval lies {side} {show(test.margin)}")
    if bound is not None and test.equivalence_p is not None and test.equivalence_p <= LEVEL:
        return SeedDecision("equivalent", f"the difference lies within ±{show(bound)}")
    if not doubt:
        needed = next(n for n in count(test.n) if family <= largest_family(n))
        return SeedDecision(
            "not decided",
            f"{test.n} seeds {FEW_FOR_FAMILY} {largest} comparisons, and this one has {family}: "
            f"equal arms of two modes differ so in one of {4**test.n // 2:,}; needs "
            f"{needed} seeds",
        )
    missing = _missing_seeds(test, adjusted_p, min_effect, show)
    return SeedDecision("not decided", f"{doubt}; {missing}")


def rank_correlation(
    x: Sequence[float] | Floats,
    y: Sequence[float] | Floats,
    groups: Sequence[Hashable] | None = None,
) -> RankCorrelation:
    """Return Spearman's rank correlation with a 95 % interval and the p of random permutations.

    Ties have mean ranks. Where one side is constant, there is no order: 0, from -1 to 1, p 1.

    Args:
        x: One value per cell.
        y: The other value of each cell.
        groups: The group of each cell (its environment): values change places within their group
            alone, and the interval is Student's, by the error that leaving out each group in turn
            gives (resampling whole groups is far too sure of itself where there are few). None is
            a percentile bootstrap over cells.

    Raises:
        BadValueError: Fewer than three cells, sides of different length, values that are not
            finite, or fewer than two groups.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    fits = first.ndim == second.ndim == 1 and len(first) == len(second) >= 3
    if not (fits and bool(np.isfinite(first).all() and np.isfinite(second).all())):
        raise BadValueError(
            f"rank_correlation: {first.shape} and {second.shape} values; expected equally many "
            "finite ones, at least three."
        )
    names = list(groups) if groups is not None else list(range(len(first)))
    if len(names) != len(first) or len(set(names)) < 2:
        raise BadValueError(
            f"rank_correlation: {len(names)} groups of {len(first)} cells, {len(set(names))} "
            "different; expected one per cell, at least two different."
        )
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return RankCorrelation(0.0, -1.0, 1.0, 1.0)
    rho = float(_spearman(first[None], second[None])[0])
    rng = np.random.default_rng(0)
    places = [np.arange(len(first))] if groups is None else _places(names)
    if groups is None:
        at = rng.integers(len(first), size=(RESAMPLES, len(first)))
        low, high = np.percentile(_spearman(first[at], second[at]), [2.5, 97.5])
    else:
        reach = _error_by_groups(first, second, places) * _critical(len(places) - 1, LEVEL)
        low, high = max(-1.0, rho - reach), min(1.0, rho + reach)
    shuffled = np.tile(second, (RESAMPLES - 1, 1))
    for mine in places:
        shuffled[:, mine] = rng.permuted(shuffled[:, mine], axis=1)
    found = _spearman(np.broadcast_to(first, shuffled.shape), shuffled)
    p = (1 + int(np.sum(np.abs(found) >= abs(rho) - 1e-12))) / RESAMPLES
    if high - low < 1e-12:
        return RankCorrelation(rho, None, None, p)
    return RankCorrelation(rho, float(min(low, rho)), float(max(high, rho)), p)


def _is_above(arm: Floats, bound: float) -> bool:
    """Return whether the seeds' mean is above a bound, and they lie close together."""
    return float(arm.mean()) > bound and float(arm.std(ddof=1)) <= EDGE_DEVIATION


def _values(values: Sequence[float] | Floats, whose: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2 or not bool(np.isfinite(array).all()):
        raise BadValueError(
            f"seeds: {whose} values are {array.tolist()}; expected at least two seeds with one "
            "finite number each."
        )
    return array


def _error_paired(gaps: Floats) -> tuple[float, float]:
    """Return the standard error of the mean difference and its degrees of freedom."""
    return float(gaps.std(ddof=1)) / sqrt(len(gaps)), len(gaps) - 1.0


def _error_welch(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the same for unpaired arms, after Welch and Satterthwaite."""
    ours, theirs = float(first.var(ddof=1)) / len(first), float(second.var(ddof=1)) / len(second)
    if ours + theirs == 0:
        return 0.0, len(first) + len(second) - 2.0
    spread = ours**2 / (len(first) - 1) + theirs**2 / (len(second) - 1)
    return sqrt(ours + theirs), (ours + theirs) ** 2 / spread


@lru_cache(maxsize=64)
def _signs(n: int) -> Floats:
    """Return patterns of signs, ``[patterns, n]``: all of them, or as many random ones."""
    if 2**n <= EXACT:
        return np.array(list(product((1.0, -1.0), repeat=n)))
    drawn = np.random.default_rng(0).choice([1.0, -1.0], size=(DRAWN + 1, n))
    drawn[0] = 1.0
    return drawn


@lru_cache(maxsize=64)
def _exchanges(ours: int, theirs: int) -> Floats:
    """Return which of all seeds count as ours, ``[exchanges, seeds]``, the real one first."""
    total = ours + theirs
    if comb(total, ours) <= EXACT:
        chosen = [list(c) for c in combinations(range(total), ours)]
        out = np.zeros((len(chosen), total))
        np.put_along_axis(out, np.array(chosen), 1.0, axis=1)
        return out
    rng = np.random.default_rng(0)
    row = np.repeat([1.0, 0.0], [ours, theirs])
    return np.stack([row, *(rng.permutation(row) for _ in range(DRAWN))])


def _flip_p(gaps: Floats, patterns: Floats) -> float:
    return _share_beyond(patterns @ gaps, float(gaps.sum()), float(np.abs(gaps).sum()))


def _exchange_p(first: Floats, second: Floats, patterns: Floats) -> float:
    together = np.concatenate([first, second])
    seen = float(first.sum())
    return _share_beyond(patterns @ together, seen, float(np.abs(together).sum()))


def _share_beyond(sums: Floats, seen: float, size: float) -> float:
    """Return twice the smaller share of permutations at least as extreme as the seen sum."""
    slack = 1e-10 * size
    up, down = np.count_nonzero(sums >= seen - slack), np.count_nonzero(sums <= seen + slack)
    return min(1.0, 2 * min(up, down) / len(sums))


def _doubt(test: SeedTest, adjusted_p: float, min_effect: float, show: Show) -> str:
    """Return why the difference is not established; empty when it is."""
    beyond = test.difference - test.margin
    if test.low95 <= test.margin <= test.high95:
        return f"the interval contains {show(test.margin)}"
    if adjusted_p > LEVEL:
        return f"p is {adjusted_p:.3f} after correction"
    if test.permutation_p > _reachable(test):
        return f"p of the permutation test is {test.permutation_p:.3f}"
    if abs(beyond) < min_effect:
        return f"the difference is smaller than {show(min_effect)}, the least that matters"
    return ""


def largest_family(seeds: int) -> int:
    """Return how many comparisons, corrected together, this number of seeds can decide.

    Where half of the runs learn, all seeds of one arm do and none of the other's in 2 of 4 ** n
    comparisons of equal arms. Their differences hardly deviate then, so Student's p-value is as
    small as one likes. In a family of this size it happens in at most 5 %. (Against a fixed number
    one arm of two modes is on one side in 2 of 2 ** n: there the size of a family is no guard.)
    """
    return 4**seeds // 40


def _reachable(test: SeedTest) -> float:
    """Return the level that the permutation test has to reach: .05, or its smallest p-value."""
    return max(LEVEL, 2.0 ** (1 - test.n)) if test.paired else LEVEL


def _missing_seeds(test: SeedTest, adjusted_p: float, min_effect: float, show: Show) -> str:
    """Return how many seeds which difference needs: the least that matters, not the measured one.

    Where every difference matters, it is one of the measured size.
    The number is of this comparison alone, without the correction for its family.
    """
    beyond = abs(test.difference - test.margin)
    effect = min_effect or beyond
    rounding = 0.0 if min_effect else 1e-9 * test.deviation  # equal means, summed in another order
    if effect <= rounding or (test.deviation == 0 and test.p_value == 1):
        return "no number of seeds separates arms without a difference"
    if test.deviation == 0 and beyond < min_effect:
        return (
            f"all seeds differ by {show(beyond)}, and {show(min_effect)} is the least that matters"
        )
    if test.deviation == 0:
        family = adjusted_p / test.p_value
        return f"needs {max(test.n + 1, ceil(1 + log2(family / LEVEL)))} seeds: all seeds are equal"
    meant = "the least that matters" if min_effect else "the measured size"
    needed = seeds_needed(test.deviation, effect)
    if needed <= test.n:  # enough for the least difference that matters, but it is a close call
        effect, meant = effect / 2, f"half {meant}"
        needed = max(seeds_needed(test.deviation, effect), test.n + 1)
    return (
        f"a difference of {show(effect)}, {meant}, needs {needed:,} seeds at a deviation of "
        f"{show(test.deviation)}"
    )


@lru_cache(maxsize=1024)
def _critical(df: float, level: float) -> float:
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(df, 1 - level / 2))


@lru_cache(maxsize=1024)
def _detectable(df: float) -> float:
    """Return the noncentrality that the two-sided test finds with 80 % power."""
    from scipy.special import nctdtrinc  # slow to import

    return float(nctdtrinc(df, 1 - POWER, _critical(df, LEVEL)))


def _power(n: int, noncentrality: float, level: float) -> float:
    from scipy.special import nctdtr  # slow to import

    return 1 - float(nctdtr(n - 1, noncentrality, _critical(n - 1.0, level)))


def _places(names: Sequence[Hashable]) -> list[npt.NDArray[np.int64]]:
    """Return the cells of every group."""
    members: dict[Hashable, list[int]] = {}
    for at, name in enumerate(names):
        members.setdefault(name, []).append(at)
    return [np.array(found) for found in members.values()]


def _error_by_groups(
    first: Floats, second: Floats, places: Sequence[npt.NDArray[np.int64]]
) -> float:
    """Return the jackknife's standard error of the rank correlation, a group left out at a time."""
    without = []
    for mine in places:
        kept = np.delete(np.arange(len(first)), mine)
        without.append(float(_spearman(first[kept][None], second[kept][None])[0]))
    n = len(places)
    return float(np.std(without)) * sqrt(n - 1)


def _spearman(first: Floats, second: Floats) -> Floats:
    """Return the correlations of mean ranks of ``[samples, cells]``; 0 where a side is constant."""
    from scipy.stats import rankdata  # slow to import

    ranks: Any = rankdata(np.stack([first, second]), axis=-1)
    centred = ranks - ranks.mean(axis=-1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=-1)).prod(axis=0)
    together = centred.prod(axis=0).sum(axis=-1)
    return np.divide(together, lengths, out=np.zeros_like(together), where=lengths > 0)
