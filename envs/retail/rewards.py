"""When a visit was a success: the shop's state, what was told, how it ended, and by the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .customer.parser import heard
from .customer.proposals import told_amount
from .customer.scenario import Goal, Scenario
from .policy import RULES
from .shop.desk import Changes
from .state import RetailState
from .tasks.payload import RetailTask

_SCORED = frozenset(rule.key for rule in RULES if rule.scored)
_LISTS = ("item_ids", "new_item_ids")


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of a success, each true or false.

    Attributes:
        data: Exactly the right records differ, in the right way.
        told: Everything that was asked for was told.
        ended: Every goal ended as it should, and so did the talk.
        evidence: Denials and transfers were well founded: the customer was identified and the
            record read.
        policy: No scored rule was broken.
    """

    data: bool
    told: bool
    ended: bool
    evidence: bool
    policy: bool

    @property
    def success(self) -> bool:
        """Whether all of it holds."""
        return self.data and self.told and self.ended and self.evidence and self.policy


def scored(
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
    told = all(_holds(messages, output) for output in task.outputs)
    ended = state.mind.end in ("stop", "transfer") or not tracks
    evidence = True
    if scenario is not None:
        told = told and _told(scenario, state, messages, tracks)
        ended = _ended(scenario, state, tracks)
        evidence = _evidence(scenario, state)
    broken = policy and any(key in _SCORED for _, key in state.violations)
    data = any(state.desk.is_at(changes) for changes in accepted)
    return Score(data, told, ended, evidence, not broken)


def _holds(messages: Sequence[str], output: str) -> bool:
    """Tau-bench's check: part of a message without commas, letters' case aside."""
    return any(output.lower() in message.lower().replace(",", "") for message in messages)


def _told(scenario: Scenario, state: RetailState, messages: Sequence[str], tracks: bool) -> bool:
    asked = [(at, goal.last()) for at, goal in enumerate(scenario.goals) if goal.last().ask]
    if tracks:
        return all(state.mind.phase[at] == "done" for at, _ in asked)
    return all(any(_says(message, goal) for message in messages) for _, goal in asked)


def _says(message: str, goal: Goal) -> bool:
    it = heard(message)
    if goal.money:
        return told_amount(it, float(goal.answer))
    return goal.answer in it.numbers or goal.answer in it.items


def _ended(scenario: Scenario, state: RetailState, tracks: bool) -> bool:
    handed = any(goal.last().expect == "transferred" for goal in scenario.goals)
    if state.mind.end != ("transfer" if handed else "stop"):
        return False
    if not tracks:
        return True
    for at, goal in enumerate(scenario.goals):
        stages = goal.stages()
        last = stages[-1]
        dropped = last.limit is not None and last.value > last.limit
        wanted = "dropped" if dropped else last.expect
        if state.mind.stage[at] != len(stages) - 1 or state.mind.phase[at] != wanted:
            return False
    return True


def _evidence(scenario: Scenario, state: RetailState) -> bool:
    """Whether whoever was denied or handed over was served as carefully as all others."""
    refused = [goal for first in scenario.goals for goal in first.stages() if goal.expect != "done"]
    if not refused:
        return True
    if not scenario.identity.valid:
        return state.searches > 0 and not state.user_id
    if state.user_id != scenario.identity.user_id:
        return False
    if any(goal.expect == "transferred" for goal in refused) and not state.transferred:
        return False
    return all(
        not goal.record or any(part in state.seen for part in goal.record.split("|"))
        for goal in refused
    )


def same_call(one: tuple[str, Mapping[str, Any]], two: tuple[str, Mapping[str, Any]]) -> bool:
    """Whether two writes do the same: pairs of items may stand in any order."""
    if one[0] != two[0]:
        return False
    a, b = dict(one[1]), dict(two[1])
    return _pairs(a) == _pairs(b) and a == b


def _pairs(given: dict[str, Any]) -> list[tuple[str, ...]]:
    columns = [given.pop(name) for name in _LISTS if name in given]
    return sorted(zip(*columns, strict=False)) if columns else []
