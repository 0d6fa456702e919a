"""Shapers: lengths, tools, unreadable actions, verdicts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from helpers.branching import branching
from helpers.forests import tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.credit import Gae, GroupCredit
from turngym.algos.rewards.judges import RuleJudge
from turngym.algos.rewards.shaping import (
    FormatGate,
    InvalidActionPenalty,
    MultiToolBonus,
    Overlong,
    VerdictRewards,
)
from turngym.algos.rollouts.stats import shaped_metrics
from turngym.algos.runs.metrics import checked
from turngym.envs.core.errors import BadValueError


@pytest.mark.parametrize(
    ("length", "verl", "paper"),
    [
        (16_384, 0, 0),
        (17_408, -0.25, -0.25),
        (18_432, -0.5, -0.5),
        (20_480, -1, -1),
        (21_000, -1.126953, -1),
    ],
)
def test_overlong(length: int, verl: float, paper: float) -> None:
    """E22."""
    assert Overlong().penalty(length) == pytest.approx(paper)
    assert Overlong(floor=False).penalty(length) == pytest.approx(verl, abs=1e-6)
    assert Overlong(factor=2.0).penalty(length) == pytest.approx(2 * paper)


def group(*lines: Any) -> Forest:
    return Forest.of([Group("g", "t", [tree(*line) for line in lines])])


def test_penalties_land_on_the_last_token_and_are_named() -> None:
    forest = group([turn(0.0, n=3), turn(1.0, n=3, parent=0, status="solved")])
    shaped = Overlong(limit=6, cache=2)(forest)
    last = shaped.turns(shaped.paths[0])[-1]
    assert last.rewards.tolist() == [0, 0, 0]
    assert last.reward_terms[-1] == ("overlong", -1.0)
    assert forest.reward(forest.paths[0]) == 1  # the old one stays
    assert shaped.paths == forest.paths


def test_two_tools_and_a_success_earn_a_bonus() -> None:
    def line(reward: float, *said: str) -> Any:
        return [turn(reward, action="".join(said), status="solved")]

    search, python = "<search>q</search>", "<python>1</python>"
    forest = group(
        line(1, search, python), line(1, search), line(0, search, python), line(0.5, python, search)
    )
    assert MultiToolBonus()(forest).returns() == pytest.approx([1.1, 1, 0, 0.6])
    assert MultiToolBonus(tools=("search",))(forest).returns() == pytest.approx([1.1, 1.1, 0, 0.6])


def test_unreadable_actions_have_a_price() -> None:
    line = [turn(0.0, valid=False), turn(1.0, parent=0, status="solved", valid=False)]
    forest = group(line, [turn(1.0, status="solved")])
    assert InvalidActionPenalty(coef=0.25)(forest).returns() == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize(
    ("verdicts", "outcome", "total"),
    [
        ([1] * 8, 1, 15),
        ([1] * 6 + [0] * 2, 1, 13.75),
        ([1] * 5 + [-1, 0, 0], 1, 8.125),
        ([1] * 6 + [0] * 2, 0, 3.75),
        ([1] * 4 + [-1, 0, 0, 0], 0, -2.5),
        ([], 1, 0),
    ],
)
def test_bands_of_the_trajectory_score(verdicts: list[int], outcome: int, total: float) -> None:
    """The four classes of TARL, eight turns each."""
    assert sum(VerdictRewards().parts(verdicts, outcome)) == pytest.approx(total)


def test_the_other_reading_scales_the_turns_down() -> None:
    assert sum(VerdictRewards(turn_budget=1).parts([1] * 8, 1)) == pytest.approx(11)


def judged(*verdicts: int, reward: float = 1.0) -> Any:
    last = len(verdicts) - 1
    return [
        turn(
            reward if i == last else 0.0,
            n=2,
            parent=i - 1,
            verdict=v,
            status="solved" if i == last else "running",
        )
        for i, v in enumerate(verdicts)
    ]


def test_rewards_at_the_end_or_at_the_turns() -> None:
    forest = group(judged(1, -1, 0, 1))
    whole = VerdictRewards()(forest)
    ends = [t.rewards.tolist() for t in whole.turns(whole.paths[0])]
    assert ends == [[0, 0], [0, 0], [0, 0], [0, 7.5]]
    parts = VerdictRewards(at="turns")(forest)
    ends = [t.rewards.tolist() for t in parts.turns(parts.paths[0])]
    assert ends == [[0, 1.25], [0, -5], [0, 0], [0, 11.25]]
    values = [np.zeros(9, np.float32)]
    first = Gae(whiten=False)(parts, {"values": values}).advantages[0]
    assert first == pytest.approx([7.5, 7.5, 6.25, 6.25, 11.25, 11.25, 11.25, 11.25])


def test_partial_turns_are_no_turns_of_their_own() -> None:
    none = np.zeros(0, np.int64)
    line = [
        turn(0.0, n=2, partial=True),
        turn(0.0, n=1, parent=0, obs_ids=none, verdict=1),
        turn(1.0, parent=1, verdict=1, status="solved"),
    ]
    shaped = VerdictRewards(at="turns")(group(line))
    assert [t.reward for t in shaped.turns(shaped.paths[0])] == [0, 2.5, 12.5]


def test_a_shared_turn_cannot_have_two_rewards() -> None:
    fork = [
        turn(0.0, verdict=1),
        turn(1.0, parent=0, status="solved"),
        turn(0.0, parent=0),
        turn(0.0, parent=2, status="failed"),
    ]
    forest = group(fork)
    with pytest.raises(BadValueError, match="Chains"):
        VerdictRewards(at="turns")(forest)
    assert VerdictRewards()(forest).returns() == pytest.approx([12.5, 5 / 3])


@given(
    st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=5), min_size=2, max_size=5)
)
def test_without_weight_on_verdicts_it_is_grpo(lines: list[list[int]]) -> None:
    forest = group(*(judged(*v, reward=float(i % 3)) for i, v in enumerate(lines)))
    shaped = VerdictRewards(turn_budget=0, major_weight=0)(RuleJudge()(forest))
    ours = GroupCredit(eps=1e-12)(shaped, {}).advantages
    grpo = GroupCredit(eps=1e-12)(forest, {}).advantages
    assert np.concatenate(ours) == pytest.approx(np.concatenate(grpo), abs=1e-6)


def test_a_bonus_is_for_a_right_answer_not_for_its_format() -> None:
    said = "<search>q</search><python>1</python>"
    right = (("outcome", 0.5), ("format", 0.0))
    wrong = (("outcome", 0.0), ("format", 0.2))
    forest = group(
        [turn(0.5, action=said, status="solved", reward_terms=right)],
        [turn(0.2, action=said, status="failed", reward_terms=wrong)],
        [turn(-1.0, action=said, status="failed", reward_terms=right)],
    )
    assert MultiToolBonus()(forest).returns() == pytest.approx([0.6, 0.2, -1.0])


def test_the_hierarchical_reward_of_arpo() -> None:
    """Format first, then the outcome, then the bonus (E25's last line, and E24's F1 of 2/3)."""
    both, one = "<search>q</search><python>1</python>", "<search>q</search>"
    forest = group(
        [turn(1.0, action=both, status="solved")],
        [turn(1.0, action=one, status="solved")],
        [turn(0.0, action=both, status="failed")],
        [turn(1.0, action=both, status="solved", valid=False)],
        [turn(0.0), turn(0.0, parent=0, status="truncated")],
        [turn(2 / 3, action=both, status="solved")],
    )
    shaped = MultiToolBonus()(FormatGate(score=-1.0)(forest))
    assert shaped.returns() == pytest.approx([1.1, 1.0, 0.0, -1.0, -1.0, 0.766667])


@given(st.integers(0, 200))
def test_shapers_change_rewards_and_verdicts_alone(seed: int) -> None:
    """On any forest: same shape, only ends of paths get a term, and terms add up to the change."""
    forest = branching(seed)
    before = pickle.dumps(forest)
    ends = {(p.group, p.tree, p.turns[-1]) for p in forest}
    shapers: list[Any] = [
        Overlong(limit=12, cache=6, floor=bool(seed % 2)),
        InvalidActionPenalty(coef=0.5),
        FormatGate(score=-2.0),
        MultiToolBonus(tools=("a",)),
    ]
    for shape in shapers:
        shaped = shape(forest)
        assert shaped.paths == forest.paths
        for g, (old_group, new_group) in enumerate(zip(forest.groups, shaped.groups, strict=True)):
            assert old_group.uid == new_group.uid
            for t, pair in enumerate(zip(old_group.trees, new_group.trees, strict=True)):
                for i, (old, new) in enumerate(zip(*(x.turns for x in pair), strict=True)):
                    added = new.reward_terms[len(old.reward_terms) :]
                    assert new.reward - old.reward == pytest.approx(
                        sum(v for _, v in added), abs=1e-5
                    )
                    assert new is old or (g, t, i) in ends
                    np.testing.assert_array_equal(new.rewards[:-1], old.rewards[:-1])
    assert pickle.dumps(forest) == before


@given(st.integers(0, 200))
def test_without_weight_on_verdicts_trees_are_grpo_too(seed: int) -> None:
    """Without sessions, which are judged each on its own."""
    grown = branching(seed, groups=1, trees=8, turns=5).groups[0].trees
    alone = [g for g in grown if all(t.edge is Edge.CONTINUE for t in g.turns)]
    forest = Forest.of([Group("g", "t", alone)])
    shaped = VerdictRewards(turn_budget=0, major_weight=0)(forest)
    ours = GroupCredit(eps=1e-12)(shaped, {}).advantages
    grpo = GroupCredit(eps=1e-12)(forest, {}).advantages
    for mine, theirs in zip(ours, grpo, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-4)


def test_a_shaped_forest_s_metrics_are_declared() -> None:
    forest = group(judged(1, -1, 0), judged(1, reward=0.0))
    shaped = Overlong(limit=4, cache=4)(VerdictRewards()(forest))
    row = checked(shaped_metrics(shaped))
    assert row["judge/right_frac"] == 0.5
    assert row["judge/wrong_frac"] == 0.25
    assert row["shaped/term_outcome_mean"] == 5.0
    assert row["shaped/term_verdicts_mean"] == pytest.approx((5 / 3 - 5 + 5) / 2)
    assert row["shaped/term_overlong_mean"] == pytest.approx((-1.0 - 0.5) / 2)
    assert row["shaped/return_mean"] == pytest.approx(
        row["shaped/term_outcome_mean"]
        + row["shaped/term_verdicts_mean"]
        + row["shaped/term_overlong_mean"]
    )
    assert shaped_metrics(Forest.of([])) == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Overlong(limit=1, cache=2),
        lambda: Overlong(factor=0),
        lambda: MultiToolBonus(tools=()),
        lambda: MultiToolBonus(bonus=0.0),
        lambda: FormatGate(score=float("nan")),
        lambda: InvalidActionPenalty(coef=0),
        lambda: VerdictRewards(at="start"),
        lambda: VerdictRewards(outcome_weight=0),
    ],
)
def test_settings_are_checked(make: Any) -> None:
    with pytest.raises(BadValueError):
        make()
