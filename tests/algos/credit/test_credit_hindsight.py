"""IGPO's and HCAPO's credit: the reference's numbers, and their degenerate cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers.state_forests import FOREST, Walk, walks

from turngym.algos.core.forest import Forest, Group
from turngym.algos.credit import GroupCredit, HindsightCredit, InformationGain
from turngym.envs.core.errors import BadValueError

PROBABILITIES = ([0.10, 0.30, 0.60], [0.10, 0.05, 0.25], [0.10, 0.10])
OUTCOMES = (1.0, 0.5, 0.0)
HINDSIGHT = ([-0.2, -0.6, -0.1], [-0.5, -0.4, -0.9], [-0.3] * 4, [-0.9, -0.2, -0.4])


def on_tokens(rows: Sequence[Sequence[float]], n: int) -> list[Any]:
    return [np.repeat(np.array(row, np.float32), n) for row in rows]


def gains(outcomes: Sequence[float] = OUTCOMES, **rule: Any) -> list[list[float]]:
    """The credit of each action in the worked group; actions have two tokens."""
    group = [Walk("SABC"[: len(p)], "D", r) for p, r in zip(PROBABILITIES, outcomes, strict=True)]
    notes = {"gold_logprobs": on_tokens([np.log(p).tolist() for p in PROBABILITIES], 2)}
    rows = InformationGain(**rule)(walks(group, n_act=2), notes).advantages
    assert all((row[::2] == row[1::2]).all() for row in rows)
    return [row[::2].astype(float).tolist() for row in rows]


def check(found: Sequence[Sequence[float]], *want: Sequence[float]) -> None:
    for row, numbers in zip(found, want, strict=True):
        assert row == pytest.approx(numbers, abs=3e-6)


def test_b1_separate() -> None:
    check(
        gains(),
        [2.618067, 2.146130, 0.999998],
        [-0.741615, 0.471937, 0.0],
        [-1.876452, -0.999998],
    )
    assert gains(gamma=0.9)[0][0] == pytest.approx(2.313454, abs=3e-6)


def test_b1_joint() -> None:
    check(
        gains(normalise="joint"),
        [1.997113, 2.195026, 2.105066],
        [-0.449800, 0.467792, 0.665704],
        [-1.547313, -0.773657],
    )
    discounted = gains(normalise="joint", gamma=0.9)
    assert discounted[0] == pytest.approx([1.588155, 1.984519, 2.105066], abs=3e-6)


def test_b1_where_all_answers_are_wrong_gains_still_teach() -> None:
    joint = gains((0.0, 0.0, 0.0), normalise="joint")
    assert joint[0] == pytest.approx([1.959680, 1.051536, -0.621362], abs=3e-6)
    apart = gains((0.0, 0.0, 0.0))
    assert apart[0][0] > apart[1][0] > apart[2][0] < 0.0
    assert [row[-1] for row in apart] == [0.0, 0.0, 0.0]


def test_b1_raw_sums_are_those_of_the_snapshot_but_for_its_means() -> None:
    raw = gains(scale="none")
    # less the means of the gains (.13, as often as gains follow) and of the outcomes (.5)
    assert raw[0] == pytest.approx([1.5 - 0.26 - 0.5, 1.3 - 0.13 - 0.5, 0.5], abs=3e-6)


def test_a_detour_costs_the_mean_gain() -> None:
    group = [Walk("SA", "D", 0.0), Walk("SBA", "D", 0.0)]
    known = [np.log([0.1, 0.6]).tolist(), np.log([0.1, 0.05, 0.6]).tolist()]
    rule = InformationGain(scale="none")
    straight, detour = rule(walks(group), {"gold_logprobs": on_tokens(known, 1)}).advantages
    assert straight[0] - detour[0] == pytest.approx((0.5 - 0.05 + 0.55) / 3, abs=1e-6)


def test_logarithms_of_probabilities() -> None:
    logs = np.array([1.098612, 0.693147, -0.693147, 1.609438, 0.0])
    z = (logs - logs.mean()) / (logs.std(ddof=1) + 1e-6)
    found = gains(gain="log")
    assert found[0][1] - found[0][2] == pytest.approx(z[1], abs=3e-6)
    assert found[1][0] - found[1][1] == pytest.approx(z[2], abs=3e-6)


def test_a_path_of_one_action_has_its_outcome_alone() -> None:
    forest = walks([Walk("S", "+", 1.0), Walk("S", "D", 0.0)])
    notes = {"gold_logprobs": on_tokens([[-1.0], [-3.0]], 1)}
    found = InformationGain()(forest, notes)
    want = GroupCredit()(forest, {}).advantages
    assert [row.tolist() for row in found.advantages] == [row.tolist() for row in want]
    assert found.metrics["gold_gain_nats"] == 0.0


def hindsight(rows: Sequence[Sequence[float]] = HINDSIGHT, **rule: Any) -> list[list[float]]:
    notes = {"hindsight_logprobs": on_tokens(rows, 1)}
    found = HindsightCredit(**rule)(walks(FOREST), notes).advantages
    return [row.astype(float).tolist() for row in found]


def test_b2_ratios() -> None:
    rho = HindsightCredit().ratios(np.array(HINDSIGHT[0]))
    assert rho == pytest.approx([1.019258, 0.940894, 1.039848], abs=1e-6)
    far = HindsightCredit().ratios(np.array([0.0, -9.0]))
    assert far.tolist() == [1.2, 0.8]


def test_b2_hcapo() -> None:
    down = -1.750392
    check(
        hindsight(),
        [1.833551, 1.781145, 2.075069],
        [down] * 3,
        [down] * 4,
        [1.655994, 2.008969, 2.031993],
    )
    smooth = hindsight(smooth=True)
    check(smooth[:2], [1.762563, 1.880555, 2.024148], [-1.753326] * 3)
    assert smooth[3] == pytest.approx([1.787121, 1.970811, 1.982060], abs=3e-6)


def test_without_hindsight_later_actions_of_successes_are_better() -> None:
    found = hindsight(clip=(1.0, 1.0))
    assert found == hindsight([[-0.5] * len(row) for row in HINDSIGHT])
    assert found[0][0] < found[0][1] < found[0][2]


def test_b2_a_success_is_never_pushed_down_by_the_second_term() -> None:
    longer = [*FOREST[1:3], Walk("S" * 60, "+", 1.0), Walk("SA", "+", 1.0)]
    notes = {"hindsight_logprobs": on_tokens([[-1.0] * len(w.states) for w in longer], 1)}
    rows = HindsightCredit(gamma=0.5)(walks(longer), notes).advantages
    plain = GroupCredit()(walks(longer), {}).advantages
    assert (rows[2] >= plain[2]).all()
    assert rows[2][0] == plain[2][0]


def test_nothing_is_learned_from_failures_alone_and_weight_0_is_grpo() -> None:
    forest = walks(FOREST[1:3])
    notes = {"hindsight_logprobs": on_tokens(HINDSIGHT[1:3], 1)}
    assert not np.any(np.concatenate(HindsightCredit()(forest, notes).advantages))
    worse = walks(
        [walk._replace(reward=-r) for walk, r in zip(FOREST[1:3], (1.0, 2.0), strict=True)]
    )
    left, right = HindsightCredit()(worse, notes).advantages
    assert left[0] > 0 > right[0]  # no return above 0, and yet they differ
    want = GroupCredit()(walks(FOREST), {}).advantages
    assert hindsight(weight=0.0) == [row.tolist() for row in want]


@pytest.mark.parametrize("clip", [(0.0, 1.2), (1.1, 1.2), (0.8, 0.9)])
def test_bounds_without_1_between_them_are_refused(clip: tuple[float, float]) -> None:
    with pytest.raises(BadValueError, match="with 1 between them"):
        HindsightCredit(clip=clip)


def test_an_empty_batch_is_no_error() -> None:
    nothing = Forest.of([Group("g", "t", faults=3)])
    notes: Any = {"gold_logprobs": [], "hindsight_logprobs": []}
    for rule in (InformationGain(), HindsightCredit()):
        assert rule(nothing, notes).advantages == []
