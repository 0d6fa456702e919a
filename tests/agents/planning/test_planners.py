"""Greedy, sampling, best-of-N and Reflexion; budgets; what a planner gives back."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from helpers.maze import Coin, Worth, begun, letters, tools

from turngym.agents.planning.actors import PolicyActor, Proposal
from turngym.agents.planning.budget import PlanningBudget
from turngym.agents.planning.mcts import Mcts
from turngym.agents.planning.objective import Objective, Term, length_penalty, metric, price_penalty
from turngym.agents.planning.planners import BestOfN, Greedy, Reflexion, Sampling
from turngym.agents.planning.search import PlanResult, play
from turngym.envs.core.errors import BadValueError, EpisodeError, UnknownNameError

PLANNERS: dict[str, Any] = {
    "greedy": Greedy(),
    "sampling": Sampling(),
    "best": BestOfN(n=6),
    "reflexion": Reflexion(tries=4, threshold=1.5),
    "mcts": Mcts(rollouts=8, candidates=4),
    "replan": Mcts(rollouts=4, candidates=4, final="best_action_replan"),
}


def plan(planner: Any, seed: int = 0, env: Any = None, **more: Any) -> PlanResult:
    return asyncio.run(planner.plan(env or begun(), tools(**more), seed))


@pytest.mark.parametrize("name", PLANNERS)
def test_the_answer_is_an_ordinary_episode(name: str) -> None:
    env = begun()
    digest = env.digest()
    planned = plan(PLANNERS[name], env=env)
    assert env.digest() == digest
    played = asyncio.run(play(env, planned))
    assert played.over
    assert played.attempt == planned.attempt
    assert env.episode.total_reward == planned.attempt.total
    assert tuple(step.action for step in env.episode.steps) == planned.actions


@pytest.mark.parametrize("name", PLANNERS)
def test_the_seed_decides(name: str) -> None:
    first, again = plan(PLANNERS[name], 5), plan(PLANNERS[name], 5)
    assert first == again
    if name not in ("greedy", "sampling"):
        assert any(plan(PLANNERS[name], seed).tried != first.tried for seed in range(6))


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("limit", [{"tokens": 41}, {"steps": 7}, {"tokens": 60, "steps": 9}])
def test_budgets_hold(name: str, limit: dict[str, int]) -> None:
    actor = Coin(tokens=5)
    before = type(begun()).steps_taken
    planned = plan(PLANNERS[name], actor=actor, budget=PlanningBudget(**limit))
    spent = planned.spent
    assert spent.sampled_tokens <= limit.get("tokens", 10**9)
    assert spent.search_steps <= limit.get("steps", 10**9)
    assert spent.search_steps == type(begun()).steps_taken - before
    assert spent.model_calls == len(actor.notes) + len(actor.plans)
    assert spent.sampled_tokens == 5 * len(actor.notes) + 3 * len(actor.plans)
    assert actor.forgot == 1
    if name in ("best", "mcts"):  # with room for one reply more they would go on
        tight = "tokens" in limit and limit["tokens"] - spent.sampled_tokens < 5
        assert tight or spent.search_steps == limit.get("steps")


def test_a_budget_for_less_than_an_episode() -> None:
    env = begun()
    planned = plan(BestOfN(), env=env, budget=PlanningBudget(steps=2))
    assert len(planned.actions) == 2
    assert planned.value is None
    assert planned.tried == ()
    assert not planned.attempt.over
    assert not asyncio.run(play(env, planned)).over
    assert plan(Mcts(), budget=PlanningBudget(tokens=4)).actions == ()


def test_the_best_stored_reward_is_the_answer() -> None:
    for seed in range(8):
        for name in ("best", "mcts", "reflexion"):
            planned = plan(PLANNERS[name], seed)
            values = [value for _, value in planned.tried]
            assert planned.value == max(values)
            assert planned.attempt == planned.tried[values.index(max(values))][0]
            assert len(values) == planned.spent.trajectories


def test_greedy_needs_no_reward_model() -> None:
    planned = plan(Greedy(), scorer=None)
    assert planned.actions == ("r", "r", "r")
    assert planned.value is None
    with pytest.raises(BadValueError, match="needs a reward model"):
        plan(BestOfN(), scorer=None)


def test_best_of_n_leaves_out_what_is_long_or_unreadable() -> None:
    class Babbler(Coin):
        async def act(self, position: Any, settings: Any) -> Proposal:
            said = await super().act(position, settings)
            if len(self.notes) <= 2:  # the first trajectory begins with two bad actions
                return said._replace(text="x" * 50)
            return said

    class Flat(Worth):
        def score(self, trajectories: Any) -> list[float]:
            return [float("x" in t.actions[0]) for t in trajectories]

    for more, bad in (({}, True), ({"only_valid": True}, False), ({"max_chars": 60}, False)):
        planned = plan(BestOfN(n=3, **more), actor=Babbler(), scorer=Flat())
        assert (planned.attempt.invalid > 0) is bad
    alone = plan(BestOfN(n=1, only_valid=True), actor=Babbler(), scorer=Flat())
    assert alone.attempt.invalid == 2


def test_reflexion_stops_and_plans() -> None:
    actor = Coin(left=0.0)
    planned = plan(Reflexion(tries=3, threshold=0.0), actor=actor)
    assert actor.plans == ["rrr", "rrr"]
    assert sorted(set(actor.notes)) == ["", "Plan after a failed attempt: begin with l\n"]
    assert len(planned.tried) == 3
    assert planned.value == 0.0
    # the reward model sees the task without the plan
    assert {attempt.trajectory.instruction for attempt, _ in planned.tried} == {
        "Pull l or r.\ntask 0:"
    }
    passed = plan(Reflexion(tries=3, threshold=-1.0), actor=Coin(left=0.0))
    assert len(passed.tried) == 1


def test_the_customised_target() -> None:
    env = begun()
    cheap = Objective([price_penalty(3.0, metric("price"), 2.0)])
    planned = plan(BestOfN(n=12), objective=cheap)
    free = plan(BestOfN(n=12))
    assert free.value == 2.0
    assert planned.attempt.metrics["price"] < free.attempt.metrics["price"]
    rewards = [sum(a == "r" for a in t.trajectory.actions[1:]) for t, _ in planned.tried]
    rewards = [
        r if t.trajectory.actions[0] == "l" else 0
        for r, (t, _) in zip(rewards, planned.tried, strict=True)
    ]
    mean = sum(rewards) / len(rewards)
    spread = (sum((r - mean) ** 2 for r in rewards) / len(rewards)) ** 0.5
    for reward, (attempt, value) in zip(rewards, planned.tried, strict=True):
        want = (reward - mean) / spread - 1.5 * attempt.metrics["price"]
        assert value == pytest.approx(want)
    # scale and bias of the reward model do not matter any more
    other = plan(BestOfN(n=12), objective=cheap, scorer=Worth(10.0, 3.0))
    assert other.actions == planned.actions
    assert [v for _, v in other.tried] == pytest.approx([v for _, v in planned.tried])
    long = plan(
        BestOfN(n=2), env=env, objective=Objective([length_penalty(0.5)], standardise=False)
    )
    assert [v for _, v in long.tried] == pytest.approx(
        [v for _, v in plan(BestOfN(n=2)).tried], abs=1.5 + 1e-9
    )
    assert long.value == pytest.approx(Worth().score([long.attempt.trajectory])[0] - 1.5)


def test_equal_rewards_are_standardised_to_nought() -> None:
    """The mean of six times 0.4 is not 0.4, and nothing may be made of that difference."""
    same = [(plan(Greedy()).attempt, 0.4)] * 6
    assert math.fsum([0.4] * 6) / 6 != 0.4
    assert Objective(standardise=True).values(same) == [0.0] * 6


def test_scripted_policies_plan_too() -> None:
    actor = PolicyActor(letters)
    planned = plan(BestOfN(n=20), actor=actor, scorer=Worth())
    assert planned.actions == ("l", "r", "r")
    assert planned.spent.sampled_tokens == 0
    assert plan(Mcts(rollouts=20, candidates=8), actor=actor).actions == ("l", "r", "r")
    assert len(plan(Reflexion(tries=2, threshold=9.0), actor=actor).tried) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sampling(temperature=-1.0),
        lambda: BestOfN(n=0),
        lambda: Reflexion(tries=0),
        lambda: Mcts(rollouts=0),
        lambda: Mcts(candidates=0),
        lambda: Mcts(horizon=0),
        lambda: Mcts(discount=0.0),
        lambda: Mcts(rule="ucb2"),  # type: ignore[arg-type]
        lambda: Mcts(final="first"),  # type: ignore[arg-type]
        lambda: PlanningBudget(tokens=0),
        lambda: PlanningBudget(steps=-1),
        lambda: price_penalty(1.0, metric("price"), 0.0),
        lambda: price_penalty(float("inf"), metric("price")),
        lambda: length_penalty(float("nan")),
    ],
)
def test_bad_settings(make: Any) -> None:
    with pytest.raises((BadValueError, UnknownNameError), match=r"expected|unknown"):
        make()


def test_bad_input() -> None:
    env = begun()
    env.step("l")
    with pytest.raises(EpisodeError, match="expected a new episode"):
        plan(Greedy(), env=env)
    planned = plan(Greedy())
    with pytest.raises(EpisodeError, match="answers action 1 otherwise"):
        asyncio.run(play(begun(turns=1), planned))
    with pytest.raises(BadValueError, match="score is nan"):
        plan(BestOfN(n=1), scorer=Worth(float("nan")))
    with pytest.raises(BadValueError, match=r"R' of the trajectories is \[nan\]"):
        plan(BestOfN(n=1), objective=Objective([Term(1.0, lambda attempt: float("nan"))]))
    with pytest.raises(BadValueError, match="no metric 'prize'"):
        plan(BestOfN(n=1), objective=Objective([price_penalty(1.0, metric("prize"))]))
