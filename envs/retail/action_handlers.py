"""Handle one action of the assistant: carry out the call, check the rules, give the verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.episode import Episode, Verdict
from ..tools.action_parsing import ToolCall
from .customer.interface import Event
from .customer.lexicon import SENTENCE
from .customer.parser import parse_message, strip_thoughts
from .customer.scenario import build_call
from .customer.scripted import get_active_goal
from .knowledge import Knowledge
from .rewards import is_same_call, judge_call, judge_message
from .shop.policy import AgentStep, find_broken_rules
from .shop.toolset import CLOSE, FINDERS, OPEN, TRANSFER, WRITES
from .state import RetailState
from .tasks.payload import RetailTask

_YES = re.compile(
    r"\b(?:yes|yep|yeah|sure|correct|go ahead|please do\b(?! not)|confirm)", re.IGNORECASE
)
_PLAIN_YES = re.compile(r"\W*(?:yes|yep|yeah)\b", re.IGNORECASE)
_NO = re.compile(
    r"\b(?:no(?! (?:problem|worries|objection))|nope|not|cannot|never|wait|hold on|dont)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_READS = {
    "get_user_details": "user_id",
    "get_order_details": "order_id",
    "get_product_details": "product_id",
    "get_item_details": "item_id",
}


def collect_messages(episode: Episode[RetailState], action: str | None) -> list[str]:
    """Return all messages of the assistant; ``action`` is one that the episode lacks."""
    actions = [step.action for step in episode.steps]
    if action is not None:
        actions.append(action)
    return [strip_thoughts(text) for text in actions if OPEN not in text and CLOSE not in text]


def handle_call(
    episode: Episode[RetailState],
    knowledge: Knowledge,
    call: ToolCall,
    action: str,
    *,
    tracks: bool,
) -> tuple[str, Verdict]:
    """Carry a call out and return what the tool says, and the verdict."""
    state, task = episode.state, episode.task.payload
    name, given = call.name, call.arguments
    writes = name in WRITES
    identified = state.user_id
    owner = _find_owner(state, name, given) if writes else ""
    confirmed = writes and _is_confirmed(task, state, name, given, tracks)
    unread = writes and given.get("order_id", given.get("user_id")) not in state.seen
    result = knowledge.tools.call(state.overlay, name, given)
    step = AgentStep(
        tool=name,
        arguments=given,
        worked=not result.refused,
        writes=writes,
        beside=_has_more_than_call(action),
        identified=identified,
        owner=owner,
        confirmed=confirmed,
        unread=unread,
        outside=name == TRANSFER and _needs_human(task, state, tracks),
    )
    fresh = _update_state(state, task, step, result.text)
    _note_violations(episode, step)
    return result.text, judge_call(task, state, step, fresh=fresh)


def _update_state(state: RetailState, task: RetailTask, step: AgentStep, text: str) -> bool:
    """Note what a call did; tell whether it showed something needed for the first time."""
    if not step.worked:
        state.errors += 1
        state.searches += step.tool in FINDERS
        return False
    if step.tool in FINDERS:
        first = not state.user_id
        state.user_id = state.user_id or text
        return first
    if (parameter := _READS.get(step.tool)) is not None:
        record = step.arguments[parameter]
        fresh = record not in state.seen
        state.seen |= {record}
        return fresh and _is_needed(task, state, step.tool, record)
    if step.writes or step.tool == TRANSFER:
        order_id = step.arguments.get("order_id", "")
        state.events += (Event(step.tool, True, order_id),)
        state.transferred = state.transferred or step.tool == TRANSFER
        if step.writes:
            state.calls += ((step.tool, step.arguments, step.confirmed),)
    return False


def _is_needed(task: RetailTask, state: RetailState, tool: str, record: str) -> bool:
    """Tell whether a record that was read belongs to the customer or to one of their goals."""
    if tool == "get_user_details":
        return record == state.user_id
    if tool == "get_order_details":
        order = state.overlay.order(record)
        return order is not None and order["user_id"] == state.user_id
    if task.scenario is None:
        return True
    product_of = state.overlay.shop.product_of
    return any(
        record == goal.record
        or any(record in (want.new_id, product_of.get(want.item_id)) for want in goal.wants)
        for first in task.scenario.goals
        for goal in first.stages()
    )


def _find_owner(state: RetailState, name: str, given: Mapping[str, Any]) -> str:
    if name == "modify_user_address":
        return given["user_id"]
    order = state.overlay.order(given["order_id"])
    return "" if order is None else order["user_id"]


def _is_confirmed(
    task: RetailTask, state: RetailState, name: str, given: Mapping[str, Any], tracks: bool
) -> bool:
    """Tell whether the customer said yes to this write.

    Of a customer without goals only the last words are known: their yes covers every write before
    the assistant's next message. Their first words answer nothing, so there is no yes in them.
    """
    if not tracks or task.scenario is None:
        return says_yes(state.answer)
    for at, stage in state.customer.granted:
        goal = task.scenario.goals[at].stages()[stage]
        method = given.get("payment_method_id", "")
        wanted = build_call(goal, task.scenario.identity.user_id, method)
        if goal.tool == name and is_same_call((name, given), wanted):
            return True
    return False


def says_yes(words: str) -> bool:
    """Tell whether a customer's words agree.

    They hold a yes with nothing negated before it ("No, that is not correct" holds none), or a
    sentence that begins with a plain yes.
    """
    if any(_PLAIN_YES.match(sentence) for sentence in SENTENCE.split(words)):
        return True
    yes = _YES.search(words)
    return yes is not None and _NO.search(words, 0, yes.start()) is None


def _needs_human(task: RetailTask, state: RetailState, tracks: bool) -> bool:
    """Tell whether the customer wants something that only a human can do."""
    if task.scenario is None:
        return any(name == TRANSFER for name, _ in task.gold)
    if not tracks:
        return any(goal.last().expect == "transferred" for goal in task.scenario.goals)
    return get_active_goal(task.scenario, state.customer).expect == "transferred"


def _has_more_than_call(action: str) -> bool:
    """Tell whether words, or a second call, stand beside the call."""
    start = action.find(OPEN)
    stop = action.find(CLOSE, start) + len(CLOSE)
    if start == 0 and stop == len(action):
        return False
    return bool(strip_thoughts(action[: max(start, 0)]) or action[stop:].strip())


def check_message(episode: Episode[RetailState], message: str, *, tracks: bool) -> Verdict | None:
    """Check a message that the customer has answered; return its verdict where one is known."""
    state, customer = episode.state, episode.state.customer
    it = parse_message(message)
    ids = it.orders | it.methods | {item for item in it.items if len(item) == 10}
    step = AgentStep(
        arguments={},
        text=it.text,
        identified=state.user_id,
        invented=_is_invented(episode, ids),
    )
    _note_violations(episode, step)
    if not tracks and not step.invented:
        return None
    moved = customer.end in ("stop", "transfer") or customer.idle == 0
    gave_in = tracks and customer.phase[customer.at] == "wrongly_denied"
    return judge_message(state, step, moved=moved, gave_in=gave_in)


def _is_invented(episode: Episode[RetailState], ids: frozenset[str]) -> bool:
    """Tell whether an id was said that no tool and no customer has named."""
    if not ids:
        return False
    shown = [step.observation.lower() for step in episode.steps]
    shown.append(episode.observation.lower())
    return any(not any(name in text for text in shown) for name in ids)


def _note_violations(episode: Episode[RetailState], step: AgentStep) -> None:
    if broken := find_broken_rules(step):
        episode.state.violations += tuple((episode.turn, key) for key in broken)
