"""Statistics: numbers worked out by hand, and laws."""

from __future__ import annotations

import itertools
import tracemalloc
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, multinomial

from turngym.envs.core.errors import BadValueError
from turngym.envs.utils import statistics
from turngym.envs.utils.statistics import (
    bootstrap_mean,
    estimate_of_means,
    estimate_scores,
    estimate_share,
    holm,
    mcnemar_p,
    over_runs,
    paired,
    paired_mean,
    paired_share,
    pass_all,
    pass_at,
    share_gain,
    sign_flip_p,
    student_mean,
    task_gaps,
)


def test_paired_by_hand() -> None:
    # five tasks, all better: of the 32 sign patterns only two are as extreme
    got = paired([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0])
    assert got.n == 6
    assert got.difference == pytest.approx(5 / 6)
    assert got.p_value == pytest.approx(2 / 32)
    assert 0 < got.low95 < got.difference <= got.high95 <= 1


def test_the_same_agents_do_not_differ() -> None:
    assert paired([0.5, 1.0], [0.5, 1.0]) == (2, 0.0, 0.0, 0.0, 1.0, 1.0)
    # nor do those whose rewards add up in another order: eight last digits made p .008
    assert paired([0.1 + 0.2] * 8, [0.3] * 8) == (8, 0.0, 0.0, 0.0, 1.0, 1.0)
    assert task_gaps([1e6 + 1e-6, 0.5], [1e6, 0.25]) == [0.0, 0.25]


def test_one_difference_proves_nothing() -> None:
    got = paired([1.0, 1.0], [0.0, 1.0])
    assert (got.difference, got.p_value) == (0.5, 1.0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=8))
def test_paired_is_antisymmetric(pairs: list[tuple[int, int]]) -> None:
    ours, theirs = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    one, other = paired(ours, theirs), paired(theirs, ours)
    assert one.difference == pytest.approx(-other.difference)
    assert one.p_value == pytest.approx(other.p_value)
    assert 0 < one.p_value <= 1


def test_mcnemar_by_hand() -> None:
    assert mcnemar_p(0, 0) == 1.0
    assert mcnemar_p(3, 3) == 1.0
    assert mcnemar_p(5, 0) == pytest.approx(2 / 2**5)
    # 8 of 10 up: (1 + 10 + 45) patterns of 1024 at either end
    assert mcnemar_p(8, 2) == pytest.approx(2 * 56 / 1024)
    assert mcnemar_p(2, 8) == mcnemar_p(8, 2)
    with pytest.raises(BadValueError, match="-1 gained and 2 lost"):
        mcnemar_p(-1, 2)


def test_a_paired_share_by_hand() -> None:
    ours, theirs = [True] * 8 + [False] * 2 + [True] * 10, [False] * 8 + [True] * 2 + [True] * 10
    # mean 6/20; the squares sum to 10, so the variance is (10 - 20 * 0.09) / 19
    error = ((10 - 20 * 0.09) / 19 / 20) ** 0.5
    got = paired_share(ours, theirs)
    assert got.mean == pytest.approx(0.3)
    assert got.low95 == pytest.approx(0.3 - 2.0930240544 * error)  # t of 19 degrees of freedom
    assert got.high95 == pytest.approx(0.3 + 2.0930240544 * error)


def test_a_paired_share_without_a_deviation_has_the_exact_bound() -> None:
    alike = paired_share([True, False] * 10, [True, False] * 10)
    bound = binomtest(0, 20).proportion_ci(0.95, method="exact").high
    assert (alike.mean, alike.low95, alike.high95) == pytest.approx((0, -bound, bound))
    assert bound == pytest.approx(0.168, abs=5e-4)
    all_gained = paired_share([True] * 20, [False] * 20)
    assert (all_gained.low95, all_gained.high95) == pytest.approx((1 - 2 * bound, 1))
    all_lost = paired_share([False] * 20, [True] * 20)
    assert (all_lost.low95, all_lost.high95) == pytest.approx((-1, 2 * bound - 1))


def test_the_interval_of_a_paired_share_holds_the_truth_as_often_as_the_docs_say() -> None:
    n = 30
    counts = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    # gained, lost, and neither
    outcomes = [([1] * b + [0] * (n - b), [0] * b + [1] * c + [0] * (n - b - c)) for b, c in counts]
    found = [paired_share([x > 0 for x in o], [x > 0 for x in t]) for o, t in outcomes]
    for gained, lost, least, most in (
        (0.9, 0.01, 0.87, 0.88),
        (0.02, 0.01, 0.95, 1.0),
        (0.2, 0.1, 0.94, 0.96),
        (0.4, 0.4, 0.94, 0.96),
    ):
        cells = [(b, c, n - b - c) for b, c in counts]
        chances = multinomial.pmf(cells, n, [gained, lost, 1 - gained - lost])
        truth = gained - lost
        inside = [f.low95 - 1e-12 <= truth <= f.high95 + 1e-12 for f in found]
        assert least < float(np.sum(chances * np.asarray(inside))) < most


def test_the_interval_of_a_paired_share_is_at_its_worst_where_few_tasks_are_gained() -> None:
    n, gained = 100, 0.03
    found = [paired_share([True] * b + [False] * (n - b), [False] * n) for b in range(n + 1)]
    inside = [f.low95 - 1e-12 <= gained <= f.high95 + 1e-12 for f in found]
    chances = binom.pmf(range(n + 1), n, gained)
    assert float(np.sum(chances * np.asarray(inside))) == pytest.approx(0.85, abs=0.002)


def test_a_paired_mean_by_hand() -> None:
    # differences 1, 2, 3: mean 2, deviation 1, t of two degrees of freedom 4.3027
    got = paired_mean([2.0, 2.5, 3.5], [1.0, 0.5, 0.5])
    assert got is not None
    half = 4.302652729911275 / 3**0.5
    assert (got.mean, got.low95, got.high95) == pytest.approx((2, 2 - half, 2 + half))
    assert paired_mean([1.0, 2.0], [0.5, 1.5]) is None
    assert paired_mean([0.1 + 0.2, 1.3], [0.3, 1.3]) is None  # they differ by rounding alone
    assert paired_mean([1.0], [0.5]) is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_a_paired_share_changes_its_sign_with_the_agents(pairs: list[tuple[bool, bool]]) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = paired_share(ours, theirs), paired_share(theirs, ours)
    assert one.mean == pytest.approx(-other.mean)
    assert (one.low95, one.high95) == pytest.approx((-other.high95, -other.low95))
    assert -1 <= one.low95 <= one.mean <= one.high95 <= 1
    assert one.low95 < one.high95


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    with pytest.raises(BadValueError, match="holm"):
        holm([1.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers(p: list[float]) -> None:
    got = holm(p)
    assert all(a >= b for a, b in zip(got, p, strict=True))
    order = np.argsort(p, kind="stable")
    assert list(np.array(got)[order]) == sorted(got)


@pytest.mark.parametrize("bad", [([], []), ([1.0], [1.0, 2.0])])
def test_comparisons_need_both_sides(bad: tuple[list[float], list[float]]) -> None:
    for test in (paired, paired_mean, paired_share):
        with pytest.raises(BadValueError, match="paired"):
            test(*bad)


def test_passes_by_hand() -> None:
    assert pass_at(1, 4, 2) == 0.5  # 3 of the 6 pairs hold the solved try
    assert pass_all(3, 4, 2) == 0.5  # 3 of the 6 pairs are solved
    assert pass_at(0, 3, 3) == pass_all(2, 3, 3) == 0.0
    assert pass_at(1, 3, 3) == pass_all(3, 3, 3) == 1.0


@given(st.integers(1, 12), st.data())
def test_passes_are_means_over_all_choices(tries: int, data: st.DataObject) -> None:
    solved, k = data.draw(st.integers(0, tries)), data.draw(st.integers(1, tries))
    some, every = pass_at(solved, tries, k), pass_all(solved, tries, k)
    assert 0 <= every <= solved / tries + 1e-12 <= some + 1e-9 <= 1 + 1e-9
    # none of k solved is the same as all of k unsolved
    assert 1 - some == pytest.approx(pass_all(tries - solved, tries, k))
    assert pass_at(solved, tries, 1) == pytest.approx(solved / tries)
    assert every == comb(solved, k) / comb(tries, k)


@pytest.mark.parametrize("bad", [(4, 3, 1), (-1, 3, 1), (1, 3, 0), (1, 3, 4), (0, 0, 1)])
def test_passes_refuse_what_does_not_fit(bad: tuple[int, int, int]) -> None:
    for rule in (pass_at, pass_all):
        with pytest.raises(BadValueError, match="pass@k"):
            rule(*bad)


@settings(max_examples=40)
@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_pass_at_and_pass_all_count_every_choice_of_trials(case: tuple[int, int, int]) -> None:
    n, c, k = case
    outcomes = [True] * c + [False] * (n - c)
    choices = list(itertools.combinations(outcomes, k))
    assert pass_at(c, n, k) == pytest.approx(np.mean([any(chosen) for chosen in choices]))
    assert pass_all(c, n, k) == pytest.approx(np.mean([all(chosen) for chosen in choices]))


def test_pass_at_one_is_the_share() -> None:
    assert pass_at(3, 4, 1) == pass_all(3, 4, 1) == 0.75
    assert pass_at(3, 4, 2) == 1.0
    assert pass_all(3, 4, 2) == 0.5


def test_every_world_weighs_the_same() -> None:
    found = bootstrap_mean([[0.0, 1.0], [1.0] * 100])
    assert found.mean == 0.75
    assert (found.low95, found.high95) == (0.5, 1.0)


def test_a_bootstrap_interval_is_near_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 200)
    found = bootstrap_mean([values.tolist()])
    half = 1.96 * values.std() / 200**0.5
    assert found.mean == pytest.approx(values.mean())
    assert found.low95 == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert found.high95 == pytest.approx(values.mean() + half, abs=0.2 * half)
    assert found == bootstrap_mean([values.tolist()])


def test_equal_samples_have_no_width() -> None:
    assert bootstrap_mean([[1.0, 1.0], [0.5]]).model_dump() == {
        "mean": 0.75,
        "low95": 0.75,
        "high95": 0.75,
    }
    for samples in ([], [[1.0], []]):
        with pytest.raises(BadValueError):
            bootstrap_mean(samples)


OUTCOMES = st.lists(st.sampled_from((0.0, 1.0)), min_size=1, max_size=20)


@given(st.lists(OUTCOMES, min_size=1, max_size=3), st.floats(0.1, 0.9))
def test_scores_of_nought_and_one_are_shares_and_others_are_resampled(
    samples: list[list[float]], part: float
) -> None:
    assert estimate_scores(samples) == estimate_share(samples)
    mixed = [*samples, [part, 1.0]]
    assert estimate_scores(mixed) == estimate_of_means(mixed)
    assert estimate_scores([]) == estimate_scores([[]]) == estimate_of_means([])


@settings(max_examples=40)
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_a_share_has_the_exact_interval(case: tuple[int, int]) -> None:
    n, k = case
    found = estimate_share([[1.0] * k + [0.0] * (n - k)])
    exact = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert found.mean == pytest.approx(k / n)
    assert (found.low95, found.high95) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_none_of_24_may_be_one_in_seven() -> None:
    none, every = estimate_share([[0.0] * 24]), estimate_share([[1.0] * 24])
    assert (none.mean, none.low95, none.high95) == pytest.approx((0, 0, 1 - 0.025 ** (1 / 24)))
    assert (every.low95, every.mean, every.high95) == pytest.approx((0.025 ** (1 / 24), 1, 1))
    assert none.high95 == pytest.approx(0.142, abs=5e-4)


@pytest.mark.parametrize("sizes", [(8,), (24,), (60,), (8, 8), (5, 40), (20, 30)])
@pytest.mark.parametrize("shares", [(0.01, 0.01), (0.05, 0.3), (0.5, 0.5), (0.9, 0.2), (0.99, 1.0)])
def test_an_interval_of_shares_holds_the_truth(
    sizes: tuple[int, ...], shares: tuple[float, float]
) -> None:
    shares_here = shares[: len(sizes)]
    truth, covered = np.mean(shares_here), 0.0
    for solved in itertools.product(*(range(n + 1) for n in sizes)):
        parts = zip(solved, sizes, shares_here, strict=True)
        weight = np.prod([binom.pmf(k, n, p) for k, n, p in parts])
        if weight < 1e-9:
            continue
        samples = [[1.0] * k + [0.0] * (n - k) for k, n in zip(solved, sizes, strict=True)]
        found = estimate_share(samples)
        covered += weight * (found.low95 - 1e-12 <= truth <= found.high95 + 1e-12)
    assert covered >= 0.94


@pytest.mark.parametrize(("n", "m"), [(10, 10), (24, 40)])
@pytest.mark.parametrize("shares", [(0.02, 0.02), (0.1, 0.6), (0.5, 0.5), (0.4, 0.97)])
def test_an_interval_of_a_gain_holds_the_truth(n: int, m: int, shares: tuple[float, float]) -> None:
    truth, covered = shares[1] - shares[0], 0.0
    for k, j in itertools.product(range(n + 1), range(m + 1)):
        before = estimate_share([[1.0] * k + [0.0] * (n - k)])
        after = estimate_share([[1.0] * j + [0.0] * (m - j)])
        found, back = share_gain(before, after), share_gain(after, before)
        assert found.mean == pytest.approx(j / m - k / n)
        assert (found.low95, found.high95) == pytest.approx((-back.high95, -back.low95))
        weight = binom.pmf(k, n, shares[0]) * binom.pmf(j, m, shares[1])
        covered += weight * (found.low95 <= truth <= found.high95)
    assert covered >= 0.95


def test_shares_are_of_outcomes() -> None:
    assert estimate_share([]).mean == estimate_share([[]]).high95 == 0.0
    for samples in ([[0.5]], [[1.0], []], [[1.0, 2.0], [0.0]]):
        with pytest.raises(BadValueError, match="0 and 1"):
            estimate_share(samples)


def test_students_interval_of_three_runs() -> None:
    found = student_mean([1.0, 2.0, 3.0])
    half = 4.302652729911275 / 3**0.5  # t(0.975, 2 degrees), deviation 1
    assert found.mean == 2.0
    assert found.high95 - found.mean == pytest.approx(half)
    assert found.mean - found.low95 == pytest.approx(half)
    with pytest.raises(BadValueError, match="at least two"):
        student_mean([1.0])


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7])
def test_runs_that_all_equal_the_bound_do_not_differ_from_it(value: float) -> None:
    """The mean of three times .1 is not quite .1, and p was 0."""
    assert over_runs([value] * 3, bound=value).p_value == 1.0
    assert over_runs([value] * 3).p_value == 0.0


def test_sign_flips_are_counted_exactly_for_few_tasks() -> None:
    assert sign_flip_p([1.0, 1.0, 1.0, 1.0]) == pytest.approx(2 / 16)
    assert sign_flip_p([1.0, -1.0, 1.0, -1.0]) == 1.0
    assert sign_flip_p([0.0] * 4) == 1.0
    assert sign_flip_p([0.0, 1.0, 0.0, 0.0]) == 1.0
    assert sign_flip_p([-1.0] * 4) == sign_flip_p([1.0] * 4)
    assert sign_flip_p([1.0, 1.0, 1.0, 0.0, 0.0]) == pytest.approx(2 / 8)


def test_sign_flips_of_many_tasks_agree_with_the_t_test() -> None:
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(2).normal(0.2, 1.0, 100)
    found = sign_flip_p(differences.tolist())
    assert found == pytest.approx(float(ttest_1samp(differences, 0.0).pvalue), abs=0.02)


@pytest.mark.parametrize("n", [2, 13, 14, 120])
def test_sign_flips_in_smaller_batches_have_the_same_p_value_and_need_less_memory(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.normal(0.1, 1.0, n), rng.choice([-0.1, 0.2, 0.3], n)):  # few sums, and ties
        found, peaks = [], []
        for signs in (1 << 23, 1 << 13):
            monkeypatch.setattr(statistics, "_SIGNS", signs)
            tracemalloc.start()
            try:
                found.append(sign_flip_p(values))
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        assert found[0] == found[1]
        assert n < 120 or peaks[1] < 0.3 * peaks[0]


def test_a_sample_of_one_counts_beside_others() -> None:
    """Which scipy refuses; a suite may have a cell of one task."""
    found = bootstrap_mean([[0.5], [0.1, 0.4, 0.9]])
    assert found.mean == pytest.approx((0.5 + 1.4 / 3) / 2)
    assert 0.3 <= found.low95 < found.mean < found.high95 <= 0.7
