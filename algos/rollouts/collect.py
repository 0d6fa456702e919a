"""Collect the rollouts of a training step, with further rounds where groups are filtered out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.forest import Forest, Group
from ..core.protocols import Start, TaskSource
from ..core.recipe import Recipe
from . import Chains, EpisodeRunner
from .stats import tokens_sampled, turns_taken

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
    """

    all: Forest
    trained: Forest
    rounds: int = 1
    filtered: bool = False

    @classmethod
    def whole(cls, groups: Sequence[Group]) -> RolloutBatch:
        """Return a batch that is trained on completely."""
        forest = Forest.of(groups)
        return cls(all=forest, trained=forest)

    def metrics(self) -> dict[str, float]:
        """Return metrics by declared key; none without a filter."""
        if not self.filtered:
            return {}
        return {
            "rollout/rounds": float(self.rounds),
            "rollout/groups_left_out": float(len(self.all.groups) - len(self.trained.groups)),
        }


async def play_step(
    recipe: Recipe, runner: EpisodeRunner, starts: Callable[[int], Sequence[Start]]
) -> RolloutBatch:
    """Play until the recipe's filter has accepted enough groups, or the rounds are used up.

    Args:
        recipe: Rollout, filter, number of groups.
        runner: Plays the episodes.
        starts: The tasks of each round, from 0.
    """
    if recipe.filter is None:
        return RolloutBatch.whole(await runner.groups(recipe.rollout, starts(0)))
    every: list[Group] = []
    kept: list[Group] = []
    rounds = 0
    while len(kept) < recipe.groups_per_step and rounds < recipe.filter.max_rounds:
        groups = await runner.groups(recipe.rollout, starts(rounds))
        every += groups
        kept += [g for g in groups if recipe.filter.keeps(_episode_returns(g))]
        rounds += 1
    return RolloutBatch(
        all=Forest.of(every),
        trained=Forest.of(kept[: recipe.groups_per_step]),
        rounds=rounds,
        filtered=True,
    )


def _episode_returns(group: Group) -> npt.NDArray[np.float64]:
    """Return the returns of the group's episodes, all sessions of an episode together."""
    worth, _ = Forest.of([group]).endings()
    return np.array(list(worth.values()), dtype=np.float64)


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
