"""Laws of the credit rules over random forests: forks, forks inside actions, sessions, faults."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from branching import branching
from forests import forests, single_turns, tree, turn
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_batches import batch

from turngym.algos.annotate import SpawnedValues
from turngym.algos.contracts import Norm
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
from turngym.algos.forest import ROOT, Edge, Forest, Group
from turngym.algos.losses import PolicyLoss
from turngym.envs.errors import BadValueError

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


def notes_for(forest: Forest, seed: int = 0) -> dict[str, list[Any]]:
    """Random annotations of the right shapes; sessions are asked for at the ends of actions."""
    rng = np.random.default_rng(seed)
    names = {"old_logprobs": 0, "ref_logprobs": 0, "values": 1}
    notes: dict[str, list[Any]] = {
        name: [rng.normal(size=forest.n_act(p) + more).astype(np.float32) for p in forest]
        for name, more in names.items()
    }
    notes["spawned_values"] = []
    for path in forest:
        turns = forest.turns(path)
        ends = np.cumsum([len(t.act_ids) for t in turns])
        asking = ends[[not t.partial for t in turns]] - 1
        row = np.zeros(ends[-1], np.float32)
        row[asking] = rng.normal(size=len(asking))
        notes["spawned_values"].append(row)
    notes["tracked_values"] = [np.full(forest.n_act(p), 0.3, np.float32) for p in forest]
    return notes


def owners(forest: Forest) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
    """Paths that hold each turn, with the place of its first token in them."""
    found = defaultdict(list)
    for i, path in enumerate(forest):
        at = 0
        for place, t in zip(path.turns, forest.turns(path), strict=True):
            found[path.group, path.tree, place].append((i, at))
            at += len(t.act_ids)
    return dict(found)


@FEW
@given(forests())
def test_any_forest_gets_one_finite_number_per_action_token(forest: Forest) -> None:
    notes = notes_for(forest)
    for rule in RULES:
        assert rule.needs <= set(notes)
        credits = rule(forest, notes)
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
    assert list(rule(nothing, notes_for(nothing)).advantages) == []


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
    notes = notes_for(forest, seed)
    notes["spawned_values"] = [np.zeros_like(row) for row in notes["spawned_values"]]
    common: dict[str, Any] = {"lam": lam, "kl_coef": 0.1, "whiten": bool(seed % 2)}
    ours = SessionCredit(gamma0=gamma, gamma1=0.7, discount_unit="token", **common)(forest, notes)
    gae = Gae(gamma=gamma, bootstrap=False, **common)(forest, notes)
    for mine, theirs in zip(ours.advantages, gae.advantages, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
    for mine, theirs in zip(ours.value_targets, gae.value_targets, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


@FEW
@given(SEEDS, st.floats(0, 1), st.floats(0, 1), st.sampled_from(["in_sum", "current"]))
def test_session_returns_are_equation_3(seed: int, gamma0: float, gamma1: float, mode: Any) -> None:
    """Written out action by action; parts of an action that was cut are one action."""
    forest = branching(seed)
    notes = notes_for(forest, seed)
    rule = SessionCredit(gamma0=gamma0, gamma1=gamma1, kl_coef=0.2, kl_mode=mode, whiten=False)
    got = rule(forest, notes)
    for i, path in enumerate(forest):
        turns = forest.turns(path)
        action = np.repeat(
            np.cumsum([0, *(not t.partial for t in turns[:-1])]), [len(t.act_ids) for t in turns]
        )
        reward = np.concatenate([t.rewards for t in turns]).astype(np.float64)
        kl = notes["old_logprobs"][i].astype(np.float64) - notes["ref_logprobs"][i]
        inside = reward + gamma1 * notes["spawned_values"][i]
        if mode == "in_sum":
            inside -= 0.2 * kl
        for t in range(len(action)):
            later = gamma0 ** (action[t:] - action[t]).astype(float)
            want = float((later * inside[t:]).sum()) - (0.2 * kl[t] if mode == "current" else 0.0)
            assert got.value_targets[i][t] == pytest.approx(want, abs=1e-4)
            value = float(notes["values"][i][t])
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
        rows = [rule(f, notes_for(f, seed)).advantages for f in (a, b)]
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
    ours, grpo = TurnReturns()(forest, {}).advantages, GroupCredit()(forest, {}).advantages
    np.testing.assert_allclose(np.concatenate(ours), np.concatenate(grpo))


@FEW
@given(SEEDS)
def test_pairs_are_sibling_turns_and_the_better_is_better(seed: int) -> None:
    forest = branching(seed, turns=9)
    credits = StepPairs()(forest, {})
    returns = forest.returns()
    sides: dict[int, dict[float, tuple[int, int, int]]] = defaultdict(dict)
    for place, who in owners(forest).items():
        n = len(forest.groups[place[0]].trees[place[1]].turns[place[2]].act_ids)
        for rank, (i, at) in enumerate(who):
            signs = set(credits.advantages[i][at : at + n].tolist())
            numbers = set(credits.extra["pair"][i][at : at + n].tolist())
            assert len(signs) == len(numbers) == 1
            sign, number = signs.pop(), int(numbers.pop())
            assert (number == -1) == (sign == 0)
            assert rank == 0 or number == -1
            if number >= 0:
                assert sign not in sides[number]
                sides[number][sign] = place
    assert sorted(sides) == list(range(int(credits.metrics["pairs"])))
    for pair in sides.values():
        better, worse = pair[1.0], pair[-1.0]
        turns = [forest.groups[g].trees[t].turns[i] for g, t, i in (better, worse)]
        assert turns[0].parent == turns[1].parent
        assert all(t.edge is Edge.CONTINUE for t in turns)
        means = [np.mean([returns[i] for i, _ in owners(forest)[side]]) for side in (better, worse)]
        assert means[0] > means[1]


def test_equal_means_of_different_numbers_of_paths_are_equal() -> None:
    """0.1 three times over has another last digit than 0.1 once."""
    side = [turn(0.1, parent=1, status="solved") for _ in range(3)]
    grown = tree(turn(0.0), turn(0.0, parent=0), *side, turn(0.1, parent=0, status="solved"))
    assert StepPairs()(Forest.of([Group("g", "t", [grown])]), {}).metrics == {"pairs": 0.0}


def test_starts_that_saw_something_else_are_no_fork() -> None:
    for other, pairs in (([7, 8], 1.0), ([7, 9], 0.0)):
        first = turn(1.0, status="solved", obs_ids=np.array([7, 8]))
        again = turn(0.0, status="failed", parent=ROOT, obs_ids=np.array(other))
        forest = Forest.of([Group("g", "t", [tree(first, again)])])
        assert StepPairs()(forest, {}).metrics == {"pairs": pairs}


def test_a_side_that_broke_is_no_side() -> None:
    grown = tree(
        turn(0.0),
        turn(1.0, parent=0, status="solved"),
        turn(0.0, parent=0, status="env_error"),
    )
    assert StepPairs()(Forest.of([Group("g", "t", [grown])]), {}).metrics == {"pairs": 0.0}


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


@pytest.mark.parametrize("rule", [Gae(), SessionCredit()], ids=repr)
def test_values_of_the_wrong_length_are_refused(rule: Any) -> None:
    forest = single_turns([1.0], n=3)
    notes = notes_for(forest) | {"values": [np.zeros(3, np.float32)]}
    with pytest.raises(BadValueError, match=r"shape \(3,\); expected \(4,\)"):
        rule(forest, notes)


@pytest.mark.parametrize(
    ("rule", "bad", "message"),
    [
        (GroupCredit, {"baseline": "median"}, "'mean' or 'leave-one-out' or 'none'"),
        (GroupCredit, {"baseline": "leave-one-out", "singleton": "raw"}, "no others"),
        (GroupCredit, {"eps": float("nan")}, "eps is nan"),
        (TreeCredit, {"terms": "none"}, "TreeCredit.terms is 'none'"),
        (TreeCredit, {"singleton": "one"}, "TreeCredit.singleton"),
        (SharedMean, {"shared": "sum"}, "SharedMean.shared"),
        (SharedMean, {"of": ReturnsToGo()}, "one advantage per path"),
        (ReturnsToGo, {"baseline": "mean"}, "ReturnsToGo.baseline"),
        (ReturnsToGo, {"kl_coef": float("inf")}, "kl_coef is inf"),
        (SessionCredit, {"kl_mode": "outside", "kl_coef": 1.0}, "SessionCredit.kl_mode"),
        (SessionCredit, {"discount_unit": "turn"}, "SessionCredit.discount_unit"),
        (TurnReturns, {"eps": -1.0}, "eps is -1.0"),
        (SpawnedValues, {"most": 0}, "most is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(rule: Any, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValueError, match=message):
        rule(**bad)
