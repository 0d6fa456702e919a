"""Collect the rollouts of a training step, with further rounds where groups are filtered out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.forest import Forest, Group
from ..core.protocols import TaskSource
from ..core.recipe import Recipe
from . import Chains, EpisodeRunner
from .stats import fault_warning, tokens_sampled, turns_taken
from .step_limits import Played, StepLimits, StepPlayer

FIRST_AT_ONCE = 2048
"""Number of first episodes that are in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class RolloutBatch:
    """The rollouts of one training step.

    Attributes:
        all: Every group, in order, for budgets and metrics.
        trained: The groups that are trained on.
        rounds: Rounds of playing.
        filtered: Whether groups could be left out.
        share: The part of a whole step that this is: below 1 where the budget ended it.
        unused_tokens: Tokens of groups that were begun beside the last ones and not needed.
        carried: Groups that go on in the next step; None where each step plays its groups to an
            end.
        carried_tokens: Tokens that these have sampled so far, which count once they are complete.
    """

    all: Forest
    trained: Forest
    rounds: int = 1
    filtered: bool = False
    share: float = 1.0
    unused_tokens: int = 0
    carried: int | None = None
    carried_tokens: int = 0

    @classmethod
    def whole(cls, groups: Sequence[Group]) -> RolloutBatch:
        """Return a batch that is trained on completely."""
        forest = Forest.of(groups)
        return cls(all=forest, trained=forest)

    def metrics(self) -> dict[str, float]:
        """Return metrics by declared key; none where nothing was left out or dropped."""
        row: dict[str, float] = {}
        if self.filtered:
            row["rollout/rounds"] = float(self.rounds)
            row["rollout/groups_left_out"] = float(len(self.all.groups) - len(self.trained.groups))
        if self.unused_tokens:
            row["rollout/tokens_unused"] = float(self.unused_tokens)
        if self.carried is not None:
            row["rollout/groups_carried"] = float(self.carried)
            row["rollout/tokens_carried"] = float(self.carried_tokens)
        return row


async def play_step(
    recipe: Recipe,
    runner: EpisodeRunner,
    tasks: TaskSource,
    before: Played,
    left: StepLimits,
) -> RolloutBatch:
    """Play the groups of the next step, none where the budget is used up.

    With ``tokens_per_step`` the step ends where the run has sampled the next multiple of it. Else
    it has a number of groups, and with a filter so many that it accepts, or its rounds are used up.
    What is left of the budget ends it before.

    Args:
        recipe: Rollout, filter, number of groups or tokens.
        runner: Plays the episodes.
        tasks: The tasks of the step.
        before: What the run has played until here.
        left: What is left of its budget.
    """
    if recipe.tokens_per_step is not None:
        return await _play_tokens(recipe, runner, tasks, before, left)
    player = StepPlayer(runner, recipe.rollout, left, before.last)
    wanted = recipe.groups_per_step
    every: list[Group] = []
    kept: list[Group] = []
    rounds = 0
    while len(kept) < wanted and rounds < _max_rounds(recipe) and not player.over:
        starts = tasks.starts(before.steps + 1, wanted, rounds)
        groups = await player.groups(lambda at, n, s=starts: s[at : at + n], wanted)
        every += groups
        kept += _kept(recipe, groups)
        rounds += 1
    return _batch(recipe, player, every, kept[:wanted], rounds, len(kept) / wanted)


async def _play_tokens(
    recipe: Recipe, runner: EpisodeRunner, tasks: TaskSource, before: Played, left: StepLimits
) -> RolloutBatch:
    """Play until the run's steps have sampled the next multiple of ``tokens_per_step``."""
    size = recipe.tokens_per_step or 1
    missing = size - before.total.tokens % size
    limit = missing if left.tokens is None else min(missing, left.tokens)
    player = StepPlayer(runner, recipe.rollout, StepLimits(limit, left.turns), before.last)
    groups = await player.groups(
        lambda at, n: tasks.starts_from(before.steps + 1, before.total.groups, at, n), None
    )
    share = player.used.tokens / size if left.reached(player.used) else 1.0
    return _batch(recipe, player, groups, _kept(recipe, groups), 1, share)


def _batch(
    recipe: Recipe,
    player: StepPlayer,
    every: Sequence[Group],
    kept: Sequence[Group],
    rounds: int,
    share: float,
) -> RolloutBatch:
    forest = Forest.of(every)
    return RolloutBatch(
        all=forest,
        trained=forest if recipe.filter is None else Forest.of(kept),
        rounds=rounds,
        filtered=recipe.filter is not None,
        share=min(1.0, share) if player.over else 1.0,
        unused_tokens=player.unused_tokens,
    )


def _max_rounds(recipe: Recipe) -> int:
    return 1 if recipe.filter is None else recipe.filter.max_rounds


def _kept(recipe: Recipe, groups: Sequence[Group]) -> list[Group]:
    """Return the groups that the recipe's filter accepts.

    Raises:
        TypeError: It answers neither yes nor no.
    """
    which = recipe.filter
    if which is None:
        return list(groups)
    kept: list[Group] = []
    for group in groups:
        answer: Any = which.keeps(_episode_returns(group))
        if not isinstance(answer, (bool, np.bool_)):
            raise TypeError(
                f"{type(which).__name__}.keeps returned {answer!r:.100}; expected True or False."
            )
        kept += [group] if answer else []
    return kept


def _episode_returns(group: Group) -> npt.NDArray[np.float64]:
    """Return the returns of the group's episodes, all sessions of an episode together."""
    worth, _ = Forest.of([group]).endings()
    return np.array(list(worth.values()), dtype=np.float64)


def step_warning(step: int, recipe: Recipe, played: RolloutBatch, fault: str) -> str:
    """Return what somebody who watches a run should know of a step; empty if there is nothing.

    Args:
        step: The training step.
        recipe: What was played by.
        played: The step's rollouts.
        fault: The environment's last error message.
    """
    groups = len(played.all.groups)
    if said := fault_warning(step, played.all, fault):
        return said
    if not groups or played.trained.paths:
        return ""
    if played.all.paths:
        why = f"{type(recipe.filter).__name__} left out all {groups} groups"
    else:
        why = f"the {groups} groups of {type(recipe.rollout).__name__} have no turn"
    return f"step {step}: {why}, so nothing is trained on."


async def play_first(
    runner: EpisodeRunner, tasks: TaskSource, on_progress: Callable[[float, str], None]
) -> tuple[int, int]:
    """Play the episodes that a tracker needs before the first step, in parts.

    Args:
        runner: Plays the episodes.
        tasks: Processes the episodes.
        on_progress: Called with the share that is done, and a short text.

    Returns:
        Tokens sampled and environment steps taken.
    """
    starts = tasks.first_episodes
    tokens = turns = 0
    for at in range(0, len(starts), FIRST_AT_ONCE):
        part = starts[at : at + FIRST_AT_ONCE]
        forest = Forest.of(await runner.groups(Chains(n=1), part))
        tasks.score_first(forest)
        tokens, turns = tokens + tokens_sampled(forest), turns + turns_taken(forest)
        done = at + len(part)
        on_progress(done / len(starts), f"{done} of {len(starts)}")
    return tokens, turns
