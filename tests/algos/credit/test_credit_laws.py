"""Laws of the credit rules over random forests: forks, forks inside actions, sessions, faults."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from helpers.branching import branching
from helpers.forests import forests, single_turns, tree, turn
from helpers.loss_batches import batch
from helpers.path_notes import annotations_for, owners
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.annotators import SpawnedValues
from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.core.protocols import Norm
from turngym.algos.credit import (
    Gae,
    GroupCredit,
    Imitation,
    ReturnsToGo,
    SessionCredit,
    SharedMean,
    StepPairs,
    TrackedCredit,
    TreeCredit,
    TurnReturns,
)
from turngym.algos.credit.gae import whitened
from turngym.algos.losses import PolicyLoss

SEEDS = st.integers(0, 300)
FEW = settings(max_examples=40, deadline=None)
RULES: list[Any] = [
    GroupCredit(),
    GroupCredit(baseline="leave-one-out", scale="none"),
    TreeCredit(),
    TreeCredit(terms="intra"),
    SharedMean(),
    SharedMean(of=TreeCredit(), shared="once"),
    ReturnsToGo(kl_coef=0.1, gamma=0.9),
    ReturnsToGo(baseline="group-mean"),
    TrackedCredit(),
    TurnReturns(),
    TurnReturns(over="index"),
    Gae(kl_coef=0.1, lam=0.9),
    SessionCredit(kl_coef=0.1, gamma0=0.9, score_clip=(-1.0, 1.0)),
    StepPairs(),
    Imitation(solved_only=True),
]


@FEW
@given(forests())
def test_any_forest_gets_one_finite_number_per_action_token(forest: Forest) -> None:
    annotations = annotations_for(forest)
    for rule in RULES:
        assert rule.needs <= set(annotations)
        credits = rule(forest, annotations)
        assert set(credits.extra) == rule.provides - {"value_targets"}
        streams = [credits.advantages, *credits.extra.values()]
        if "value_targets" in rule.provides:
            streams.append(credits.value_targets)
        for rows in streams:
            assert len(rows) == len(forest.paths)
            for row, path in zip(rows, forest, strict=True):
                assert row.dtype == np.float32
                assert row.shape == (forest.n_act(path),)
                assert np.isfinite(row).all()
        assert all(np.isfinite(v) for v in credits.metrics.values())


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_an_empty_batch_is_no_error(rule: Any) -> None:
    nothing = Forest.of([Group("g", "t", faults=3)])
    assert list(rule(nothing, annotations_for(nothing)).advantages) == []


@FEW
@given(SEEDS)
def test_both_terms_are_the_sum_of_one_and_the_other(seed: int) -> None:
    forest = branching(seed)
    both, inter, intra = (
        np.concatenate(TreeCredit(terms=t)(forest, {}).advantages)  # pyright: ignore
        for t in ("both", "inter", "intra")
    )
    np.testing.assert_allclose(both, inter + intra, atol=1e-5)
    np.testing.assert_array_equal(inter, np.concatenate(GroupCredit()(forest, {}).advantages))


@FEW
@given(SEEDS)
def test_what_a_whole_tree_shares_gets_nothing_from_the_tree(seed: int) -> None:
    forest = branching(seed)
    rows = TreeCredit(terms="intra")(forest, {}).advantages
    per_tree = defaultdict(set)
    for i, path in enumerate(forest):
        per_tree[path.group, path.tree].add(i)
    for (g, t, _), who in owners(forest).items():
        if {i for i, _ in who} == per_tree[g, t]:
            assert sum(float(rows[i][at]) for i, at in who) == pytest.approx(0, abs=1e-4)


@FEW
@given(SEEDS, st.sampled_from([GroupCredit(), TreeCredit()]))
def test_hard_and_soft_give_shared_turns_the_same_in_sum(seed: int, rule: Any) -> None:
    forest = branching(seed)
    soft = rule(forest, {}).advantages
    hard = SharedMean(of=rule)(forest, {}).advantages
    once = SharedMean(of=rule, shared="once")(forest, {}).advantages
    for who in owners(forest).values():
        mean = np.mean([soft[i][at] for i, at in who])
        assert [hard[i][at] for i, at in who] == pytest.approx([mean] * len(who), abs=1e-5)
        assert sum(once[i][at] for i, at in who) == pytest.approx(mean, abs=1e-5)
        assert once[who[0][0]][who[0][1]] == hard[who[0][0]][who[0][1]]


def test_e12_soft_and_hard_differ_where_clipping_is_active() -> None:
    """A token shared by A = +1 and A = -1 at a ratio of 1.5."""
    forest = Forest.of(
        [
            Group(
                "g",
                "t",
                [
                    tree(
                        turn(0.0),
                        turn(1.0, parent=0, status="solved"),
                        turn(-1.0, parent=0, status="failed"),
                    )
                ],
            )
        ]
    )
    rule = GroupCredit(scale="none")
    soft, hard = (
        r(forest, {}).advantages
        for r in (rule, SharedMean(of=rule))  # type: ignore[operator]
    )
    assert [float(a[0]) for a in soft] == [1.0, -1.0]
    ratio = [[float(np.log(1.5))]] * 2
    losses = [
        PolicyLoss()(batch(ratio, [[float(a[0])] for a in rows])).loss.item()
        for rows in (soft, hard)
    ]
    assert losses == pytest.approx([0.15, 0.0], abs=1e-6)


@FEW
@given(
    st.lists(st.floats(-2, 2), min_size=2, max_size=4), st.floats(-1, 1), st.sampled_from([1, 3])
)
def test_counting_a_shared_token_once_is_exact_even_when_clipped(
    advantages: list[float], log_ratio: float, n: int
) -> None:
    """One copy with the mean, or every copy with its |S|-th part: one term of the loss."""
    mean, size = float(np.mean(advantages)), len(advantages)
    rows = [[log_ratio] * n] * size
    norm = Norm(tokens=1.0, paths=1.0)
    once = [[mean] * n] + [[0.0] * n] * (size - 1)
    parts = [[mean / size] * n] * size
    got = [PolicyLoss()(batch(rows, a, norm=norm)).loss.item() for a in (once, parts)]
    alone = PolicyLoss()(batch(rows[:1], [[mean] * n], norm=norm)).loss.item()
    assert got == pytest.approx([alone, alone])


@FEW
@given(SEEDS)
def test_returns_to_go_without_discount_are_what_is_left_of_the_return(seed: int) -> None:
    forest = branching(seed)
    returns = forest.returns()
    rows = []
    for i, path in enumerate(forest):
        earned = np.concatenate([t.rewards for t in forest.turns(path)]).astype(np.float64)
        rows.append(returns[i] - (np.cumsum(earned) - earned))
    for mine, theirs in zip(ReturnsToGo()(forest, {}).advantages, whitened(rows), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


@FEW
@given(SEEDS, st.floats(0, 1), st.floats(0, 1))
def test_without_sessions_asked_for_session_credit_is_gae(
    seed: int, gamma: float, lam: float
) -> None:
    """Whatever gamma1 is, with rewards on any token, whitened or not."""
    forest = branching(seed)
    annotations = annotations_for(forest, seed)
    annotations["spawned_values"] = [np.zeros_like(row) for row in annotations["spawned_values"]]
    common: dict[str, Any] = {"lam": lam, "kl_coef": 0.1, "whiten": bool(seed % 2)}
    ours = SessionCredit(gamma0=gamma, gamma1=0.7, discount_unit="token", **common)(
        forest, annotations
    )
    gae = Gae(gamma=gamma, bootstrap=False, **common)(forest, annotations)
    for mine, theirs in zip(ours.advantages, gae.advantages, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
    for mine, theirs in zip(ours.value_targets, gae.value_targets, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


@FEW
@given(SEEDS, st.floats(0, 1), st.floats(0, 1), st.sampled_from(["in_sum", "current"]))
def test_session_returns_are_equation_3(seed: int, gamma0: float, gamma1: float, mode: Any) -> None:
    """Written out action by action; parts of an action that was cut are one action."""
    forest = branching(seed)
    annotations = annotations_for(forest, seed)
    rule = SessionCredit(gamma0=gamma0, gamma1=gamma1, kl_coef=0.2, kl_mode=mode, whiten=False)
    got = rule(forest, annotations)
    for i, path in enumerate(forest):
        turns = forest.turns(path)
        action = np.repeat(
            np.cumsum([0, *(not t.partial for t in turns[:-1])]), [len(t.act_ids) for t in turns]
        )
        reward = np.concatenate([t.rewards for t in turns]).astype(np.float64)
        kl = annotations["old_logprobs"][i].astype(np.float64) - annotations["ref_logprobs"][i]
        inside = reward + gamma1 * annotations["spawned_values"][i]
        if mode == "in_sum":
            inside -= 0.2 * kl
        for t in range(len(action)):
            later = gamma0 ** (action[t:] - action[t]).astype(float)
            want = float((later * inside[t:]).sum()) - (0.2 * kl[t] if mode == "current" else 0.0)
            assert got.value_targets[i][t] == pytest.approx(want, abs=1e-4)
            value = float(annotations["values"][i][t])
            assert got.advantages[i][t] == pytest.approx(want - value, abs=1e-4)


def test_the_value_of_a_clipped_action_counts_once() -> None:
    """The clip bounds the whole action, also where its reward is spread over its tokens."""
    rule = SessionCredit(gamma1=1.0, score_clip=(-0.1, 5.0))
    parts = [
        turn(0.0, n=2, partial=True),
        turn([3.0, 1.0], parent=0, obs_ids=np.zeros(0, np.int64)),
        turn(-2.0, n=2, parent=1, status="failed"),
    ]
    scores = rule.scores(parts, np.array([0, 0, 0, 4.0, 0, 0]))
    assert scores.tolist() == [0, 0, 3, 2, 0, pytest.approx(-0.1)]


@FEW
@given(SEEDS)
def test_a_cut_inside_an_action_changes_no_turn_s_credit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    returns = rng.normal(size=3).round(2)
    whole, cut = [], []
    for value in returns:
        first, last = turn(0.25, n=3), turn(float(value), parent=0, n=2, status="solved")
        whole.append(tree(first, last))
        cut.append(
            tree(
                turn(0.0, n=1, partial=True),
                turn(0.25, n=2, parent=0, obs_ids=np.zeros(0, np.int64)),
                turn(float(value), parent=1, n=2, status="solved"),
            )
        )
    rules: list[Any] = [TurnReturns(), TurnReturns(over="index"), SessionCredit(gamma0=0.5)]
    for rule in rules:
        a, b = (Forest.of([Group("g", "t", trees)]) for trees in (whole, cut))
        rows = [rule(f, annotations_for(f, seed)).advantages for f in (a, b)]
        np.testing.assert_allclose(np.concatenate(rows[0]), np.concatenate(rows[1]), atol=1e-6)


def test_what_other_sessions_earned_counts_in_every_turn() -> None:
    episode = tree(
        turn(0.5),
        turn(1.0, parent=0, edge=Edge.SPAWN),
        turn(2.0, parent=0, edge=Edge.SPAWN, previous=1, status="solved"),
    )
    other = tree(turn(0.5, status="failed"))
    forest = Forest.of([Group("g", "t", [episode, other])])
    assert forest.returns().tolist() == [3.5, 3.5, 3.5, 0.5]
    ours = np.concatenate(TurnReturns()(forest, {}).advantages)
    np.testing.assert_allclose(ours, GroupCredit().compare(np.array([3.5, 3.5, 3.5, 0.5])))


def test_a_shared_turn_s_sessions_are_valued_once() -> None:
    prompts = tuple(np.array([v, 9]) for v in (3, 2))
    grown = tree(
        turn(0.0, n=2, spawned=prompts),
        turn(1.0, parent=0, n=1, status="solved", spawned=prompts[:1]),
        turn(0.0, parent=0, n=3, status="failed"),
    )
    asked: list[Any] = []

    class Scorer:
        def prompt_values(self, prompts: Any) -> Any:
            asked.extend(prompts)
            return np.array([float(p[0]) for p in prompts], np.float32)

    scorer: Any = Scorer()
    got = SpawnedValues()(Forest.of([Group("g", "t", [grown])]), scorer)["spawned_values"]
    assert [row.tolist() for row in got] == [[0, 5, 3], [0, 5, 0, 0, 0]]
    assert len(asked) == 3
    nobody = SpawnedValues()(single_turns([1.0]), scorer)["spawned_values"]
    assert [row.tolist() for row in nobody] == [[0.0]]
    assert len(asked) == 3
