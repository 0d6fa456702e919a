"""Credit by state: the reference's numbers, the laws of grouping, and what is refused."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers.branching import branching
from helpers.forests import tree, turn
from helpers.state_forests import FOREST, Walk, walk_tree, walks
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.credit import (
    GoalDistances,
    GroupCredit,
    StateCredit,
    StateReturns,
    StateValues,
    WindowReturns,
)
from turngym.algos.credit.states import find_visits
from turngym.algos.recipes import make_recipe
from turngym.envs.core.errors import BadValueError

ALONE: Any = {"episode_weight": 0.0}
CODE: Any = {"over": "turns"}
TERMS: Any = (StateReturns(), WindowReturns(), StateValues(), GoalDistances())
STATES = st.sampled_from("ABCD")


def credit(forest: Forest, **rule: Any) -> list[list[float]]:
    """The advantage of each turn, path by path."""
    rows = StateCredit(**rule)(forest, {}).advantages
    return [row.astype(float).tolist() for row in rows]


def check(found: Sequence[Sequence[float]], *want: Sequence[float]) -> None:
    assert len(found) == len(want)
    for row, numbers in zip(found, want, strict=True):
        assert row == pytest.approx(numbers, abs=2e-6)


def test_a1_gigpo() -> None:
    forest = walks(FOREST)
    up, down = [1.095443, 1.154698, 0.0], [-0.730295, -0.577349, -0.577349]
    long = [-0.730295, -0.577349, -0.730295, -0.577349]
    check(credit(forest, **ALONE), up, down, long, up)
    up, down = [2.133190, 2.192445, 1.037747], [-1.619793, -1.466847, -1.466847]
    check(credit(forest, **CODE), up, down, [down[0], down[1], down[0], down[1]], up)
    up, down = [1.961467, 2.020722, 0.866024], [-1.596319, -1.443373, -1.443373]
    check(credit(forest), up, down, [down[0], down[1], down[0], down[1]], up)
    found = credit(forest, **CODE, scale="none")
    assert found[0] == pytest.approx([1.079962, 1.171795, 0.538462], abs=2e-6)


def test_a1_the_statistics_of_turns_are_not_those_of_paths() -> None:
    forest = walks(FOREST)
    found = credit(forest, **CODE, state_weight=0.0)
    assert [row[0] for row in found] == pytest.approx([1.037747, -0.889497, -0.889497, 1.037747])
    found = credit(forest, state_weight=0.0)
    assert [row[0] for row in found] == pytest.approx([0.866024, -0.866024, -0.866024, 0.866024])


def test_a1_an_unreadable_action_costs_where_it_was_written() -> None:
    forest = walks(FOREST)
    group = forest.groups[0]
    spoiled = Tree()
    for k, one in enumerate(group.trees[1].turns):
        spoiled.add(dataclasses.replace(one, valid=k != 0))
    other = Forest.of([Group("u", "t", [group.trees[0], spoiled, *group.trees[2:]])])
    found = credit(other, **ALONE, scale="none", invalid_penalty=0.1)
    plain = credit(forest, **ALONE, scale="none")
    lost = [p - f for p, f in zip(plain[1], found[1], strict=True)]
    assert lost == pytest.approx([0.1 - 0.1 / 5, 0.0, 0.0], abs=1e-6)  # of five visits of S
    assert found[0][0] - plain[0][0] == pytest.approx(0.1 / 5, abs=1e-6)
    assert [f[1:] for f in found] == [p[1:] for p in plain[:2]] + [found[2][1:], plain[3][1:]]


def test_a2_hgpo() -> None:
    forest = walks(FOREST)

    def windows(**term: Any) -> list[list[float]]:
        return credit(forest, **ALONE, term=WindowReturns(**term))

    check(
        windows(),
        [1.224741, 1.414210, 0.0],
        [-0.816494, -0.707105, -0.707105],
        [-0.816494, -0.882841, -0.816494, -0.707105],
        [1.224741, 1.165683, 0.0],
    )
    flat = windows(alpha=0.0)
    assert (flat[2][1], flat[3][1]) == pytest.approx((-0.853551, 1.207104), abs=2e-6)
    short = windows(context=0)
    assert (short[2][1], short[3][1]) == pytest.approx((-0.707105, 1.414210), abs=2e-6)
    # 1 : 2 in place of 2 : 3, worked by hand from the two scores of t3's second turn
    one, two = short[2][1], (5 * windows(context=1)[2][1] - 2 * short[2][1]) / 3
    assert windows(offset=0)[2][1] == pytest.approx((one + 2 * two) / 3, abs=1e-5)


@pytest.mark.parametrize("over", ["paths", "turns"])
def test_hgpo_s_base_item_is_the_path_s_score_with_weight_one(over: str) -> None:
    forest = walks(FOREST)
    with_base = credit(forest, **ALONE, over=over, term=WindowReturns(context=0, base=True))
    plain = credit(forest, **ALONE, term=WindowReturns(context=0))
    score = credit(forest, state_weight=0.0, over=over)
    assert with_base[0][1] == pytest.approx((2 * plain[0][1] + score[0][1]) / 3, abs=1e-5)
    assert with_base[0][2] == pytest.approx(score[0][2], abs=1e-5)  # the rest is 0: no weight


def test_a3_g2po() -> None:
    forest = walks(FOREST)
    visits = find_visits(forest, range(4), "state", 0.95, forest.returns())
    values = StateValues().values(visits)
    assert [values[s] for s in "SABC"] == pytest.approx(
        [0.342950, 0.300833, 0.300833, 0.95], abs=1e-6
    )
    siblings = credit(forest, **ALONE, term=StateValues(terms="siblings"))
    a, b = (0, 1), (3, 1)
    assert [siblings[i][k] for i, k in (a, (1, 1), (2, 3))] == pytest.approx(
        [1.097889, -0.239144, -0.858745], abs=2e-6
    )
    assert [siblings[i][k] for i, k in ((1, 2), (2, 1), b)] == pytest.approx(
        [-0.895865, -0.182991, 1.078856], abs=2e-6
    )
    check(
        credit(forest, **ALONE, term=StateValues(terms="differences"))[:3],
        [-0.311872, 2.071947, 0.005783],
        [-0.311872, -0.166637, -1.204030],
        [-0.311872, -0.021402, -0.311872, -1.204030],
    )
    check(
        credit(forest, **CODE, term=StateValues()),
        [0.725875, 4.207583, 1.043530],
        [-1.201370, -1.295279, -2.989393],
        [-1.201370, -1.093891, -1.201370, -2.952272],
        [0.725875, 4.188550, 1.043530],
    )


def test_a4_graphgpo() -> None:
    forest = walks(FOREST)
    visits = find_visits(forest, range(4), "state", 0.95, forest.returns())
    distances = GoalDistances().distances(visits)
    assert [distances[s] for s in "CABSD"] == [1, 2, 2, 3, 4]
    rewards = GoalDistances().rewards(visits)
    assert rewards[[0, 1, 2]] == pytest.approx([0.1, 1, 10])
    assert rewards[6:10] == pytest.approx([0.1, 0.01, 0.1, 0.001])
    forward = GoalDistances(progress=True).rewards(visits)
    assert forward[:6] == pytest.approx([10, 10, 10, 10, 1, 0.01])
    assert forward[6:10] == pytest.approx([10, 0.1, 10, 0.01])
    term = GoalDistances()
    check(
        credit(forest, **ALONE, term=term),
        [0, 1.150020, 0],
        [0, -0.485079, -0.585169],
        [0, -0.569494, 0, -0.664940],
        [0, 1.154663, 0],
    )
    check(
        credit(forest, **CODE, term=term)[:2],
        [1.037747, 2.187767, 1.037747],
        [-0.889497, -1.374577, -1.474666],
    )


def test_a4_without_a_success_all_is_zero() -> None:
    forest = walks(FOREST[1:3])
    visits = find_visits(forest, range(2), "state", 0.95, forest.returns())
    assert set(GoalDistances().distances(visits).values()) == {0, 1}
    for term in TERMS:
        assert not np.any(np.concatenate(credit(forest, term=term)))


@pytest.mark.parametrize("term", TERMS)
def test_where_all_succeed_the_shorter_way_is_better(term: Any) -> None:
    forest = walks((Walk("SAC", "+", 1.0), Walk("SC", "+", 1.0)))
    found = credit(forest, **ALONE, term=term)
    assert found[0][0] < 0 < found[1][0]


def test_without_a_success_partial_rewards_are_compared() -> None:
    forest = walks((Walk("SA", "D", 0.25), Walk("SB", "D", 0.5)))
    want = GroupCredit()(forest, {}).advantages
    assert credit(forest, term=GoalDistances()) == [row.astype(float).tolist() for row in want]
    assert want[0][0] < 0 < want[1][0]


def test_a_truncated_episode_led_to_the_state_it_ended_in() -> None:
    cut = Walk("SA", "C", 0.0)  # went the right way, and had no turns left
    forest = walks((FOREST[0], cut, FOREST[2]))
    found = credit(forest, **ALONE, term=GoalDistances())
    assert found[1][1] == pytest.approx(found[0][1])
    assert found[1][1] > 0 > found[2][3]


@st.composite
def some_walks(draw: st.DrawFn) -> list[Walk]:
    """A group of walks on a graph in which an action is named after where it leads."""
    made = []
    for _ in range(draw(st.integers(1, 5))):
        states = "".join(draw(st.lists(STATES, min_size=1, max_size=5)))
        made.append(Walk(states, *draw(st.sampled_from((("+", 1.0), ("D", 0.0), ("E", 0.0))))))
    return made


@settings(max_examples=25, deadline=None)
@given(some_walks(), st.permutations("ABCDE"), st.sampled_from(TERMS))
def test_relabelling_states_changes_nothing(
    group: list[Walk], names: Sequence[str], term: Any
) -> None:
    other = str.maketrans("ABCDE", "".join(names))
    renamed = [
        w._replace(states=w.states.translate(other), end=w.end.translate(other)) for w in group
    ]
    for identity in ("state", "state+turn", "history", "text"):
        rule: Any = {"term": term, "identity": identity}
        check(credit(walks(renamed), **rule), *credit(walks(group), **rule))


@settings(max_examples=20, deadline=None)
@given(some_walks())
def test_unique_states_leave_grpo_alone(group: list[Walk]) -> None:
    fresh = map(chr, itertools.count(200))
    unique = [w._replace(states="".join(next(fresh) for _ in w.states)) for w in group]
    forest = walks(unique)
    want = [row.tolist() for row in GroupCredit()(forest, {}).advantages]
    for term in (StateReturns(), StateValues(terms="siblings"), GoalDistances(), WindowReturns()):
        assert credit(forest, term=term) == want
        assert not np.any(np.concatenate(credit(forest, term=term, **ALONE)))


@settings(max_examples=25, deadline=None)
@given(some_walks(), st.randoms(use_true_random=False), st.sampled_from(TERMS))
def test_permuting_trajectories_permutes_their_credit(
    group: list[Walk], dice: Any, term: Any
) -> None:
    order = list(range(len(group)))
    dice.shuffle(order)
    plain = credit(walks(group), term=term)
    check(credit(walks([group[i] for i in order]), term=term), *(plain[i] for i in order))


@settings(max_examples=15, deadline=None)
@given(some_walks(), st.integers(2, 9))
def test_the_scale_of_returns_changes_scores_by_eps_alone(group: list[Walk], factor: int) -> None:
    """With hardly any eps nothing is left: deviations within a state may be small."""
    large = [w._replace(reward=w.reward * factor) for w in group]
    for term in TERMS[:3]:  # distances ask for solved episodes, which a return of 1 names here
        scores = [credit(walks(of), term=term, eps=1e-9) for of in (large, group)]
        check_close(*scores)
        shifted = credit(walks(large), term=term, scale="none")
        if not isinstance(term, WindowReturns):
            plain = credit(walks(group), term=term, scale="none")
            check_close(shifted, [[factor * v for v in row] for row in plain])


def check_close(found: Sequence[Sequence[float]], want: Sequence[Sequence[float]]) -> None:
    for one, two in zip(found, want, strict=True):
        assert one == pytest.approx(two, rel=1e-4, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(some_walks())
def test_one_state_everywhere_compares_all_turns(group: list[Walk]) -> None:
    same = [w._replace(states="A" * len(w.states)) for w in group]
    forest = walks(same)
    to_go = [
        [0.95 ** (len(w.states) - 1 - t) * w.reward for t in range(len(w.states))] for w in same
    ]
    values = np.concatenate(to_go)
    want = np.zeros(len(values))
    if len(values) > 1 and values.max() > values.min():
        want = (values - values.mean()) / (values.std(ddof=1) + 1e-6)
    found = np.concatenate(credit(forest, **ALONE))
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_identities_are_ever_finer() -> None:
    """All of a state's visits, those at one turn, those with one past."""
    group = (Walk("SAS", "D", 0.0), Walk("SBS", "+", 1.0), Walk("SAC", "+", 1.0))
    forest = walks(group)

    def met(identity: Any, of: Forest = forest) -> float:
        return StateCredit(identity=identity)(of, {}).metrics["met_states_frac"]

    assert met("state") == 7 / 9  # S five times, A twice
    assert met("state+turn") == 7 / 9
    assert met("history") == 5 / 9
    again = walks((Walk("SAS", "D", 0.0), Walk("SB", "D", 0.0)))
    assert (met("state", again), met("state+turn", again)) == (3 / 5, 2 / 5)


def test_text_takes_equal_observations_for_one_state() -> None:
    trees = []
    for state, reward in (("A", 1.0), ("B", 0.0)):
        first = turn(state="S", obs_ids=np.array([1]), act_ids=np.array([ord(state)]))
        then = turn(reward, parent=0, state=state, obs_ids=np.array([9]), status="failed")
        trees.append(tree(first, then))
    forest = Forest.of([Group("u", "t", trees)])
    assert [row[1] for row in credit(forest, **ALONE)] == [0.0, 0.0]
    guessed = credit(forest, **ALONE, identity="text")
    assert [row[1] for row in guessed] == pytest.approx([0.707106, -0.707106], abs=1e-5)
    assert [row[1] for row in credit(forest, **ALONE, identity="history")] == [0.0, 0.0]


def test_states_of_two_groups_are_not_compared() -> None:
    apart = credit(walks(FOREST[:1], FOREST[1:2]))
    assert not np.any(np.concatenate(apart))


def test_a_shared_turn_is_one_visit() -> None:
    """Two endings of one stem: the stem's return is their mean, and both paths give it that."""
    stem = turn(state="S", action="x", n=2)
    ends = [turn(r, parent=0, state="A", status="failed") for r in (1.0, 0.0)]
    forked = Forest.of([Group("u", "t", [tree(stem, *ends), walk_tree(Walk("SA", "D", 0.0))])])
    visits = find_visits(forked, range(3), "state", 1.0, forked.returns())
    assert len(visits) == 5
    assert visits.to_go.tolist() == [0.5, 1.0, 0.0, 0.0, 0.0]
    found = credit(forked, **ALONE)
    assert found[0][:2] == found[1][:2] == [pytest.approx(0.707104, abs=1e-5)] * 2


def test_any_forest_gets_finite_credit() -> None:
    for seed in range(12):
        forest = branching(seed)
        for term in TERMS:
            for identity in ("state", "history", "text"):
                rows = StateCredit(term=term, identity=identity)(forest, {}).advantages
                assert [len(row) for row in rows] == [forest.n_act(p) for p in forest]
                assert all(np.isfinite(row).all() and row.dtype == np.float32 for row in rows)
    assert StateCredit()(Forest.of([Group("u", "t", faults=2)]), {}).advantages == []


def test_turns_without_a_state_are_refused() -> None:
    forest = walks((Walk("SA", "D", 0.0), Walk("SB", "D", 1.0)))
    bare = [dataclasses.replace(t, state="") for t in forest.groups[0].trees[0].turns]
    blind = Forest.of([Group("u", "t", [tree(*bare)])])
    with pytest.raises(BadValueError, match=r"a turn has no state.*identity='history' or 'text'"):
        credit(blind)
    assert credit(blind, identity="history") == [[0.0, 0.0]]


def test_random_transitions_are_refused_for_distances_alone() -> None:
    one, two = walk_tree(Walk("SA", "D", 0.0)), walk_tree(Walk("SB", "+", 1.0))
    moved = [dataclasses.replace(t, action="go") for t in two.turns]
    also = [dataclasses.replace(t, action="go") for t in one.turns]
    forest = Forest.of([Group("u", "t", [tree(*also), tree(*moved)])])
    with pytest.raises(BadValueError, match="'go' led from one state to different ones"):
        credit(forest, term=GoalDistances())
    for term in TERMS[:3]:
        credit(forest, term=term)


def test_distances_are_refused_where_the_environment_says_it_draws() -> None:
    from turngym.envs.diagnostic.fog import Fog

    make_recipe("graphgpo").check(Fog(fog=0.0))
    make_recipe("gigpo").check(Fog(fog=0.3))
    with pytest.raises(BadValueError, match=r"Fog.* draws what an action brings"):
        make_recipe("graphgpo").check(Fog(fog=0.3))


def test_an_environment_without_a_state_digest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from turngym.envs.core.env import TextEnv
    from turngym.envs.diagnostic.bandit import Bandit

    env = Bandit()
    monkeypatch.delattr(TextEnv, "state_digest")
    with pytest.raises(BadValueError, match="no state_digest"):
        make_recipe("gigpo").check(env)
    make_recipe("gigpo", {"credit.identity": "text"}).check(env)


@pytest.mark.parametrize(
    ("settings_", "word"),
    [
        ({"credit.episode_weight": 0.0, "credit.state_weight": 0.0}, "both 0"),
        ({"credit.identity": "place"}, "place"),
        ({"credit.term.gamma": 1.5}, "gamma"),
        ({"credit.eps": 0.0}, "eps"),
        ({"credit.invalid_penalty": -1.0}, "invalid_penalty"),
        ({"credit.state_weight": 0.0, "rollout.n": 1}, "every advantage would be 0"),
    ],
)
def test_bad_settings_are_refused(settings_: dict[str, Any], word: str) -> None:
    with pytest.raises((BadValueError, ValueError), match=word):
        make_recipe("gigpo", settings_)


def test_terms_are_exchanged_by_name() -> None:
    made = make_recipe("gigpo", {"credit.term": "values", "credit.term.gamma": 0.9})
    assert isinstance(made.credit, StateCredit)
    assert made.credit.term == StateValues(gamma=0.9)
    assert make_recipe("gigpo").reads_states
    assert not make_recipe("gigpo", {"identity": "history"}).reads_states
