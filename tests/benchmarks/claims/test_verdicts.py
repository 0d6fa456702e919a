"""The rule, on values whose verdict can be told by hand."""

from __future__ import annotations

import pytest
from helpers.made_claims import above, by_run, by_task, named
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.benchmarks.claims.verdicts import decide, judge_claim

FLAT = [0.5] * 20
HALF = [0.0, 1.0] * 10


def verdict(comparison, *arms):
    (finding,) = decide((comparison,), named(*arms))
    return finding


@pytest.mark.parametrize(
    ("ours", "theirs", "margin", "want"),
    [
        ([0.8] * 20, FLAT, 0.0, "reproduced"),
        (FLAT, [0.8] * 20, 0.0, "not reproduced"),
        (FLAT, FLAT, 0.0, "not reproduced"),  # nothing is left that would matter
        ([0.52] * 20, FLAT, 0.0, "not reproduced"),  # certain, but too small
        (HALF, HALF[::-1], 0.0, "not decided"),  # anything may be
        (FLAT, [0.52] * 20, -0.05, "not reproduced"),  # below margin + least
        ([0.55] * 20, FLAT, -0.05, "reproduced"),
        ([0.8] * 20, FLAT, 0.4, "not reproduced"),
        ([1.0] * 20, [0.98] * 20, 0.0, "not decided"),  # the ceiling
        ([0.02] * 20, [0.0] * 20, 0.0, "not decided"),  # the floor
    ],
)
def test_golden_verdicts(ours, theirs, margin, want):
    arms = by_task("ours", ours, ours, ours), by_task("theirs", theirs, theirs, theirs)
    finding = verdict(above(margin=margin), *arms)
    assert finding.verdict == want, finding
    assert (finding.seeds, finding.units) == (3, 20)
    gap = sum(ours) / 20 - sum(theirs) / 20
    assert finding.difference == pytest.approx(gap)


def test_both_seeds_and_tasks_widen_the_interval():
    steady = by_task("ours", *[[0.7] * 20] * 3)
    shaky = by_task("ours", [0.4] * 20, [0.7] * 20, [1.0] * 20)
    flat = by_task("theirs", FLAT, FLAT, FLAT)
    narrow, wide = verdict(above(), steady, flat), verdict(above(), shaky, flat)
    assert narrow.difference == pytest.approx(wide.difference) == pytest.approx(0.2)
    assert narrow.verdict == "reproduced"
    assert wide.verdict == "not decided"  # one of three seeds says the opposite
    assert wide.low95 is not None
    assert wide.low95 < 0 < 0.2 < (wide.high95 or 0)


def test_few_tasks_do_not_reach_significance():
    ours, theirs = by_task("ours", [0.9] * 4), by_task("theirs", [0.1] * 4)
    finding = verdict(above(), ours, theirs)
    assert finding.p_value == pytest.approx(0.125)  # 2 of 16 patterns of signs
    assert finding.verdict == "not decided"
    assert "p is 0.125" in finding.why


def test_one_value_per_seed_is_tested_over_seeds():
    worse = by_run("theirs", [0.5, 0.52, 0.48])
    lower = above(measure="fall", higher=False)
    finding = verdict(lower, by_run("ours", [0.1, 0.11, 0.1]), worse)
    assert finding.test == "Student's t over seeds"
    assert finding.verdict == "reproduced"
    # mean of differences 0.39667, deviation 0.02082; t(0.975, 2) = 4.30265
    assert finding.difference == pytest.approx(0.396667, abs=1e-6)
    assert finding.low95 == pytest.approx(0.396667 - 4.30265 * 0.0152753 / 3**0.5, abs=1e-5)
    single = verdict(lower, by_run("ours", [0.1]), by_run("theirs", [0.5]))
    assert single.verdict == "not decided"
    assert "at least two seeds" in single.why


def test_an_interaction_is_a_difference_of_differences():
    arms = [
        by_task(name, *[[value] * 20] * 3)
        for name, value in (("a", 0.9), ("b", 0.5), ("c", 0.8), ("d", 0.6))
    ]
    lead = above("a", "b", beyond=("c", "d"))
    finding = verdict(lead, *arms)
    assert finding.difference == pytest.approx(0.2)
    assert finding.verdict == "reproduced"
    back = verdict(above("c", "d", beyond=("a", "b")), *arms)
    assert back.difference == pytest.approx(-0.2)
    assert back.verdict == "not reproduced"


def test_an_arm_against_zero_has_no_floor():
    arm = by_task("ours", *[[0.01, 0.02] * 10] * 3)
    finding = verdict(above(worse=None, min_effect=0.001), arm)
    assert finding.worse == 0.0
    assert finding.verdict == "reproduced"


def test_only_common_seeds_and_tasks_are_paired():
    ours = by_task("ours", [0.9] * 20, [0.9] * 20)
    theirs = by_task("theirs", [0.1] * 12, [0.1] * 20, [0.1] * 20)
    finding = verdict(above(), ours, theirs)
    assert (finding.seeds, finding.units) == (2, 12)
    apart = by_task("theirs", [0.1] * 12, measure="return")
    assert "nothing was measured" in verdict(above(), ours, apart).why


def test_a_seed_that_failed_leaves_it_open():
    ours = by_task("ours", [0.9] * 20)
    broken = by_task("theirs", [0.1] * 20).model_copy(update={"problem": "seed 1 failed: no"})
    finding = verdict(above(), ours, broken)
    assert finding.verdict == "not decided"
    assert "seed 1 failed" in finding.why


def test_holm_over_the_comparisons_of_a_claim():
    five = by_task("ours", [0.9] * 6)
    low = by_task("theirs", [0.1] * 6)
    alone = decide((above(),), named(five, low))
    twice = decide((above(), above()), named(five, low))
    assert alone[0].adjusted == pytest.approx(1 / 32)
    assert twice[0].adjusted == pytest.approx(1 / 16)
    assert judge_claim(alone)[0] == "reproduced"
    assert judge_claim(twice) == ("not decided", "2 of 2 comparisons are open")


def test_one_failing_comparison_fails_the_claim():
    high, low = by_task("ours", *[[0.9] * 20] * 3), by_task("theirs", *[[0.1] * 20] * 3)
    found = decide((above(), above("theirs", "ours")), named(high, low))
    assert [f.verdict for f in found] == ["reproduced", "not reproduced"]
    assert judge_claim(found) == ("not reproduced", "1 of 2 comparisons fail")


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1), min_size=6, max_size=6), min_size=2, max_size=3),
    st.lists(st.lists(st.floats(0, 1), min_size=6, max_size=6), min_size=2, max_size=3),
)
def test_no_statement_and_its_opposite_both_hold(ours, theirs):
    arms = by_task("ours", *ours), by_task("theirs", *theirs)
    there = verdict(above(), *arms)
    back = verdict(above("theirs", "ours"), *arms)
    assert {there.verdict, back.verdict} != {"reproduced"}
    assert there.difference == pytest.approx(-(back.difference or 0.0))
