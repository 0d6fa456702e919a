"""The goal checker: moves a task's progress on, and counts its score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .goal import FAIL, NO, YES, Goals, Look, Sight
from .progress import Progress

FULL_SCORE = 100


def start(goals: Goals) -> Progress:
    """Progress before the first check."""
    count = len(goals.optional)
    return Progress(optional=[False] * count, memory=[None] * count)


def check(goals: Goals, progress: Progress, sight: Sight, find: Callable[[int], Any]) -> None:
    """One check: ordered goals while the focus satisfies them, then optional ones until none do.

    Args:
        goals: The variation's goals.
        progress: Moved on in place.
        sight: What is around the agent.
        find: Gives the object with an id, or None when it is no more.
    """
    look = Look(sight, progress)
    look.focus = find(progress.focus) if progress.focus else None
    if look.focus is not None:
        _check_ordered(goals, progress, look)
    _check_optional(goals, progress, look, look.focus)


def _check_ordered(goals: Goals, progress: Progress, look: Look) -> None:
    while progress.ordered < len(goals.ordered):
        goal = goals.ordered[progress.ordered]
        if not progress.keys.issuperset(goal.needs):
            return
        verdict = goal.check(look)
        if verdict != YES:
            progress.failed = progress.failed or verdict == FAIL
            return
        progress.last = look.focus.id
        progress.ordered += 1
        if goal.key:
            progress.keys.add(goal.key)
        if goal.defocus:
            progress.focus = 0
            look.focus = None
            return


def _check_optional(goals: Goals, progress: Progress, look: Look, focus: Any) -> None:
    waiting = [slot for slot, done in enumerate(progress.optional) if not done]
    while waiting:
        left: list[int] = []
        for slot in waiting:
            goal = goals.optional[slot]
            look.slot = slot
            if progress.keys.issuperset(goal.needs) and _satisfied(goal, look, focus):
                progress.optional[slot] = True
                if goal.key:
                    progress.keys.add(goal.key)
            else:
                left.append(slot)
        if len(left) == len(waiting):
            return
        waiting = left


def _satisfied(goal: Any, look: Look, focus: Any) -> bool:
    """Whether a goal holds when asked without a focus, or else with it."""
    look.focus = None
    verdict = goal.check(look)
    if verdict == NO and focus is not None:
        look.focus = focus
        verdict = goal.check(look)
    return verdict == YES


def is_complete(goals: Goals, progress: Progress) -> bool:
    """Whether all ordered goals are done."""
    return progress.ordered >= len(goals.ordered)


def score(goals: Goals, progress: Progress) -> float:
    """Score from 0 to 1; -1 as long as the task is failed.

    An ordered goal is worth 1/n of n; all optional ones together 1/(n + 1).
    """
    if progress.failed:
        return -1.0
    count = len(goals.ordered)
    unit = (1 / (count + 1)) / len(goals.optional)
    # Added up one by one, as the original does, so that rounding ends in the same integer.
    extra = 0.0
    for done in progress.optional:
        if done:
            extra += unit
    return min(progress.ordered / count + extra, 1.0)


def points(goals: Goals, progress: Progress) -> int:
    """The score as an integer, 0 to 100, or -100."""
    return round(FULL_SCORE * score(goals, progress))
