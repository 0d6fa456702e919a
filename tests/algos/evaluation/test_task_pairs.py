"""Two agents on the same tasks: numbers worked out by hand, and laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_rel

from turngym.algos.evaluation.result import Score, SetScore
from turngym.algos.evaluation.score_rows import Played, ScoreRow, TaskOutcome
from turngym.algos.evaluation.task_pairs import (
    common_ways,
    compare_outcomes,
    pair_ways,
    why_apart,
)
from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.statistics import Estimate

Result = tuple[bool, float] | None
"""Success and return; None without a score."""


def outcomes(results: list[Result], prefix: str = "dev/") -> tuple[TaskOutcome, ...]:
    found = []
    for i, result in enumerate(results):
        status = "env_error" if result is None else "solved" if result[0] else "failed"
        success, total = (None, None) if result is None else result
        one = {"task": f"{prefix}{i}", "status": status, "success": success, "return": total}
        found.append(TaskOutcome.model_validate(one))
    return tuple(found)


def plain(text: str) -> list[Result]:
    """``+`` is solved, ``-`` is failed, ``?`` has no score; the return is success."""
    return [None if c == "?" else (c == "+", float(c == "+")) for c in text]


def test_success_by_hand() -> None:
    #          8 gained,  2 lost, 6 both, 4 neither, 2 without a score
    ours = plain("++++++++--++++++----?+")
    theirs = plain("--------++++++++----+?")
    got = compare_outcomes(outcomes(ours), outcomes(theirs))
    assert (got.tasks, got.left_out, got.gained, got.lost) == (20, 2, 8, 2)
    assert got.p_value == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert got.p_value == pytest.approx(float(binomtest(8, 10).pvalue))
    assert got.success is not None
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a and b]
    test: Any = ttest_rel([a[0] * 1.0 for a, _ in pairs], [b[0] * 1.0 for _, b in pairs])
    ends: Any = test.confidence_interval(0.95)
    assert got.success.mean == pytest.approx(0.3)
    assert (got.success.low95, got.success.high95) == pytest.approx((ends.low, ends.high))
    assert got.return_ is None  # it is success


def test_returns_by_hand() -> None:
    ours: list[Result] = [(True, 2.0), (False, 2.5), (False, 3.5), None]
    theirs: list[Result] = [(True, 1.0), (False, 0.5), (False, 0.5), (True, 9.0)]
    got = compare_outcomes(outcomes(ours), outcomes(theirs))
    assert (got.tasks, got.left_out, got.p_value) == (3, 1, 1.0)
    assert got.return_ is not None
    assert got.return_.interval is not None
    # differences 1, 2, 3: deviation 1, t of two degrees of freedom; 2 of 8 patterns of signs
    half = 4.302652729911275 / 3**0.5
    assert got.return_.mean == pytest.approx(2)
    assert got.return_.interval.high95 == pytest.approx(2 + half)
    assert got.return_.p_value == pytest.approx(2 / 8)


def test_returns_that_differ_by_the_same_have_no_interval() -> None:
    got = compare_outcomes(
        outcomes([(False, 2.0), (True, 3.0)]), outcomes([(False, 1.0), (True, 2.0)])
    )
    assert got.return_ is not None
    assert (got.return_.mean, got.return_.interval) == (1.0, None)


def test_without_a_common_task_nothing_is_said() -> None:
    got = compare_outcomes(outcomes(plain("+?")), outcomes(plain("?-")))
    assert (got.tasks, got.left_out, got.success, got.p_value) == (0, 2, None, 1.0)
    assert got.return_ is None


RESULT = st.none() | st.tuples(st.booleans(), st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
PAIRS = st.lists(st.tuples(RESULT, RESULT), min_size=1, max_size=12)


@given(PAIRS)
def test_swapping_the_agents_changes_the_signs(pairs: list[tuple[Result, Result]]) -> None:
    ours, theirs = outcomes([a for a, _ in pairs]), outcomes([b for _, b in pairs])
    one, other = compare_outcomes(ours, theirs), compare_outcomes(theirs, ours)
    assert (one.tasks, one.left_out) == (other.tasks, other.left_out)
    assert (one.gained, one.lost, one.p_value) == (other.lost, other.gained, other.p_value)
    assert one.tasks + one.left_out == len(pairs)
    for a, b in ((one.success, other.success), (one.return_, other.return_)):
        assert (a is None) == (b is None)
    if one.success and other.success:
        assert one.success.mean == pytest.approx(-other.success.mean)
        assert one.success.low95 == pytest.approx(-other.success.high95)
    if one.return_ and other.return_:
        assert one.return_.mean == pytest.approx(-other.return_.mean)
        assert one.return_.p_value == pytest.approx(other.return_.p_value)


@given(st.lists(RESULT, min_size=1, max_size=12))
def test_an_agent_does_not_differ_from_itself(results: list[Result]) -> None:
    got = compare_outcomes(outcomes(results), outcomes(results))
    assert (got.gained, got.lost, got.p_value) == (0, 0, 1.0)
    assert got.success is None or got.success.mean == 0.0
    if got.return_ is not None:
        assert (got.return_.mean, got.return_.p_value) == (0.0, 1.0)


@given(PAIRS, st.data())
def test_tasks_that_differ_are_never_paired(
    pairs: list[tuple[Result, Result]], data: st.DataObject
) -> None:
    ours, theirs = outcomes([a for a, _ in pairs]), outcomes([b for _, b in pairs])
    places = data.draw(st.permutations(range(len(pairs))))
    shuffled = tuple(theirs[i] for i in places)
    if places == sorted(places):
        assert compare_outcomes(ours, shuffled) == compare_outcomes(ours, theirs)
    else:
        with pytest.raises(BadValueError, match=r"task \d+ is dev/\d+ here and dev/\d+ there"):
            compare_outcomes(ours, shuffled)
    with pytest.raises(BadValueError, match="tasks here and"):
        compare_outcomes(ours, theirs[:-1])


# ---------------------------------------------------------------- what can be compared


def row(
    sampled: str, greedy: str | None = None, temperature: float | None = None, **more: Any
) -> ScoreRow:
    def numbers(text: str) -> dict[str, Any]:
        n = len(text)
        share = Estimate(mean=text.count("+") / n, low95=0.0, high95=1.0)
        return {"n": n, "errors": 0, "success": share, "return": share, "metrics": {}}

    cold = None if greedy is None else Score(**numbers(greedy))
    about = {"name": "dev", "env_id": "E-v0", "split": "dev"}
    score = SetScore(**about, temperature=temperature, greedy=cold, **numbers(sampled))
    episodes = None if greedy is None else outcomes(plain(greedy))
    mine = outcomes(plain(sampled))
    return ScoreRow(agent="a", score=score, episodes=mine, greedy_episodes=episodes, **more)


def test_each_way_of_decoding_is_compared_with_its_like() -> None:
    hot, cold = row("+-", "++", 1.0), row("--", "--", 0.0)
    assert [w.how for w in pair_ways(hot, hot)] == ["sampled at temperature 1", "greedy"]
    (only,) = pair_ways(hot, cold)
    assert only.how == "greedy"
    assert [e.success for e in only.ours] == [True, True]
    assert "temperatures of the sampled scores differ (1 here and 0 there)" in why_apart(
        hot.played, cold.played
    )
    assert why_apart(hot.played, hot.played) == why_apart(cold.played, cold.played) == ""


def test_an_agent_without_a_temperature_is_compared_with_both_ways() -> None:
    hot, script = row("+-", "++", 1.0), row("--")
    for ours, theirs in ((hot, script), (script, hot)):
        ways = pair_ways(ours, theirs)
        assert [w.how for w in ways] == ["sampled at temperature 1", "greedy"]
        assert [[e.success for e in w.ours] for w in ways] != [[True] * 2] * 2
        assert why_apart(ours.played, theirs.played) == ""
    assert [w.how for w in pair_ways(script, script)] == [""]


def test_other_tokens_make_agents_of_a_kind_incomparable() -> None:
    few, many = (Played(agent="a", temperature=1.0, max_tokens=n) for n in (4, 8))
    asking = Played(agent="b", temperature=1.0, max_tokens=512, model="m")
    assert common_ways(few, many) == []
    assert why_apart(few, many) == "max tokens differ (4 here and 8 there); give --max-tokens 8"
    assert common_ways(few, asking) == ["sampled at temperature 1", "greedy"]
    assert pair_ways(row("+", "+", 1.0, max_tokens=4), row("+", "+", 1.0, max_tokens=8)) == []


def test_a_row_without_episodes_is_refused() -> None:
    bare = row("+").model_copy(update={"episodes": None})
    with pytest.raises(BadValueError, match="a on dev has no episodes"):
        pair_ways(row("+"), bare)
