"""Budgets of a group: play until so many tokens are sampled or so many actions are taken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from ...agents.scripted import text_env
from ...envs.core.errors import BadValueError
from ..core.checks import is_number
from ..core.forest import ROOT, Group, Tree, Turn
from .episode_runner import EpisodeHandle, EpisodeRunner, StepResult

L = TypeVar("L", bound="Line")


@dataclass(slots=True)
class GroupBudget:
    """The limits of a group, and what it has used.

    A turn is admitted when it fits beside those in flight (an action may take ``max_tokens``), or
    when none is in flight and anything is left: the budget is passed by at most one turn.

    An episode begins when it fits beside the others at its longest, or when no other is under way.
    So the budget buys whole episodes; many that begin together would all be cut off at once.

    Attributes:
        tokens: Maximum sampled tokens; None for no limit.
        calls: Maximum actions; None for no limit.
        spent_tokens: Sampled so far.
        spent_calls: Taken so far.
    """

    tokens: int | None = None
    calls: int | None = None
    spent_tokens: int = 0
    spent_calls: int = 0

    def __post_init__(self) -> None:
        for name in ("tokens", "calls"):
            amount = getattr(self, name)
            if amount is not None and not (is_number(amount, whole=True) and amount >= 1):
                raise BadValueError(f"limit_{name} is {amount!r}; expected at least 1, or none.")

    @property
    def off(self) -> bool:
        """Whether there is no limit."""
        return self.tokens is None and self.calls is None

    @property
    def left(self) -> bool:
        """Whether a turn may be played with no other in flight."""
        return (self.tokens is None or self.spent_tokens < self.tokens) and (
            self.calls is None or self.spent_calls < self.calls
        )

    def spend(self, tokens: int) -> None:
        """Record one more turn, of so many sampled tokens."""
        self.spent_tokens += tokens
        self.spent_calls += 1

    def admitted(self, active: Sequence[L], runner: EpisodeRunner) -> list[L]:
        """Return the lines that may take a turn now, in order; mark the ones that begin."""
        if self.off:
            return list(active)
        size = runner.sampling.max_tokens
        under_way = sum(_longest(line) for line in active if line.begun)
        chosen: list[L] = []
        for line in active:
            longest = 0 if line.begun else _longest(line)
            if longest and under_way and not self._holds(under_way + longest, size):
                continue
            if not (self._holds(len(chosen) + 1, size) if chosen else self.left):
                continue
            line.begun = True
            under_way += longest
            chosen.append(line)
        return chosen

    def _holds(self, turns: int, max_tokens: int) -> bool:
        """Whether so many more turns fit, each of maximum length."""
        tokens, calls = self.spent_tokens + turns * max_tokens, self.spent_calls + turns
        return (self.tokens is None or tokens <= self.tokens) and (
            self.calls is None or calls <= self.calls
        )


@dataclass(slots=True, eq=False)
class Line:
    """A handle that plays to its end in a tree.

    Attributes:
        handle: The live episode.
        tree: The tree that its turns are appended to.
        begun: It was admitted once. Only tracked where there is a limit.
    """

    handle: EpisodeHandle
    tree: Tree
    begun: bool = field(default=False, kw_only=True)


def _longest(line: Line) -> int:
    """Return the number of turns that the episode can still take."""
    return max(1, text_env(line.handle.env).max_turns - line.handle.turns)


class Grower(Protocol):
    """Hooks of a rollout around every turn of a line."""

    def ready(self, line: Line) -> None:
        """Prepare for the line's next turn."""
        ...

    def append(self, runner: EpisodeRunner, line: Line, result: StepResult) -> Turn:
        """Put its result into its tree, see :meth:`EpisodeRunner.append`."""
        ...


class Plain:
    """Appends whole turns."""

    def ready(self, line: Line) -> None:
        """Do nothing."""

    def append(self, runner: EpisodeRunner, line: Line, result: StepResult) -> Turn:
        """Append the turn whole."""
        return runner.append(line.handle, line.tree, result)


async def play_lines(
    runner: EpisodeRunner, lines: Sequence[Line], budget: GroupBudget, grower: Grower | None = None
) -> None:
    """Play all lines to their ends, or until the budget stops them.

    In rounds of one turn per line: what is admitted, and the order of the turns in a tree, never
    depend on which action was sampled first. Lines that the budget stopped are left unfinished.
    """
    grower = grower or Plain()
    while active := [line for line in lines if not line.handle.done]:
        admitted = budget.admitted(active, runner)
        if not admitted:
            break
        for line in admitted:
            grower.ready(line)
        results = await asyncio.gather(*(runner.step(line.handle) for line in admitted))
        for line, result in zip(admitted, results, strict=True):
            grower.append(runner, line, result)
            budget.spend(len(result.done.ids))
    for line in active:
        runner.leave(line.handle)


def keep_episodes(group: Group, wanted: Sequence[Sequence[int]]) -> Group:
    """Return the group with only the wanted episodes; count all other turns as pruned.

    Args:
        group: The whole group.
        wanted: For every tree, the last turns of the episodes that stay.
    """
    trees = []
    tokens, turns = group.pruned_tokens, group.pruned_turns
    for tree, finals in zip(group.trees, wanted, strict=True):
        stay = sorted({turn for last in finals for turn in tree.episode(last)})
        if stay:
            trees.append(extract_turns(tree, stay))
        gone = [tree.turns[old] for old in sorted({*range(len(tree.turns))} - {*stay})]
        tokens += sum(len(turn.act_ids) for turn in gone)
        turns += sum(not turn.partial for turn in gone)
    return replace(group, trees=trees, pruned_tokens=tokens, pruned_turns=turns)


def extract_turns(tree: Tree, stay: Sequence[int]) -> Tree:
    """Return the tree of some turns, ascending, parents included.

    Turns in between are skipped: ``previous`` becomes the last turn that stays.
    """
    place = {ROOT: ROOT} | {old: new for new, old in enumerate(stay)}
    smaller = Tree()
    for old in stay:
        turn = tree.turns[old]
        before = tree.previous(old)
        while before not in place:
            before = tree.previous(before)
        parent, previous = place[turn.parent], place[before]
        previous = None if previous == parent else previous
        smaller.add(replace(turn, parent=parent, previous=previous))
    return smaller


def finished_episodes(tree: Tree) -> list[int]:
    """Return the last turns of the episodes that were played to their end."""
    return [last for last in tree.finals() if tree.turns[last].status != "running"]
