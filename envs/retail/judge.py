"""The judge by rules: +1, 0 or -1 for each turn, at most one -1 per episode (TARL)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .policy import Taken
from .rewards import same_call
from .state import RetailState
from .tasks.payload import RetailTask

Verdict = Literal[-1, 0, 1]


def judged(state: RetailState, verdict: int) -> Verdict:
    """A verdict, of which only the first -1 stays one."""
    if verdict >= 0:
        return 1 if verdict else 0
    if state.blamed:
        return 0
    state.blamed = True
    return -1


def wanted_write(task: RetailTask, tool: str, given: Mapping[str, Any]) -> bool:
    """Whether a write is part of a way that is accepted."""
    return any(same_call((tool, given), call) for way in task.accepted for call in way)


def of_call(task: RetailTask, state: RetailState, it: Taken, *, fresh: bool) -> Verdict:
    """The verdict on a tool call.

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
        good = it.confirmed and not alien and wanted_write(task, it.tool, it.arguments)
        return judged(state, 1 if good else -1)
    if it.tool == "transfer_to_human_agents":
        return judged(state, 1 if it.outside else -1)
    return 1 if fresh else 0


def of_message(state: RetailState, it: Taken, *, moved: bool, gave_in: bool) -> Verdict:
    """The verdict on a message.

    Args:
        state: After the customer's answer.
        it: The message.
        moved: Whether the talk came closer to its end.
        gave_in: Whether the customer gave up something that could have been done.
    """
    if it.invented or gave_in:
        return judged(state, -1)
    return 1 if moved else 0
