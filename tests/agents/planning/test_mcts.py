"""The tree: selection, expansion, evaluation, backup and answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from helpers.maze import Coin, Worth, begun, tools, worth_of
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.planning.actors import Proposal
from turngym.agents.planning.budget import PlanningBudget
from turngym.agents.planning.mcts import Chance, Decision, Mcts, merge_proposals
from turngym.agents.planning.objective import Objective, ScoredAttempts
from turngym.agents.planning.position import Position
from turngym.agents.planning.search import TrajectorySearch
from turngym.agents.planning.trajectory import Attempt, Trajectory


def tried_with(*rewards: float) -> ScoredAttempts:
    tried = ScoredAttempts(Objective())
    for reward in rewards:
        tried.add(Attempt(trajectory=Trajectory("x", ()), status="failed"), reward)
    return tried


@pytest.mark.parametrize(
    ("rewards", "parent", "want"),
    [
        ([], 1, 0.0),
        ([], 2, 5.298345),
        ([3.2], 2, 5.849173),
        ([3.2], 11, 8.127341),
        ([1.0, 2.0, -4.0, 0.5], 11, 3.970936),
    ],
)
def test_example_13_selection(rewards: list[float], parent: int, want: float) -> None:
    chance = Chance(Proposal("a"), 0.5, [(i, 1.0) for i in range(len(rewards))])
    tried = tried_with(*rewards)
    assert chance.preference(parent, tried, "released") == pytest.approx(want, abs=1e-6)
    bonus = want - chance.best(tried)
    puct = chance.preference(parent, tried, "puct")
    assert puct == pytest.approx(chance.best(tried) + bonus / 2, abs=1e-6)
    if len(rewards) == 4:
        ucb1 = chance.preference(parent, tried, "ucb1")
        assert ucb1 == pytest.approx(6.927341, abs=1e-6)


def test_example_13_backup() -> None:
    tried = tried_with(4.0)
    nodes = [Decision(Position.of(begun())) for _ in range(3)]
    path = [(node, Chance(Proposal("a"), 1.0)) for node in nodes]
    Mcts()._back_up(path, 0, ended=False)
    found = [chance.best(tried) for _, chance in reversed(path)]
    assert found == pytest.approx([3.6, 3.24, 2.916])
    assert [node.visits for node in nodes] == [2, 2, 2]
    # the transition into an episode's end pays the reward itself
    path = [(node, Chance(Proposal("a"), 1.0)) for node in nodes]
    Mcts()._back_up(path, 0, ended=True)
    assert [c.best(tried) for _, c in reversed(path)] == pytest.approx([4.0, 3.6, 3.24])


def test_candidates_are_merged_by_their_text() -> None:
    said = [
        Proposal("r"),
        Proposal("l "),
        Proposal("r"),
        Proposal("l"),
        Proposal("r"),
        Proposal(" "),
        Proposal("l", complete=False),
    ]
    found = merge_proposals(said)
    assert [(one.proposal.text, one.prior) for one in found] == [("r", 0.6), ("l ", 0.4)]
    assert [
        one.proposal.text for one in merge_proposals([Proposal(""), Proposal("x", complete=False)])
    ] == ["", "x"]


@pytest.mark.parametrize("rule", ["released", "puct", "ucb1"])
@pytest.mark.parametrize("seed", range(4))
def test_the_better_arm_is_found(rule: Any, seed: int) -> None:
    """The greedy arm is worth nothing; candidates show the other one."""
    planner = Mcts(rollouts=24, candidates=12, rule=rule)
    planned = asyncio.run(planner.plan(begun(), tools(scorer=Worth(2.0)), seed))
    assert planned.actions == ("l", "r", "r")
    assert planned.value == 4.0
    replan = Mcts(rollouts=24, candidates=12, rule=rule, final="best_action_replan")
    again = asyncio.run(replan.plan(begun(), tools(scorer=Worth(2.0)), seed))
    assert again.actions == ("l", "r", "r")


def grown(planner: Mcts, seed: int, turns: int = 3) -> tuple[TrajectorySearch, Decision]:
    search = TrajectorySearch(begun(turns), tools(actor=Coin(left=0.5)), seed)
    root = Decision(search.start)
    asyncio.run(planner._grow(search, root))
    return search, root


def nodes_of(root: Decision) -> list[Decision]:
    return [root, *(n for c in root.actions if c.after for n in nodes_of(c.after))]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rollouts=st.integers(1, 12), turns=st.integers(1, 4))
def test_laws_of_the_tree(seed: int, rollouts: int, turns: int) -> None:
    planner = Mcts(rollouts=rollouts, candidates=3)
    search, root = grown(planner, seed, turns)
    assert root.visits == 1 + rollouts
    nodes = nodes_of(root)
    assert len(nodes) <= 1 + rollouts
    for node in nodes:
        if node.actions:
            assert sum(one.prior for one in node.actions) == pytest.approx(1.0)
            passed = sum(len(one.samples) for one in node.actions)
            assert passed == node.visits - 1 - (node is not root)
        for one in node.actions:
            if one.after is not None:
                assert one.after.position.moves[:-1] == node.position.moves
                assert one.after.position.moves[-1].action == one.proposal.text
                assert one.after.visits == 1 + len(one.samples)
    for place, (attempt, _) in enumerate(search.tried.kept):
        assert attempt.over
        assert search.tried.value(place) == worth_of("".join(attempt.trajectory.actions))
    assert search.spent.trajectories == len(search.tried.kept) <= rollouts


def test_a_leaf_is_rolled_out_greedily_to_the_horizon() -> None:
    search, root = grown(Mcts(rollouts=1, candidates=1, horizon=2), 0, turns=6)
    attempt, _ = search.tried.kept[0]
    assert len(attempt.trajectory.moves) == 3
    assert attempt.trajectory.actions[1:] == ("r", "r")
    planned = asyncio.run(
        Mcts(rollouts=1, candidates=1, horizon=2).plan(begun(6), tools(actor=Coin(0.5)), 0)
    )
    assert planned.attempt.over  # what the horizon cut is finished
    assert planned.actions[:3] == attempt.trajectory.actions
    assert root.actions[0].samples == [(0, 0.9)]


def test_an_end_that_is_met_again_costs_nothing() -> None:
    search, root = grown(Mcts(rollouts=30, candidates=4), 3, turns=2)
    assert search.spent.trajectories < 30
    assert root.visits == 31
    assert search.spent.search_steps < 30


@pytest.mark.parametrize("steps", range(9, 40, 5))
def test_replanning_ends_in_a_trajectory_that_it_saw(steps: int) -> None:
    """Also where rewards are negative, so that an action whose roll-out was cut looks better."""
    planner = Mcts(rollouts=6, candidates=4, final="best_action_replan")
    work = tools(scorer=Worth(1.0, -10.0), budget=PlanningBudget(steps=steps))
    planned = asyncio.run(planner.plan(begun(), work, 2))
    assert planned.spent.search_steps <= steps
    assert (planned.attempt, planned.value) in planned.tried


@pytest.mark.parametrize(("short", "trajectories"), [(0, 2), (1, 1)])
def test_the_smallest_budget_that_compares(short: int, trajectories: int) -> None:
    planner, turns = Mcts(candidates=4), 3
    for budget in (
        PlanningBudget(tokens=(4 + 2 * (turns - 1)) * 5 - short),
        PlanningBudget(steps=2 * turns - short),
    ):
        work = tools(actor=Coin(0.5, tokens=5, most=5), budget=budget)
        planned = asyncio.run(planner.plan(begun(turns), work, 0))
        assert planned.spent.trajectories == trajectories


def test_replanning_compares_where_its_shares_have_no_room() -> None:
    planner = Mcts(candidates=4, final="best_action_replan")
    for budget in (PlanningBudget(tokens=60), PlanningBudget(steps=8)):
        work = tools(actor=Coin(0.5, tokens=5, most=5), budget=budget)
        planned = asyncio.run(planner.plan(begun(), work, 0))
        assert planned.spent.trajectories > 1
        assert planned.actions == ("l", "r", "r")
        assert planned.spent.sampled_tokens <= (budget.tokens or 999)
        assert planned.spent.search_steps <= (budget.steps or 99)
