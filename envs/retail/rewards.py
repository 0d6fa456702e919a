"""Rewards of a visit: its success at the end, and the judge's verdict on every turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.episode import Verdict
from .customer.parser import parse_message
from .customer.proposals import states_amount
from .customer.scenario import Goal, Scenario
from .customer.scripted import MAX_NUMBERS
from .shop.overlay import Changes
from .shop.policy import RULES, AgentStep
from .shop.toolset import TRANSFER
from .state import RetailState
from .tasks.payload import RetailTask

_SCORED = frozenset(rule.key for rule in RULES if rule.scored)
_LISTS = ("item_ids", "new_item_ids")


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of a success, each true or false.

    Attributes:
        data: Exactly the right records differ, in the right way.
        communicated: The agent gave all the information that was asked for.
        ended: Every goal ended as it should, and so did the talk.
        evidence: Denials and transfers were well founded: the customer was identified and the
            record read. What a question is about was read, too.
        policy: No scored rule was broken.
    """

    data: bool
    communicated: bool
    ended: bool
    evidence: bool
    policy: bool

    @property
    def success(self) -> bool:
        """Tell whether all parts hold."""
        return self.data and self.communicated and self.ended and self.evidence and self.policy


def score_visit(
    task: RetailTask,
    state: RetailState,
    accepted: Sequence[Changes],
    messages: Sequence[str],
    *,
    tracks: bool,
    policy: bool,
) -> Score:
    """Score a visit that is over.

    Args:
        task: What was wanted.
        state: What came of it.
        accepted: The final states that are right.
        messages: What the assistant said.
        tracks: Whether the customer keeps track of goals (the one by rules does).
        policy: Whether broken rules cost the success.
    """
    scenario = task.scenario
    communicated = all(_is_communicated(messages, output) for output in task.outputs)
    ended = state.customer.end in ("stop", "transfer") or not tracks
    evidence = True
    if scenario is not None:
        communicated = communicated and _has_answers(scenario, state, messages, tracks)
        ended = _ended_rightly(scenario, state, tracks)
        evidence = _has_evidence(scenario, state)
    broken = policy and any(key in _SCORED for _, key in state.violations)
    data = any(state.overlay.is_at(changes) for changes in accepted)
    return Score(data, communicated, ended, evidence, not broken)


def _is_communicated(messages: Sequence[str], output: str) -> bool:
    """Make tau-bench's check: part of a message without commas; case does not matter."""
    return any(output.lower() in message.lower().replace(",", "") for message in messages)


def _has_answers(
    scenario: Scenario, state: RetailState, messages: Sequence[str], tracks: bool
) -> bool:
    asked = [(at, goal.last()) for at, goal in enumerate(scenario.goals) if goal.last().ask]
    if tracks:
        return all(state.customer.phase[at] == "done" for at, _ in asked)
    return all(any(_gives_answer(message, goal) for message in messages) for _, goal in asked)


def _gives_answer(message: str, goal: Goal) -> bool:
    it = parse_message(message)
    if len(it.numbers) > MAX_NUMBERS:
        return False
    if goal.money:
        return states_amount(it, float(goal.answer))
    return goal.answer in it.numbers or goal.answer in it.items


def _ended_rightly(scenario: Scenario, state: RetailState, tracks: bool) -> bool:
    handed = any(goal.last().expect == "transferred" for goal in scenario.goals)
    if state.customer.end != ("transfer" if handed else "stop"):
        return False
    if not tracks:
        return True
    for at, goal in enumerate(scenario.goals):
        stages = goal.stages()
        last = stages[-1]
        dropped = last.limit is not None and last.value > last.limit
        wanted = "dropped" if dropped else last.expect
        if state.customer.stage[at] != len(stages) - 1 or state.customer.phase[at] != wanted:
            return False
    return True


def _has_evidence(scenario: Scenario, state: RetailState) -> bool:
    """Tell whether denials, transfers and answers came after the records had been read."""
    stages = [goal for first in scenario.goals for goal in first.stages()]
    shown = state.seen | {_written_record(given) for _, given, _ in state.calls}
    if not all(_is_among(goal.record, shown) for goal in stages if goal.ask):
        return False
    refused = [goal for goal in stages if goal.expect != "done"]
    if not refused:
        return True
    if not scenario.identity.valid:
        return state.searches > 0 and not state.user_id
    if state.user_id != scenario.identity.user_id:
        return False
    if any(goal.expect == "transferred" for goal in refused) and not state.transferred:
        return False
    return all(_is_among(goal.record, state.seen) for goal in refused)


def _written_record(given: Mapping[str, Any]) -> str:
    """Return the order or user that a write changed, which it has shown as well."""
    return given.get("order_id") or given["user_id"]


def _is_among(record: str, seen: frozenset[str]) -> bool:
    """Tell whether one of the records of ``"one|other"`` was seen, or none is asked for."""
    return not record or any(part in seen for part in record.split("|"))


def is_same_call(one: tuple[str, Mapping[str, Any]], two: tuple[str, Mapping[str, Any]]) -> bool:
    """Tell whether two writes do the same; pairs of items may stand in any order."""
    if one[0] != two[0]:
        return False
    a, b = dict(one[1]), dict(two[1])
    return _pop_pairs(a) == _pop_pairs(b) and a == b


def _pop_pairs(given: dict[str, Any]) -> list[tuple[str, ...]]:
    columns = [given.pop(name) for name in _LISTS if name in given]
    return sorted(zip(*columns, strict=False)) if columns else []


def _cap_verdict(state: RetailState, verdict: int) -> Verdict:
    """Return a verdict; of all -1 in an episode only the first counts."""
    if verdict >= 0:
        return 1 if verdict else 0
    if state.blamed:
        return 0
    state.blamed = True
    return -1


def judge_call(task: RetailTask, state: RetailState, it: AgentStep, *, fresh: bool) -> Verdict:
    """Return the verdict on a tool call: +1, 0 or -1, with at most one -1 per episode (TARL).

    Args:
        task: What was wanted.
        state: After the call.
        it: The call.
        fresh: Whether it read a record of the customer, or found them, for the first time.
    """
    if not it.worked:
        return 0
    if it.writes:
        alien = bool(it.owner) and it.owner != it.identified
        call = (it.tool, it.arguments)
        wanted = any(is_same_call(call, other) for way in task.accepted for other in way)
        good = it.confirmed and not alien and wanted
        return _cap_verdict(state, 1 if good else -1)
    if it.tool == TRANSFER:
        return _cap_verdict(state, 1 if it.outside else -1)
    return 1 if fresh else 0


def judge_message(state: RetailState, it: AgentStep, *, moved: bool, gave_in: bool) -> Verdict:
    """Return the verdict on a message.

    Args:
        state: After the customer's answer.
        it: The message.
        moved: Whether the talk came closer to its end.
        gave_in: Whether the customer gave up something that could have been done.
    """
    if it.invented or gave_in:
        return _cap_verdict(state, -1)
    return 1 if moved else 0
