"""The judge by rules: what earns +1, 0 and -1, and the bands of TARL's scalar."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.bad_policies import BAD

from turngym.envs.retail.customer.interface import CustomerState
from turngym.envs.retail.customer.scripted import get_active_goal
from turngym.envs.retail.env import Retail
from turngym.envs.retail.rewards import score_visit
from turngym.envs.retail.shop.overlay import Overlay
from turngym.envs.retail.shop.toolset import TRANSFER, WRITES
from turngym.envs.retail.state import RetailState

ENV = Retail()
TASK = next(
    i
    for i in range(200)
    if (p := ENV.source.task("dev", i).payload).kind == "cancel"
    and not p.scenario.goals[0].order_words
    and p.scenario.identity.knows_email
)


def verdicts(policy: Any, task: int) -> tuple[list[Any], float]:
    """The verdicts and the return of an episode."""
    observation, info = ENV.reset(seed=0, options={"split": "dev", "task": task})
    found, total = [], 0.0
    while info["status"] == "running":
        observation, reward, *_, info = ENV.step(policy(ENV, observation))
        found.append(info["verdict"])
        total += reward
    return found, total


def expert(env: Retail, observation: str) -> str:
    return env.expert()(env, observation, {})


def up_to_the_write() -> tuple[str, str]:
    """Plays to where the expert would write: the last message and the write."""
    ENV.reset(seed=0, options={"split": "dev", "task": TASK})
    said = ""
    while True:
        action = expert(ENV, "")
        if any(f'"{name}"' in action for name in WRITES):
            return said, action
        said = action
        ENV.step(action)


def verdict(action: str) -> Any:
    return ENV.fork().step(action)[4]["verdict"]


def test_steps_of_the_way_are_right() -> None:
    _, write = up_to_the_write()
    assert verdict(write) == 1
    ENV.step(write)
    assert verdict("Your order has been cancelled. Anything else?") == 1


def test_small_problems_are_zero() -> None:
    _, write = up_to_the_write()
    order = ENV.episode.task.payload.scenario.goals[0].order_id
    read = ENV.knowledge.tools.write("get_order_details", {"order_id": order})
    assert verdict(read) == 0  # it was read before
    assert verdict(ENV.knowledge.tools.write("get_order_details", {"order_id": "#W1"})) == 0
    assert verdict("<tool_call>{</tool_call>") == 0
    assert verdict("Please hold on a moment.") == 0
    assert verdict(write.replace("cancel_pending_order", "cancel_order")) == 0


@pytest.mark.parametrize("kind", ["other write", "transfer", "invented", "unconfirmed"])
def test_major_mistakes_are_minus_one_once(kind: str) -> None:
    _, write = up_to_the_write()
    tools, goal = ENV.knowledge.tools, ENV.episode.task.payload.scenario.goals[0]
    if kind == "other write":
        address = dict.fromkeys(("address1", "city", "state", "country", "zip"), "x")
        given = {"order_id": goal.order_id, "address2": "", **address}
        action = tools.write("modify_pending_order_address", given)
    elif kind == "transfer":
        action = tools.write(TRANSFER, {"summary": "help"})
    elif kind == "invented":
        action = "Your other order #W0000001 is on its way."
    else:
        ENV.episode.state.customer.granted = frozenset()
        action = write
    assert ENV.step(action)[4]["verdict"] == -1
    again = "And #W0000002 as well."
    assert ENV.step(again)[4]["verdict"] == 0


def test_a_right_denial_is_right_and_a_wrong_one_in_the_end_is_not() -> None:
    kinds = [ENV.source.task("dev", i).payload.kind for i in range(200)]
    found, total = verdicts(expert, kinds.index("cancel_status"))
    assert (found[-1], total) == (1, 1.0)
    up_to_the_write()
    refusals = [ENV.step(f"I cannot do that{'!' * n}")[4] for n in range(6) if _runs()]
    assert refusals[-1]["status"] == "failed"
    assert [info["verdict"] for info in refusals].count(-1) == 1


QUESTIONS = [
    i
    for i in range(200)
    for goal in ENV.source.task("dev", i).payload.scenario.goals
    if goal.ask and goal.record.isdigit()
]
"""Tasks that ask how many variants of a product there are."""


@pytest.mark.parametrize("task", QUESTIONS)
def test_numbers_recited_without_a_look_are_no_answer(task: int) -> None:
    said = 0

    def recite(env: Retail, observation: str) -> str:
        nonlocal said
        state = env.episode.state
        goal = get_active_goal(env.episode.task.payload.scenario, state.customer)
        if not (goal.ask and goal.record.isdigit()):
            return expert(env, observation)
        said += 4
        return ", ".join(str(number) for number in range(said - 3, said + 1)) + "."

    _, total = verdicts(recite, task)
    goals, state = ENV.episode.task.payload.scenario.goals, ENV.episode.state
    asked = next(goal for goal in goals if goal.ask and goal.record.isdigit())
    looked = asked.record in state.seen
    handed = goals[-1].last().expect == "transferred"
    assert (said > 0, state.customer.end) == (True, "transfer" if handed else "stop")
    assert total == float(looked)
    assert verdicts(expert, task)[1] == 1.0


def test_an_answer_stands_among_few_numbers_for_every_customer() -> None:
    task = ENV.source.task("dev", QUESTIONS[0]).payload
    goal = next(goal for goal in task.scenario.goals if goal.ask)
    state = RetailState(Overlay(ENV.source.shop(task.shop)), CustomerState(0, 1, end="stop"))

    def communicated(message: str) -> bool:
        return score_visit(task, state, [], [message], tracks=False, policy=True).communicated

    assert communicated(f"There are {goal.answer} of them.")
    assert not communicated(f"91, 92, 93, 94, {goal.answer}.")


def _runs() -> bool:
    return ENV.episode.status == "running"


def test_the_bands_of_the_scalar_do_not_meet() -> None:
    """P17."""
    pytest.importorskip("torch")
    from turngym.algos.rewards.shaping import VerdictRewards

    for task in range(0, 200, 25):
        for policy in (expert, *BAD.values()):
            found, total = verdicts(policy, task)
            scalar = sum(VerdictRewards().parts(found, total))
            low = 10 * total - 5 * (-1 in found)
            assert low <= scalar <= low + 5
            assert found.count(-1) <= 1
