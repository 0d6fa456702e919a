"""Credit against the batch: returns to go, tracked values, turn returns, imitation."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.forests import single_turns, tree, turn

from turngym.algos.core.forest import Forest, Group
from turngym.algos.credit import GroupCredit, Imitation, ReturnsToGo, TrackedCredit, TurnReturns
from turngym.algos.credit.gae import whitened
from turngym.algos.credit.returns import returns_to_go
from turngym.envs.core.errors import BadValueError


def test_returns_pass_observations_by() -> None:
    """E21: action tokens 0, 2, 3; token 1 is an observation and is not in the rewards."""
    assert returns_to_go(np.array([0.0, 0.0, 1.0]), 1.0).tolist() == [1, 1, 1]
    kl = -0.01 * np.array([0.1, 0.2, 0.3]) + np.array([0, 0, 1.0])
    assert returns_to_go(kl, 1.0) == pytest.approx([0.994, 0.995, 0.997])
    assert returns_to_go(np.array([1.0, 1.0]), 0.5).tolist() == [1.5, 1]


def test_the_penalty_reaches_earlier_tokens() -> None:
    """E21 through the rule, before whitening: two paths of the same shape."""
    line = tree(turn([0.0]), turn([0.0, 1.0], parent=0, status="solved"))
    forest = Forest.of([Group("g", "t", [line, tree(turn([0.0], status="failed"))])])
    old = [np.array([0.1, 0.2, 0.3], np.float32), np.zeros(1, np.float32)]
    ref = [np.zeros(3, np.float32), np.zeros(1, np.float32)]
    got = ReturnsToGo(kl_coef=0.01)(forest, {"old_logprobs": old, "ref_logprobs": ref})
    want = whitened([np.array([0.994, 0.995, 0.997]), np.zeros(1)])
    for mine, theirs in zip(got.advantages, want, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-6)


def test_where_outcomes_are_equal_the_penalty_alone_is_whitened() -> None:
    moved = {"old_logprobs": [np.float32([k * 1e-2]) for k in range(3)]}
    moved["ref_logprobs"] = [np.zeros(1, np.float32)] * 3
    got = ReturnsToGo(kl_coef=1.0)(single_turns([1, 1, 1]), moved).advantages
    assert np.concatenate(got) == pytest.approx([1.0, 0.0, -1.0], abs=1e-4)


def test_the_baseline_variant_centres_each_prompt_first() -> None:
    """E20, with one token and with lengths 1, 1, 1, 1, 3, 3, 3, 3."""
    rule = ReturnsToGo(baseline="group-mean")
    got = rule(single_turns([1, 0, 0, 0], [1, 1, 1, 0]), {}).advantages
    high, low = 1.620185, 0.540062
    want = [high, -low, -low, -low, low, low, low, -high]
    assert [float(a[0]) for a in got] == pytest.approx(want, abs=2e-6)
    short = single_turns([1, 0, 0, 0]).groups[0]
    long = single_turns([1, 1, 1, 0], n=3).groups[0]
    got = rule(Forest.of([short, long]), {}).advantages
    high, low = 1.677051, 0.559017
    assert [float(a[0]) for a in got] == pytest.approx(
        [high, -low, -low, -low, low, low, low, -high], abs=2e-6
    )


def test_leave_one_out_and_dr() -> None:
    """E20."""
    forest = single_turns([1, 0, 0, 0])
    loo = GroupCredit(baseline="leave-one-out", scale="none")(forest, {}).advantages
    assert [float(a[0]) for a in loo] == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])
    dr = GroupCredit(scale="none")(forest, {}).advantages
    assert [float(a[0]) for a in dr] == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_surprise_is_whitened_over_the_batch() -> None:
    """E23."""
    forest = single_turns([1], [0], [1], [0])
    values = [np.array([v], np.float32) for v in (0.3, 0.3, 0.9, 0.9)]
    got = TrackedCredit()(forest, {"tracked_values": values}).advantages
    want = [1.188177, -0.297044, 0.297044, -1.188177]
    assert [float(a[0]) for a in got] == pytest.approx(want, abs=2e-6)
    same = [np.array([0.5], np.float32)] * 2
    equal = TrackedCredit()(single_turns([1], [1]), {"tracked_values": same}).advantages
    assert not any(a.any() for a in equal)


def two_turns(first: float, second: float) -> list:
    return [turn(first, n=2), turn(second, parent=0, n=1, status="solved")]


def test_turn_returns_compare_all_turns_or_those_of_the_same_index() -> None:
    forest = Forest.of([Group("g", "t", [tree(*two_turns(1, 2)), tree(*two_turns(0, 1))])])
    to_go = [3, 2, 1, 1]
    z = GroupCredit().compare(np.array(to_go, float))
    got = TurnReturns()(forest, {}).advantages
    assert np.concatenate(got) == pytest.approx([z[0], z[0], z[1], z[2], z[2], z[3]])
    got = TurnReturns(over="index")(forest, {}).advantages
    half = 0.5**0.5
    assert np.concatenate(got) == pytest.approx([half, half, half, -half, -half, -half], abs=1e-5)


def test_turn_returns_of_one_turn_are_grpo() -> None:
    forest = single_turns([1, 0, 0.5], [0, 0])
    ours, grpo = TurnReturns()(forest, {}).advantages, GroupCredit()(forest, {}).advantages
    assert np.concatenate(ours) == pytest.approx(np.concatenate(grpo))


def test_imitation_can_leave_failures_out() -> None:
    ends = [tree(turn(0.0, n=2, status=status)) for status in ("solved", "failed")]
    forest = Forest.of([Group("g", "t", ends)])
    assert [a.tolist() for a in Imitation()(forest, {}).advantages] == [[1, 1], [1, 1]]
    only = Imitation(solved_only=True)(forest, {}).advantages
    assert [a.tolist() for a in only] == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ReturnsToGo(gamma=1.5),
        lambda: ReturnsToGo(kl_coef=-1),
        lambda: TrackedCredit(eps=0),
        lambda: TurnReturns(over="path"),  # type: ignore[arg-type]
    ],
)
def test_settings_are_checked(make) -> None:
    with pytest.raises(BadValueError):
        make()
