"""Eight ways of playing that must never succeed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from turngym.envs.retail.customer.scenario import build_call
from turngym.envs.retail.customer.scripted import get_active_goal
from turngym.envs.retail.env import Retail
from turngym.envs.retail.shop.payments import find_original_method
from turngym.envs.retail.shop.toolset import TRANSFER

Bad = Callable[[Retail, str], str]


def do_nothing(env: Retail, observation: str) -> str:
    return f"Okay{'.' * (env.episode.turn % 5)}"


def always_transfer(env: Retail, observation: str) -> str:
    if env.episode.state.transferred:
        return "You are being transferred to a human agent."
    return env.knowledge.tools.write(TRANSFER, {"summary": "help"})


def always_refuse(env: Retail, observation: str) -> str:
    return f"I am sorry, I cannot do that{'!' * (env.episode.turn % 4 + 1)}"


def echo(env: Retail, observation: str) -> str:
    return observation.removeprefix("Customer: ").strip() or "What?"


def _identified(env: Retail) -> str | None:
    """Asks and searches as the expert does, until somebody is found."""
    scenario = env.episode.task.payload.scenario
    assert scenario is not None
    if not scenario.identity.valid:
        return f"All is well{'!' * (env.episode.turn % 4)}"
    return None if env.episode.state.user_id else env.expert()(env, "", {})


def _records(env: Retail) -> list[str]:
    """Reads that have not been made: the customer's orders."""
    state, write = env.episode.state, env.knowledge.tools.write
    user = state.overlay.user(state.user_id)
    assert user is not None
    unread = [i for i in user["orders"] if i not in state.seen]
    return [write("get_order_details", {"order_id": i}) for i in unread]


def first_option(env: Retail, observation: str) -> str:
    """Does to the first order whatever it takes first, and always says yes."""
    if (step := _identified(env)) is not None:
        return step
    if left := _records(env):
        return left[0]
    state, write = env.episode.state, env.knowledge.tools.write
    user = state.overlay.user(state.user_id)
    assert user is not None
    order_id = user["orders"][0]
    order = state.overlay.order(order_id)
    assert order is not None
    method = next(iter(user["payment_methods"]))
    item = order["items"][0]["item_id"]
    if observation.startswith("Customer: ") and not state.calls:
        if order["status"] == "pending":
            return write(
                "cancel_pending_order", {"order_id": order_id, "reason": "no longer needed"}
            )
        given = {"order_id": order_id, "item_ids": [item], "payment_method_id": method}
        if order["status"] == "delivered" and env.episode.turn < 12:
            return write("return_delivered_order_items", given)
    return f"Yes, of course, that has been done{'!' * (env.episode.turn % 4)} Is there more?"


def list_everything(env: Retail, observation: str) -> str:
    """Reads all there is and tells all of it at once."""
    if (step := _identified(env)) is not None:
        return step
    if left := _records(env):
        return left[0]
    state = env.episode.state
    user = state.overlay.user(state.user_id)
    assert user is not None
    orders = [state.overlay.order(i) for i in user["orders"]]
    items = [state.overlay.shop.variants[x["item_id"]] for o in orders if o for x in o["items"]]
    return f"{env.episode.turn}. I know: {json.dumps([user, orders, items])}"


def without_confirmation(env: Retail, observation: str) -> str:
    """The expert, but it writes before anybody said yes."""
    state = env.episode.state
    scenario = env.episode.task.payload.scenario
    assert scenario is not None
    goal = get_active_goal(scenario, state.customer)
    known = bool(state.user_id) and goal.tool in env.knowledge.tools.tools
    done = any(event.tool == goal.tool for event in state.events)
    if known and not done and not state.errors and goal.expect != "transferred":
        order = state.overlay.order(goal.order_id)
        method = "" if order is None else find_original_method(order)
        return env.knowledge.tools.write(*build_call(goal, state.user_id, method))
    if state.errors and goal.expect == "denied":
        return f"It has been done{'!' * (env.episode.turn % 3 + 1)}"
    return env.expert()(env, observation, {})


def wrong_twin(env: Retail, observation: str) -> str:
    """The expert, but every write goes to another order or another item than was agreed."""
    action = env.expert()(env, observation, {})
    state = env.episode.state
    scenario = env.episode.task.payload.scenario
    assert scenario is not None
    goal = get_active_goal(scenario, state.customer)
    if goal.expect == "denied" and "<tool_call>" not in action and state.user_id:
        return _spoiled(env, goal) if not state.calls else "Done. Anything else?"
    if '"name": "find' in action or '"name": "get' in action or "<tool_call>" not in action:
        return action
    if TRANSFER in action:
        return "I have done it for you. Anything else?"
    return _spoiled(env, goal)


def _spoiled(env: Retail, goal: Any) -> str:
    """A write on the first other order that takes one."""
    state, tools = env.episode.state, env.knowledge.tools
    for order in state.overlay.shop.orders.values():
        if order["order_id"] == goal.order_id or order["order_id"] in state.overlay.orders:
            continue
        if order["status"] == "pending":
            given = {"order_id": order["order_id"], "reason": "no longer needed"}
            return tools.write("cancel_pending_order", given)
    raise AssertionError("no pending order is left")


BAD: dict[str, Bad] = {
    policy.__name__: policy
    for policy in (
        do_nothing,
        always_transfer,
        always_refuse,
        echo,
        first_option,
        list_everything,
        without_confirmation,
        wrong_twin,
    )
}


NEEDS_WRITE = ("without_confirmation", "wrong_twin")
"""Variations of the expert that differ from it only where something is written."""


def applies(name: str, task: Any) -> bool:
    """Whether a policy differs from the expert on a task."""
    scenario = task.scenario
    writes = any(g.tool for first in scenario.goals for g in first.stages())
    return name not in NEEDS_WRITE or (writes and scenario.identity.valid)


def plays(env: Retail, policy: Bad, task: str, split: str = "test", seed: int = 0) -> str:
    """The status that an episode ends with."""
    observation, info = env.reset(seed=seed, options={"split": split, "task": task})
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation))
    return info["status"]
