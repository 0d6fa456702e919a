"""Comparisons over seeds: what is paired, what is corrected, and the other way round."""

from __future__ import annotations

import pytest
from helpers.tiny_matrix import tiny
from hypothesis import given
from hypothesis import strategies as st

from turngym.benchmarks.matrix.comparison import (
    ONE_SEED,
    adjust_family,
    compare_areas,
    decide_family,
    decide_test,
    describe_lost,
)
from turngym.envs.utils.seed_tests import Edges, compare_seeds

SUITE = tiny(min_effect=0.05)
AREA = st.floats(0, 1)
OPEN = Edges(None, None)


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_pairs_are_the_common_seeds_and_welch_takes_all() -> None:
    ours, theirs = by_seed(0.5, 0.6, 0.7), {1: 0.2, 2: 0.4, 9: 0.1}
    paired = compare_areas(SUITE, ours, theirs, OPEN)
    assert paired is not None
    assert paired.test == compare_seeds([0.6, 0.7], [0.2, 0.4], bound=SUITE.equivalence)
    unpaired = compare_areas(SUITE, ours, theirs, OPEN, paired=False)
    assert unpaired is not None
    assert (unpaired.test.n, unpaired.test.paired) == (3, False)
    assert compare_areas(SUITE, ours, {1: 0.2, 9: 0.1}, OPEN) is None


def test_all_of_a_family_that_is_too_large_for_its_seeds_are_not_decided() -> None:
    """Also the clearest ones, which Holm multiplies by most, and the others, by less."""
    theirs = by_seed(*[0.1] * 6)
    for seeds, verdict in ((5, "not decided"), (6, "above")):
        arms = [
            {seed: 0.9 + 0.001 * (seed * (i % 5 + 1) % 7) for seed in range(seeds)}
            for i in range(45)
        ]
        tests = {i: compare_areas(SUITE, ours, theirs, OPEN) for i, ours in enumerate(arms)}
        found = decide_family(SUITE, tests, "grpo")
        assert {one.verdict for one in found.values()} == {verdict}
        assert {one.needs for one in found.values()} == {"6" if seeds == 5 else ""}


def test_one_seed_is_no_test_and_no_part_of_the_correction() -> None:
    clear = compare_areas(SUITE, by_seed(0.9, 0.8, 0.91, 0.82, 0.86), by_seed(*[0.1] * 5), OPEN)
    noise = compare_areas(SUITE, by_seed(0.1, 0.8, 0.3, 0.9, 0.2), by_seed(*[0.4] * 5), OPEN)
    assert clear is not None
    tests = {"clear": clear, "noise": noise, "single": None}
    adjusted = adjust_family(tests)
    assert adjusted.keys() == {"clear", "noise"}
    assert adjusted["clear"] == pytest.approx(2 * clear.test.p_value)
    found = decide_family(SUITE, tests, "grpo")
    assert [one.verdict for one in found.values()] == ["above", "not decided", "not decided"]
    assert found["clear"].apart
    assert (found["single"].why, found["single"].seeds, found["single"].tested) == (
        ONE_SEED,
        0,
        False,
    )
    assert found["single"].needs == ""
    assert f"needs {found['noise'].needs} seeds" in found["noise"].why
    assert "a difference of 5 points, the least that matters, needs" in found["noise"].why
    assert found["noise"].missing == f"5 points would need {found['noise'].needs} seeds"
    assert (found["clear"].missing, found["single"].missing) == ("", "")


def test_the_smallest_effect_is_the_suites_where_none_is_given() -> None:
    small = compare_areas(
        SUITE, by_seed(0.52, 0.53, 0.521, 0.528, 0.522), by_seed(*[0.5] * 5), OPEN
    )
    assert small is not None
    assert decide_test(SUITE, small, small.test.p_value, "grpo").verdict == "equivalent"
    assert decide_test(SUITE, small, small.test.p_value, "grpo", min_effect=0.0).verdict == "above"


@given(st.lists(st.tuples(AREA, AREA), min_size=2, max_size=7))
def test_a_reversed_test_is_that_of_the_other_row(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = by_seed(*(a for a, _ in pairs)), by_seed(*(b for _, b in pairs))
    there = compare_areas(SUITE, ours, theirs, Edges())
    back = compare_areas(SUITE, theirs, ours, Edges())
    assert there is not None
    assert back is not None
    assert there.reverse().reverse() == there
    turned = there.reverse()
    assert turned.edge == back.edge
    for name, value in back.test.model_dump().items():
        assert getattr(turned.test, name) == pytest.approx(value, abs=1e-9), name
    sides = {"above": "below", "below": "above"}
    forward, backward = (decide_test(SUITE, t, t.test.p_value, "") for t in (there, turned))
    assert backward.verdict == sides.get(forward.verdict, forward.verdict)


def test_who_lost_which_seeds() -> None:
    assert describe_lost({"ppo": ("finished", "waiting", "interrupted")}) == ""
    said = describe_lost({"ppo": ("finished", "failed"), "grpo": ("failed", "failed", "finished")})
    assert said == (
        "1 of 2 seeds of ppo and 2 of 3 seeds of grpo failed: the others are no fair sample"
    )


def test_seeds_that_are_left_when_others_failed_decide_nothing() -> None:
    ours, theirs = by_seed(0.9, 0.8, 0.91, 0.82, 0.86), by_seed(*[0.1] * 5)
    some = compare_areas(SUITE, ours, theirs, OPEN, lost="1 of 6 seeds of ppo failed")
    assert some is not None
    assert some.reverse().lost == some.lost
    assert decide_test(SUITE, some._replace(lost=""), 0.001, "grpo").verdict == "above"
    found = decide_test(SUITE, some, 0.001, "grpo")
    assert (found.verdict, found.why) == ("not decided", "1 of 6 seeds of ppo failed")
    assert (found.tested, found.needs, found.test) == (False, "", some.test)
