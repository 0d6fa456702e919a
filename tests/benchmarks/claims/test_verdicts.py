"""The rule, on values whose verdict can be told by hand."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.made_claims import above, by_run, by_task, named
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from turngym.benchmarks.claims.verdicts import decide, judge_claim
from turngym.envs.utils.statistics import holm

# Deviations of six seeds of two arms; their mean is 0.
WOBBLE = (0.01, -0.02, 0.015, -0.005, 0.02, -0.02)
OTHER = (-0.01, 0.005, 0.01, -0.02, 0.0, 0.015)


def verdict(comparison, *arms):
    (finding,) = decide((comparison,), named(*arms))
    return finding


def around(name: str, mean: float, wobble=WOBBLE, measure: str = "success"):
    """Six seeds whose 20 tasks have the seed's mean."""
    rows = [[mean + w - 0.01, mean + w + 0.01] * 10 for w in wobble]
    return by_task(name, *rows, measure=measure)


@pytest.mark.parametrize(
    ("ours", "theirs", "margin", "want"),
    [
        (0.8, 0.5, 0.0, "reproduced"),
        (0.5, 0.8, 0.0, "not reproduced"),
        (0.5, 0.5, 0.0, "equivalent"),
        (0.52, 0.5, 0.0, "equivalent"),  # certain, but too small to matter
        (0.54, 0.5, 0.0, "not decided"),
        (0.5, 0.54, -0.05, "not reproduced"),  # below margin + min_effect
        (0.55, 0.5, -0.05, "reproduced"),
        (0.8, 0.5, 0.4, "not reproduced"),
        (1.0, 0.98, 0.0, "not decided"),  # the ceiling
        (0.02, 0.0, 0.0, "not decided"),  # the floor
    ],
)
def test_golden_verdicts(ours, theirs, margin, want):
    finding = verdict(
        above(margin=margin), around("ours", ours), around("theirs", theirs, wobble=OTHER)
    )
    assert finding.verdict == want, finding
    assert (finding.seeds, finding.units) == (6, 20)
    assert finding.test.paired
    assert finding.test.difference == pytest.approx(ours - theirs)


@pytest.mark.parametrize(
    ("gap", "want"), [(0.0, "equivalent"), (0.2, "not reproduced"), (0.055, "not decided")]
)
def test_where_equality_is_the_right_answer(gap, want):
    same = above(expected="equal")
    found = verdict(same, around("ours", 0.5 + gap), around("theirs", 0.5, wobble=OTHER))
    assert found.verdict == want
    assert found.holds == (want == "equivalent")
    assert found.adjusted is None
    assert judge_claim([found])[0] == want


def test_equality_says_how_many_seeds_it_needs():
    wide = [0.1, -0.2, 0.15, -0.05, 0.2, -0.2]
    found = verdict(
        above(expected="equal"), around("ours", 0.5, wobble=wide), around("theirs", 0.5)
    )
    assert found.verdict == "not decided"
    # deviation .162, two one-sided tests at .05: (1.645 + 1.282)^2 (.162 / .05)^2
    assert 86 <= int(found.why.partition("needs ")[2].split()[0]) <= 95


@pytest.mark.parametrize("wanted", ["above", "equal"])
def test_arms_that_only_guess_are_not_equivalent(wanted):
    """A blind guess of three letters is right in a third of the episodes: that is the floor."""
    arms = around("ours", 0.34), around("theirs", 0.33, wobble=OTHER)
    assert verdict(above(expected=wanted), *arms).verdict == "equivalent"
    found = verdict(above(expected=wanted, floor=1 / 3), *arms)
    assert (found.verdict, found.why) == (
        "not decided",
        "both arms are at the floor (0.333, of a policy that has learned nothing)",
    )
    assert judge_claim([found]) == (
        "not decided",
        f"1 of 1 comparisons are open: {found.why}",
    )
    learned = around("ours", 0.45), around("theirs", 0.33, wobble=OTHER)
    assert verdict(above(expected=wanted, floor=1 / 3), *learned).verdict != "not decided"


def test_arms_whose_seeds_learned_or_forgot_are_not_at_the_floor_of_their_mean():
    wide = [0.1, -0.1, 0.1, -0.1, 0.1, -0.1]
    found = verdict(
        above(floor=1 / 3), around("ours", 0.33, wobble=wide), around("theirs", 0.33, wobble=wide)
    )
    assert found.verdict == "equivalent"


def test_a_metric_that_is_no_share_has_a_floor_where_one_is_declared():
    arms = [around(name, 0.01, measure="return") for name in ("ours", "theirs")]
    assert verdict(above(measure="return"), *arms).verdict == "equivalent"
    assert verdict(above(measure="return", floor=0.0), *arms).why.startswith("both arms are at the")


def test_a_floor_is_part_of_a_claims_digest_only_where_one_is_declared():
    assert "floor" not in above().model_dump()
    assert above(floor=0.25).model_dump()["floor"] == 0.25


def test_more_tasks_are_not_more_seeds():
    """The same seeds with ten times the tasks: the same test."""
    few = [by_task(name, *[[m] * 4 for m in seeds]) for name, seeds in SEEDS.items()]
    many = [by_task(name, *[[m] * 40 for m in seeds]) for name, seeds in SEEDS.items()]
    one, other = verdict(above(), *few), verdict(above(), *many)
    assert (one.units, other.units) == (4, 40)
    assert one.test.p_value == pytest.approx(other.test.p_value)
    assert one.test.p_value == pytest.approx(ttest_rel(*SEEDS.values()).pvalue)
    assert one.test.high95 == pytest.approx(other.test.high95)


SEEDS = {"ours": [0.3, 0.9, 0.8, 0.4, 0.95, 0.7], "theirs": [0.5, 0.4, 0.6, 0.3, 0.7, 0.2]}


def test_pairs_remove_what_seeds_share():
    luck = [0.3, -0.3, 0.2, -0.1, 0.0, -0.2]
    ours = around("ours", 0.6, wobble=[a + b / 5 for a, b in zip(luck, WOBBLE, strict=True)])
    theirs = around("theirs", 0.5, wobble=[a + b / 5 for a, b in zip(luck, OTHER, strict=True)])
    paired = verdict(above(), ours, theirs)
    assert paired.verdict == "reproduced"
    elsewhere = theirs.model_copy(update={"pairing": "another start"})
    apart = verdict(above(), ours, elsewhere)
    assert not apart.test.paired
    assert apart.verdict == "not decided"
    assert "needs " in apart.why


def test_arms_without_a_common_seed_are_not_paired():
    ours = around("ours", 0.8)
    runs = [run.model_copy(update={"seed": run.seed + 20}) for run in around("x", 0.5).runs]
    theirs = by_task("theirs", [0.5]).model_copy(update={"runs": tuple(runs)})
    found = verdict(above(), ours, theirs)
    assert not found.test.paired
    left, right = (
        [np.mean(list(r.values["success"].values())) for r in arm.runs] for arm in (ours, theirs)
    )
    assert found.test.p_value == pytest.approx(ttest_ind(left, right, equal_var=False).pvalue)
    assert found.verdict == "reproduced"
    lead = verdict(above("ours", "theirs", beyond=("theirs", "ours")), ours, theirs)
    assert lead.test is None
    assert "no seed in common" in lead.why


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
def test_fewer_than_five_seeds_decide_nothing(seeds):
    for expected, ours in (("above", 0.9), ("above", 0.1), ("equal", 0.5), ("equal", 0.9)):
        found = verdict(
            above(expected=expected),
            around("ours", ours, wobble=WOBBLE[:seeds]),
            around("theirs", 0.5, wobble=OTHER[:seeds]),
        )
        assert found.verdict == "not decided"
        assert "at least 5" in found.why


def test_one_value_per_seed_and_lower_is_better():
    worse = by_run("theirs", [0.5, 0.52, 0.48, 0.51, 0.5])
    lower = above(measure="fall", higher=False)
    finding = verdict(lower, by_run("ours", [0.1, 0.11, 0.1, 0.12, 0.09]), worse)
    assert finding.verdict == "reproduced"
    assert finding.units == 1
    # mean of differences .398, deviation .01304; t(0.975, 4) = 2.77645
    assert finding.test.difference == pytest.approx(0.398)
    assert finding.test.low95 == pytest.approx(0.398 - 2.77645 * 0.0130384 / 5**0.5, abs=1e-5)
    assert (finding.better, finding.worse) == pytest.approx((0.104, 0.502))


def test_an_interaction_is_a_difference_of_differences():
    arms = [
        around(name, value, wobble=np.roll(WOBBLE, at))
        for at, (name, value) in enumerate((("a", 0.9), ("b", 0.5), ("c", 0.8), ("d", 0.6)))
    ]
    lead = above("a", "b", beyond=("c", "d"))
    finding = verdict(lead, *arms)
    assert finding.test.difference == pytest.approx(0.2)
    assert finding.verdict == "reproduced"
    back = verdict(above("c", "d", beyond=("a", "b")), *arms)
    assert back.test.difference == pytest.approx(-0.2)
    assert back.verdict == "not reproduced"


def test_an_arm_against_zero_has_no_floor():
    arm = around("ours", 0.02, wobble=[w / 20 for w in WOBBLE])
    finding = verdict(above(worse=None, min_effect=0.001), arm)
    assert finding.worse == 0.0
    assert finding.verdict == "reproduced"


def test_only_common_seeds_and_tasks_are_paired():
    ours = by_task("ours", *[[0.9] * 20] * 5)
    theirs = by_task("theirs", [0.1] * 12, *[[0.1] * 20] * 6)
    finding = verdict(above(), ours, theirs)
    assert (finding.seeds, finding.units) == (5, 12)
    other = by_task("theirs", *[[0.1] * 20] * 5, measure="return")
    assert "nothing was measured" in verdict(above(), ours, other).why


def test_a_finished_seed_without_the_measure_is_not_left_out_in_silence():
    """As one that never met a tool's answer has no rise of entropy behind it."""
    ours = around("ours", 0.9)
    lacking = ours.runs[2].model_copy(update={"values": {"return": {"task 0": 0.0}}})
    ours = ours.model_copy(update={"runs": (*ours.runs[:2], lacking, *ours.runs[3:])})
    finding = verdict(above(), ours, around("theirs", 0.1, wobble=OTHER))
    assert (finding.verdict, finding.test) == ("not decided", None)
    assert finding.why == (
        "arm ours: 1 of 6 seeds have no success (2): the others are no fair sample"
    )


def test_an_arm_with_a_problem_is_not_decided():
    broken = around("theirs", 0.1).model_copy(update={"problem": "seed 2 failed: no reason"})
    finding = verdict(above(), around("ours", 0.9), broken)
    assert finding.verdict == "not decided"
    assert finding.why == "arm theirs: seed 2 failed: no reason"
    assert finding.test is None


def test_holm_over_the_comparisons_that_expect_a_difference():
    arms = around("a", 0.62), around("b", 0.57, wobble=OTHER), around("c", 0.5, wobble=OTHER)
    comparisons = (above("a", "b"), above("a", "c"), above("b", "c", expected="equal"))
    found = decide(comparisons, named(*arms))
    assert [f.adjusted for f in found[:2]] == pytest.approx(
        holm([f.test.p_value for f in found[:2]])
    )
    assert found[2].adjusted is None
    assert found[1].adjusted == pytest.approx(2 * found[1].test.p_value)
    # at .05 of the family, not of each
    ours, theirs = SEEDS["ours"], [0.3, 0.7, 0.55, 0.35, 0.7, 0.5]
    alone = decide(
        (above(),), named(by_run("ours", ours, "success"), by_run("theirs", theirs, "success"))
    )
    twice = decide(
        (above(), above()),
        named(by_run("ours", ours, "success"), by_run("theirs", theirs, "success")),
    )
    assert twice[0].adjusted == pytest.approx(2 * alone[0].adjusted)


def test_one_failing_comparison_fails_the_claim():
    high, low, same = around("ours", 0.9), around("theirs", 0.1, OTHER), around("same", 0.9, OTHER)
    arms = named(high, low, same)
    found = decide((above(), above("theirs", "ours")), arms)
    assert [f.verdict for f in found] == ["reproduced", "not reproduced"]
    assert judge_claim(found) == ("not reproduced", "1 of 2 comparisons fail")
    # equal where a difference was expected is a failure, unless nothing else was found
    mixed = decide((above(), above("ours", "same")), arms)
    assert [f.verdict for f in mixed] == ["reproduced", "equivalent"]
    assert judge_claim(mixed) == ("not reproduced", "1 of 2 comparisons fail")
    assert judge_claim(mixed[1:])[0] == "equivalent"
    # equal where equality was expected is part of what holds
    whole = decide((above(), above("ours", "same", expected="equal")), arms)
    assert judge_claim(whole) == ("reproduced", "2 of 2 comparisons hold")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=5, max_size=8),
    st.sampled_from([0.02, 0.1, 0.4]),
)
def test_no_statement_and_its_opposite_both_hold(pairs, effect):
    arms = (
        by_run("ours", [a / 20 for a, _ in pairs], "success"),
        by_run("theirs", [b / 20 for _, b in pairs], "success"),
    )
    there = verdict(above(min_effect=effect), *arms)
    back = verdict(above("theirs", "ours", min_effect=effect), *arms)
    if there.verdict == "reproduced":
        assert back.verdict == "not reproduced"
    if "equivalent" in (there.verdict, back.verdict):
        assert there.verdict == back.verdict
    assert there.test.difference == pytest.approx(-back.test.difference)
