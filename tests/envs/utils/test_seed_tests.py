"""Comparisons over seeds: numbers of scipy and of hand, degenerate inputs, laws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nct, spearmanr, ttest_1samp, ttest_ind, ttest_rel
from scipy.stats import t as student

from turngym.envs.core.errors import BadValueError
from turngym.envs.utils import seed_tests
from turngym.envs.utils.seed_tests import (
    Edges,
    SeedTest,
    compare_seeds,
    decide_seeds,
    largest_family,
    rank_correlation,
    seed_interval,
    seeds_needed,
    show_points,
)
from turngym.envs.utils.statistics import holm

OURS = [0.61, 0.70, 0.58, 0.66, 0.72, 0.60]
THEIRS = [0.52, 0.55, 0.57, 0.50, 0.61, 0.49]


def decided(test: SeedTest, min_effect: float = 0.05, bound: float | None = None):
    return decide_seeds(test, test.p_value, min_effect=min_effect, bound=bound)


def test_pairs_are_scipys_paired_t_test() -> None:
    got, want = compare_seeds(OURS, THEIRS), ttest_rel(OURS, THEIRS)
    ends = want.confidence_interval(0.95)
    assert (got.n, got.paired) == (6, True)
    assert got.p_value == pytest.approx(want.pvalue)
    assert (got.low95, got.high95) == pytest.approx((ends.low, ends.high))
    assert got.deviation == pytest.approx(np.std(np.subtract(OURS, THEIRS), ddof=1))
    assert got.permutation_p == pytest.approx(2 / 64)  # all six agree
    assert decided(got) == ("above", "the interval lies above 0")
    assert decided(compare_seeds(THEIRS, OURS)).verdict == "below"


def test_unpaired_arms_are_scipys_welch_test() -> None:
    got = compare_seeds(OURS, THEIRS[:5], paired=False)
    want = ttest_ind(OURS, THEIRS[:5], equal_var=False)
    ends = want.confidence_interval(0.95)
    assert (got.n, got.paired) == (5, False)
    assert got.p_value == pytest.approx(want.pvalue)
    assert (got.low95, got.high95) == pytest.approx((ends.low, ends.high))
    assert decided(got).verdict == "above"
    # of 462 exchanges five are as extreme: none, .61 for .58, .60 or .61, and .61, .57 for .60, .58
    assert got.permutation_p == pytest.approx(2 * 5 / 462)


def test_the_margin_moves_the_test_and_not_the_interval() -> None:
    plain, moved = compare_seeds(OURS, THEIRS), compare_seeds(OURS, THEIRS, margin=0.1)
    assert (moved.low95, moved.high95) == (plain.low95, plain.high95)
    assert moved.p_value == pytest.approx(ttest_1samp(np.subtract(OURS, THEIRS), 0.1).pvalue)
    assert decided(moved).verdict == "not decided"
    better_than_nothing = compare_seeds(THEIRS, OURS, margin=-0.3)
    assert decided(better_than_nothing) == ("above", "the interval lies above -0.3")


def test_detectable_is_what_80_percent_power_finds() -> None:
    got = compare_seeds(OURS, THEIRS)
    shift = got.detectable / (got.deviation / math.sqrt(6))
    critical = student.ppf(0.975, 5)
    assert 1 - nct.cdf(critical, 5, shift) == pytest.approx(0.8, abs=1e-6)


def test_detectable_holds_in_simulation() -> None:
    rng = np.random.default_rng(0)
    gaps = rng.normal(0.0, 1.0, (1500, 7))
    nothing = np.zeros(7)
    effect = compare_seeds(gaps[0], nothing).detectable / compare_seeds(gaps[0], nothing).deviation
    found = [compare_seeds(row + effect, nothing).p_value <= 0.05 for row in gaps]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("deviation", "effect", "low", "high"),
    [
        (0.35 * 2**0.5, 0.05, 768, 774),
        (0.35 * 2**0.5, 0.17, 66, 70),
        (0.02 * 2**0.5, 0.03, 9, 10),
        (1.0, 0.01, 78_480, 78_500),
        (0.0, 0.1, 2, 2),
    ],
)
def test_seeds_needed(deviation: float, effect: float, low: int, high: int) -> None:
    assert low <= seeds_needed(deviation, effect) <= high


def test_seeds_needed_reach_the_power_and_one_less_does_not() -> None:
    needed = seeds_needed(0.1, 0.08)
    power = {
        n: 1 - nct.cdf(student.ppf(0.975, n - 1), n - 1, 0.8 * math.sqrt(n))
        for n in (needed - 1, needed)
    }
    assert power[needed - 1] < 0.8 <= power[needed]
    assert seeds_needed(0.1, 0.08, power=0.95) > needed > seeds_needed(0.1, 0.08, level=0.2)
    # at the limit of the exact rule the normal one goes on from there
    assert seeds_needed(1.0, 0.0627) - seeds_needed(1.0, 0.0626) in range(-8, 1)


def test_two_one_sided_tests() -> None:
    gaps = np.array([0.01, -0.02, 0.0, 0.015, -0.01])
    got = compare_seeds(gaps, np.zeros(5), bound=0.04)
    sides = (
        ttest_1samp(gaps, -0.04, alternative="greater").pvalue,
        ttest_1samp(gaps, 0.04, alternative="less").pvalue,
    )
    assert got.equivalence_p == pytest.approx(max(sides))
    assert decided(got, bound=0.04) == ("equivalent", "the difference lies within ±0.04")
    assert decided(compare_seeds(gaps, np.zeros(5), bound=0.012), bound=0.012).verdict == (
        "not decided"
    )
    # a large difference is never equivalent, whatever its p-value
    far = compare_seeds(gaps + 0.3, np.zeros(5), bound=0.04)
    assert far.equivalence_p is not None
    assert far.equivalence_p > 0.99
    assert decided(far, bound=0.04).verdict == "above"


def test_equal_seeds_have_the_smallest_p_of_the_permutations() -> None:
    five = compare_seeds([0.9] * 5, [0.5] * 5, bound=0.1)
    assert (five.low95, five.high95, five.deviation, five.detectable) == (0.4, 0.4, 0.0, 0.0)
    assert five.p_value == five.permutation_p == 2 / 32
    assert five.equivalence_p == 1.0
    verdict, why = decided(five)
    assert verdict == "not decided"
    assert "needs 6 seeds" in why
    assert decided(compare_seeds([0.9] * 6, [0.5] * 6)).verdict == "above"
    same = compare_seeds([0.5] * 5, [0.5] * 5, bound=0.1)
    assert (same.p_value, same.equivalence_p) == (1.0, 1 / 32)
    assert decided(same, bound=0.1).verdict == "equivalent"
    # rounding alone is no deviation
    steps = compare_seeds([0.1 + 0.2, 0.3, 0.6 - 0.3, 0.3, 0.3], [0.1] * 5)
    assert steps.deviation == 0.0
    apart = compare_seeds([0.9] * 5, [0.5] * 5, paired=False)
    assert apart.p_value == pytest.approx(2 / 252)


def test_no_seeds_are_asked_for_where_all_are_equal_and_more_say_the_same() -> None:
    """Ten seeds without any difference "needed 11", and so did a difference too small to matter."""
    same = decided(compare_seeds([0.5] * 10, [0.5] * 10))
    assert same == (
        "not decided",
        "the interval contains 0; no number of seeds separates arms without a difference",
    )
    arms = [0.5, 0.6, 0.7, 0.8, 0.9], [0.49, 0.59, 0.69, 0.79, 0.89]
    small = decided(compare_seeds(*arms))
    assert small == (
        "not decided",
        "p is 0.062 after correction; all seeds differ by 0.01, and 0.05 is the least that matters",
    )
    assert decided(compare_seeds(*arms), min_effect=0.0).why.endswith(
        "needs 6 seeds: all seeds are equal"
    )


def test_a_difference_of_rounding_alone_needs_no_seeds() -> None:
    """The same values in another order have means that differ by 1e-16: it asked for 1e32 seeds."""
    arms = [0.12, 0.33, 0.72, 0.71, 0.94, 0.42], [0.12, 0.71, 0.94, 0.72, 0.33, 0.42]
    test = compare_seeds(*arms)
    assert 0 < abs(test.difference) < 1e-15
    why = decided(test, min_effect=0.0).why
    assert why.endswith("no number of seeds separates arms without a difference")


def test_few_seeds_decide_nothing() -> None:
    two = compare_seeds([0.9, 0.91], [0.1, 0.1], bound=0.1)
    assert two.p_value < 0.05
    assert decided(two, bound=0.1) == ("not decided", "2 seeds; at least 5 are needed to decide")
    four = compare_seeds([0.5, 0.5001, 0.5, 0.4999], [0.5] * 4, bound=0.1)
    assert decided(four, bound=0.1).verdict == "not decided"


def test_five_pairs_must_agree() -> None:
    mostly = compare_seeds([1.0, 1.0, 1.0, 1.0, -0.01], [0.0] * 5)
    assert mostly.p_value < 0.05
    assert mostly.permutation_p == pytest.approx(2 * 2 / 32)
    verdict, why = decided(mostly)
    assert verdict == "not decided"
    assert why.startswith("p of the permutation test is 0.125; a difference of ")


def test_reasons_name_what_is_missing() -> None:
    noisy = compare_seeds([0.9, 0.2, 0.8, 0.3, 0.95], [0.5, 0.6, 0.2, 0.7, 0.4])
    assert decided(noisy).why.startswith("the interval contains 0; a difference of ")
    assert ", the least that matters, needs " in decided(noisy).why
    assert f"at a deviation of {noisy.deviation:.3g}" in decided(noisy).why
    clear = compare_seeds(OURS, THEIRS)
    assert (
        "p is 0.070 after correction" in decide_seeds(clear, 0.07, min_effect=0.05, bound=None)[1]
    )
    small = decided(clear, min_effect=0.2).why
    assert small.startswith("the difference is smaller than 0.2, the least that matters")
    # six seeds are enough for .2, so the next question is half of it
    halved, whole = (
        "; a difference of 0.1, half the least that matters, needs ",
        "; a difference of 0.2, the least that matters, needs ",
    )
    assert halved in small or whole in small


def test_reasons_are_in_the_units_of_what_stands_beside_them() -> None:
    """They named shares beside points, and seeds as if the measured difference needed them."""
    noisy = compare_seeds([0.9, 0.2, 0.8, 0.3, 0.95], [0.5, 0.6, 0.2, 0.7, 0.4], bound=0.02)
    why = decide_seeds(noisy, 1.0, min_effect=0.02, bound=0.02, show=show_points).why
    needed = seeds_needed(noisy.deviation, 0.02)
    assert why == (
        "the interval contains 0; a difference of 2 points, the least that matters, needs "
        f"{needed:,} seeds at a deviation of {100 * noisy.deviation:.3g} points"
    )
    same = compare_seeds([0.5, 0.501, 0.5, 0.5, 0.499], [0.5] * 5, bound=0.03)
    equal = decide_seeds(same, 1.0, min_effect=0.0, bound=0.03, show=show_points)
    assert equal == ("equivalent", "the difference lies within ±3 points")
    assert [show_points(share) for share in (0.0, 0.01, 0.0397)] == ["0", "1 point", "3.97 points"]


@pytest.mark.parametrize(
    ("ours", "theirs", "more", "says"),
    [
        ([1.0], [0.0], {}, "at least two seeds"),
        ([], [], {}, "at least two seeds"),
        ([1.0, math.nan], [0.0, 0.0], {}, "finite"),
        ([1.0, 2.0], [0.0, 0.0, 0.0], {}, "paired=False"),
        ([1.0, 2.0], [0.0, 0.0], {"bound": 0.0}, "above 0"),
        ([1.0, 2.0], [0.0, 0.0], {"margin": math.inf}, "margin"),
    ],
)
def test_what_cannot_be_compared(ours, theirs, more, says) -> None:
    with pytest.raises(BadValueError, match=says):
        compare_seeds(ours, theirs, **more)


def test_bad_numbers() -> None:
    for deviation, effect, more in (
        (-1, 1, {}),
        (1, 0, {}),
        (1, math.inf, {}),
        (1, 1, {"power": 0.01}),
        (1, 1, {"level": 0}),
    ):
        with pytest.raises(BadValueError, match="seeds_needed"):
            seeds_needed(deviation, effect, **more)
    test = compare_seeds(OURS, THEIRS)
    with pytest.raises(BadValueError, match="no equivalence_p"):
        decide_seeds(test, 0.5, min_effect=0.1, bound=0.1)
    with pytest.raises(BadValueError, match="min_effect"):
        decide_seeds(test, 0.5, min_effect=-0.1, bound=None)
    with pytest.raises(BadValueError, match="at least two"):
        seed_interval([1.0])


def test_the_interval_of_one_arm() -> None:
    got, want = seed_interval(OURS), ttest_1samp(OURS, 0.0).confidence_interval(0.95)
    assert (got.low95, got.high95) == pytest.approx((want.low, want.high))
    flat = seed_interval([0.5] * 5)
    assert (flat.mean, flat.low95, flat.high95) == (0.5, 0.5, 0.5)


VALUES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda p: (p[0] / 20, p[1] / 20)),
    min_size=2,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(VALUES, st.booleans())
def test_arms_change_places(pairs: list[tuple[float, float]], paired: bool) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    one = compare_seeds(ours, theirs, paired=paired, bound=0.1)
    back = compare_seeds(theirs, ours, paired=paired, bound=0.1)
    assert one.difference == pytest.approx(-back.difference)
    assert (one.low95, one.high95) == pytest.approx((-back.high95, -back.low95))
    for name in ("p_value", "permutation_p", "deviation", "detectable", "equivalence_p"):
        assert getattr(one, name) == pytest.approx(getattr(back, name), abs=1e-9)
    verdicts = {decided(one, bound=0.1).verdict, decided(back, bound=0.1).verdict}
    assert verdicts in ({"above", "below"}, {"equivalent"}, {"not decided"})


SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(0.5, 0.1, size),
    "bimodal": lambda rng, size: rng.choice([0.25, 0.92], size) + rng.normal(0, 0.05, size),
    "skewed": lambda rng, size: rng.beta(0.4, 3.0, size),
    "tied": lambda rng, size: rng.binomial(4, 0.3, size) / 4,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n", "paired"), [(5, True), (10, True), (5, False)])
def test_equal_arms_are_seldom_told_apart(shape: str, n: int, paired: bool) -> None:
    arms = SHAPES[shape](np.random.default_rng(3), (2000, 2, n))
    tests = [compare_seeds(ours, theirs, paired=paired) for ours, theirs in arms]
    assert np.mean([t.p_value <= 0.05 for t in tests]) <= 0.06
    assert np.mean([t.low95 <= 0 <= t.high95 for t in tests]) >= 0.94
    assert np.mean([decided(t, 0.0).verdict == "above" for t in tests]) <= 0.025


def blocks(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Runs of two modes: half of them learn."""
    return rng.choice([0.2, 0.9], size) + rng.normal(0, 0.02, size)


@pytest.mark.parametrize("paired", [True, False])
def test_equal_arms_of_two_modes_are_seldom_told_apart_in_a_family(
    paired: bool,
) -> None:
    family = 45
    claims = blocks(np.random.default_rng(family), (300, family, 2, 5))
    told_apart = 0
    for arms in claims:
        tests = [compare_seeds(ours, theirs, paired=paired) for ours, theirs in arms]
        adjusted = holm([test.p_value for test in tests])
        verdicts = [
            decide_seeds(test, p, min_effect=0.0, bound=None, family=family).verdict
            for test, p in zip(tests, adjusted, strict=True)
        ]
        told_apart += verdicts.count("not decided") < family
    assert told_apart / len(claims) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(claims))


def test_few_seeds_do_not_decide_in_large_families() -> None:
    assert [largest_family(n) for n in (5, 6, 7, 10)] == [25, 102, 409, 26214]
    assert largest_family(600) > 10**300
    clear = compare_seeds([0.90, 0.91, 0.92, 0.90, 0.91], [0.20, 0.21, 0.22, 0.21, 0.20])
    found = {m: decide_seeds(clear, 0.001, min_effect=0.05, bound=None, family=m) for m in (25, 26)}
    assert found[25].verdict == "above"
    assert found[26] == (
        "not decided",
        "5 seeds decide in families of at most 25 comparisons, and this one has 26: equal arms of "
        "two modes differ so in one of 512; needs 6 seeds",
    )
    within = decide_seeds(
        compare_seeds(OURS[:5], OURS[1:], bound=0.5), 0.9, min_effect=0.05, bound=0.5, family=99
    )
    assert within.verdict == "equivalent"


def test_arms_at_the_bound_are_seldom_equivalent() -> None:
    arms = np.random.default_rng(4).normal(0.5, 0.01, (3000, 2, 6))
    found = [
        compare_seeds(ours + 0.02, theirs, bound=0.02).equivalence_p <= 0.05
        for ours, theirs in arms
    ]
    assert np.mean(found) <= 0.06


def test_many_seeds_use_drawn_permutations() -> None:
    rng = np.random.default_rng(5)
    ours, theirs = rng.normal(0.6, 0.1, 40), rng.normal(0.5, 0.1, 40)
    for paired in (True, False):
        got = compare_seeds(ours, theirs, paired=paired)
        assert got.permutation_p == pytest.approx(got.p_value, abs=0.01)
        assert got == compare_seeds(ours, theirs, paired=paired)


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=40)
    y = x + rng.normal(size=40)
    got = rank_correlation(x, y)
    assert got.rho == pytest.approx(spearmanr(x, y).statistic)
    assert got.low95 is not None
    assert got.high95 is not None
    assert got.low95 < got.rho < got.high95
    assert got.p <= 0.001
    assert got == rank_correlation(x, y)
    assert rank_correlation(x, -y).rho == pytest.approx(-got.rho)
    ties = rank_correlation([1, 1, 2, 3, 3], [2, 1, 1, 5, 4])
    assert ties.rho == pytest.approx(spearmanr([1, 1, 2, 3, 3], [2, 1, 1, 5, 4]).statistic)


def test_groups_widen_the_interval_of_a_rank_correlation() -> None:
    """Where cells of a group are copies, there are as many values as groups."""
    rng = np.random.default_rng(7)
    x = np.repeat(rng.normal(size=8), 10)
    y = np.repeat(x[::10] + rng.normal(size=8), 10)
    groups = np.repeat(np.arange(8), 10).tolist()
    cells, grouped = rank_correlation(x, y), rank_correlation(x, y, groups)
    assert cells.rho == grouped.rho
    assert cells.low95 is not None
    assert cells.high95 is not None
    assert grouped.low95 is not None
    assert grouped.high95 is not None
    assert grouped.high95 - grouped.low95 > 1.5 * (cells.high95 - cells.low95)
    assert grouped.p > cells.p


@pytest.mark.parametrize("groups", [2, 3, 5, 8])
def test_groups_of_nothing_are_rarely_called_ordered(
    groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resampling whole groups said p <= .05 in 46 % with two of them, and in 9 with eight."""
    monkeypatch.setattr(seed_tests, "RESAMPLES", 200)
    rng, names = np.random.default_rng(groups), np.repeat(np.arange(groups), 7).tolist()
    called = covered = 0
    for _ in range(300):
        x, y = (np.concatenate([rng.permutation(7) for _ in range(groups)]) for _ in range(2))
        found = rank_correlation(x.tolist(), y.tolist(), names)
        called += found.p <= 0.05
        low, high = found.low95, found.high95
        covered += low is None or high is None or low <= 0 <= high
    assert called <= 0.08 * 300  # 5 % of 300, and two and a half deviations
    assert covered >= 0.91 * 300


@pytest.mark.parametrize("groups", [["a"] * 3 + ["b"] * 3, None])
def test_an_order_that_nothing_left_out_changes_has_no_interval(groups: list[str] | None) -> None:
    """Two environments in perfect order were said to be 1.00 to 1.00."""
    found = rank_correlation([1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 3], groups)
    assert (found.rho, found.low95, found.high95) == (pytest.approx(1.0), None, None)
    assert found.p < 1


def test_what_has_no_order() -> None:
    assert rank_correlation([1.0] * 5, [1, 2, 3, 4, 5]) == (0.0, -1.0, 1.0, 1.0)
    for x, y, groups in (
        ([1, 2], [1, 2], None),
        ([1, 2, 3], [1, 2], None),
        ([1, 2, math.nan], [1, 2, 3], None),
        ([1, 2, 3], [1, 2, 3], ["a", "a", "a"]),
        ([1, 2, 3], [1, 2, 3], ["a", "b"]),
    ):
        with pytest.raises(BadValueError, match="rank_correlation"):
            rank_correlation(x, y, groups)


@pytest.mark.parametrize(
    ("edges", "ours", "theirs", "says"),
    [
        (Edges(), [0.0] * 5, [0.02] * 5, "both arms are at the floor"),
        (Edges(), [0.0] * 5, [0.04] * 5, ""),
        (Edges(), [1.0] * 5, [0.98] * 5, "both arms are at the ceiling"),
        (Edges(), [1.0] * 5, [0.0] * 5, ""),
        (Edges(1 / 3), [0.35] * 5, [0.2] * 5, "both arms are at the floor (0.333, of a policy"),
        (Edges(1 / 3), [0.4] * 5, [0.33] * 5, ""),
        (Edges(0.0, 0.5), [0.49] * 5, [0.48] * 5, "both arms are at the ceiling"),
        (Edges(None, None), [0.0] * 5, [0.0] * 5, ""),
        # half of the seeds learned and half forgot: a mean at the floor is none
        (Edges(0.25), [0.25] * 6, [0.1, 0.1, 0.1, 0.35, 0.35, 0.35], ""),
        # one seed in five that found something is no arm that did
        (Edges(), [0.0, 0.0, 0.0, 0.0, 0.06], [0.0] * 5, "both arms are at the floor"),
    ],
)
def test_arms_at_the_same_end_are_not_equal_but_not_compared(
    edges: Edges, ours: list[float], theirs: list[float], says: str
) -> None:
    edge = edges.describe(ours, theirs)
    assert edge.startswith(says)
    assert bool(edge) == bool(says)
    assert edges.describe(theirs, ours) == edge
    test = compare_seeds(ours, theirs, bound=0.5)
    found = decide_seeds(test, 1.0, min_effect=0.5, bound=0.5, edge=edge)
    assert found.verdict == ("not decided" if says else decided(test, 0.5, 0.5).verdict)
    few = compare_seeds(ours[:3], theirs[:3], bound=0.5)
    assert "seeds" in decide_seeds(few, 1.0, min_effect=0.5, bound=0.5, edge=edge).why
