"""What one action does to an episode of the shop: the call, the checks, the verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..episode import Episode
from ..grammar import ToolCall
from .customer.parser import heard
from .customer.rules import active
from .customer.scenario import Goal, call_of
from .customer.turns import Event
from .judge import Verdict, judged, of_call, of_message
from .policy import Taken, broken_rules
from .rewards import same_call
from .setup import Knowledge
from .shop.toolset import CLOSE, FINDERS, OPEN, TRANSFER, WRITES
from .state import RetailState
from .tasks.payload import RetailTask

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_YES = re.compile(r"\b(?:yes|yep|yeah|sure|correct|go ahead|please do|confirm)", re.IGNORECASE)
_READS = {
    "get_user_details": "user_id",
    "get_order_details": "order_id",
    "get_product_details": "product_id",
    "get_item_details": "item_id",
}


def message_of(action: str) -> str:
    """An action without its thoughts."""
    return (_THOUGHT.sub("", action) if "<think>" in action else action).strip()


def spoken(episode: Episode[RetailState], action: str | None) -> list[str]:
    """All messages of the assistant; ``action`` is one that the episode lacks."""
    actions = [step.action for step in episode.steps]
    if action is not None:
        actions.append(action)
    return [message_of(text) for text in actions if OPEN not in text and CLOSE not in text]


def called(
    episode: Episode[RetailState],
    knowledge: Knowledge,
    call: ToolCall,
    action: str,
    *,
    tracks: bool,
) -> tuple[str, Verdict]:
    """Carry a call out: what the tool says, and the verdict."""
    state, task = episode.state, episode.task.payload
    name, given = call.name, call.arguments
    writes = name in WRITES
    identified = state.user_id
    owner = _owner(state, name, given) if writes else ""
    confirmed = writes and _confirmed(task, state, name, given, tracks)
    unread = writes and given.get("order_id", given.get("user_id")) not in state.seen
    result = knowledge.tools.call(state.desk, name, given)
    worked = not result.refused
    taken = Taken(
        tool=name,
        arguments=given,
        worked=worked,
        writes=writes,
        beside=_beside(action),
        identified=identified,
        owner=owner,
        confirmed=confirmed,
        unread=unread,
        outside=name == TRANSFER and _outside(task, state, tracks),
    )
    fresh = _noted(state, task, taken, result.text)
    _checked(episode, taken)
    return result.text, of_call(task, state, taken, fresh=fresh)


def _noted(state: RetailState, task: RetailTask, it: Taken, text: str) -> bool:
    """Keep what a call showed or did; whether it showed something needed for the first time."""
    if not it.worked:
        state.errors += 1
        state.searches += it.tool in FINDERS
        return False
    if it.tool in FINDERS:
        first = not state.user_id
        state.user_id = state.user_id or text
        return first
    if (parameter := _READS.get(it.tool)) is not None:
        record = it.arguments[parameter]
        fresh = record not in state.seen
        state.seen |= {record}
        return fresh and _needed(task, state, it.tool, record)
    if it.writes or it.tool == TRANSFER:
        order_id = it.arguments.get("order_id", "")
        state.events += (Event(it.tool, True, order_id),)
        state.transferred = state.transferred or it.tool == TRANSFER
        if it.writes:
            state.calls += ((it.tool, it.arguments, it.confirmed),)
    return False


def _needed(task: RetailTask, state: RetailState, tool: str, record: str) -> bool:
    if tool == "get_user_details":
        return record == state.user_id
    if tool == "get_order_details":
        order = state.desk.order(record)
        return order is not None and order["user_id"] == state.user_id
    if task.scenario is None:
        return True
    home = state.desk.shop.product_of
    for first in task.scenario.goals:
        goal: Goal | None = first
        while goal is not None:
            if record == goal.record:
                return True
            if any(record in (want.new_id, home.get(want.item_id)) for want in goal.wants):
                return True
            goal = goal.fallback
    return False


def _owner(state: RetailState, name: str, given: Mapping[str, Any]) -> str:
    if name == "modify_user_address":
        return given["user_id"]
    order = state.desk.order(given["order_id"])
    return "" if order is None else order["user_id"]


def _confirmed(
    task: RetailTask, state: RetailState, name: str, given: Mapping[str, Any], tracks: bool
) -> bool:
    """Whether the customer said yes to this write."""
    if not tracks or task.scenario is None:
        return _YES.search(state.words) is not None
    mind = state.mind
    for at, stage in mind.granted:
        goal = task.scenario.goals[at].stages()[stage]
        method = given.get("payment_method_id", "")
        user_id = task.scenario.identity.user_id
        if goal.tool == name and same_call((name, given), call_of(goal, user_id, method)):
            return True
    return False


def _outside(task: RetailTask, state: RetailState, tracks: bool) -> bool:
    """Whether the customer wants something that only a human can do."""
    if task.scenario is None:
        return any(name == TRANSFER for name, _ in task.gold)
    if not tracks:
        return any(goal.last().expect == "transferred" for goal in task.scenario.goals)
    goal = active(task.scenario, state.mind, state.mind.at)
    return goal.expect == "transferred"


def _beside(action: str) -> bool:
    """Whether words, or a second call, stand beside the call."""
    start = action.find(OPEN)
    stop = action.find(CLOSE, start) + len(CLOSE)
    if start == 0 and stop == len(action):
        return False
    return bool(message_of(action[: max(start, 0)]) or action[stop:].strip())


def talked(episode: Episode[RetailState], message: str, *, tracks: bool) -> Verdict | None:
    """Check a message that the customer has answered; its verdict where one can be known."""
    state, mind = episode.state, episode.state.mind
    it = heard(message)
    taken = Taken(
        arguments={},
        text=it.text,
        identified=state.user_id,
        invented=_invented(episode, it.orders | it.methods | {i for i in it.items if len(i) == 10}),
    )
    _checked(episode, taken)
    if not tracks:
        return judged(state, -1) if taken.invented else None
    moved = mind.end in ("stop", "transfer") or mind.idle == 0
    gave_in = mind.phase[mind.at] == "wrongly_denied"
    return of_message(state, taken, moved=moved, gave_in=gave_in)


def _invented(episode: Episode[RetailState], ids: frozenset[str]) -> bool:
    """Whether an id was said that no tool and no customer has named."""
    if not ids:
        return False
    told = [step.observation.lower() for step in episode.steps]
    told.append(episode.observation.lower())
    return any(not any(name in text for text in told) for name in ids)


def _checked(episode: Episode[RetailState], taken: Taken) -> None:
    if broken := broken_rules(taken):
        episode.state.violations += tuple((episode.turn, key) for key in broken)
