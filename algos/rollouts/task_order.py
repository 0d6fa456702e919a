"""Which tasks a training step plays: a function of the seed and the step alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...envs.core.interleave import shuffle_blocks
from ..core.protocols import Start, TaskSource
from . import seed_at

# Different purposes draw from different streams of one seed.
_TASKS, _EPISODES, _EXTRA = 1, 2, 3
_UNBOUNDED = 2**31
Size = int | npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class OrderedTasks(TaskSource):
    """The plain order: every task equally often; arguments as of :func:`step_starts`."""

    seed: int
    split: str
    size: Size

    def starts(self, step: int, count: int, extra_round: int = 0) -> list[Start]:
        """Return the tasks of a training step, or of a further round of it."""
        return step_starts(self.seed, step, count, self.split, self.size, extra_round)

    def starts_from(self, step: int, played: int, at: int, count: int) -> list[Start]:
        """Return the tasks at these places: the order goes on where the last step ended."""
        places = range(played + at, played + at + count)
        return _starts_at(self.seed, places, str(step), self.split, self.size)


def step_starts(
    seed: int, step: int, count: int, split: str, size: Size, extra_round: int = 0
) -> list[Start]:
    """Return the ``count`` starts of one training step.

    A finite split is gone through in a new random order each time round, so that every task is
    played equally often; an endless one is sampled. Extra rounds have orders of their own.

    A mixture of data sets keeps the pattern in which its sets take turns, so that their shares
    hold in every stretch of training; within a walk through a set its tasks are shuffled.

    Args:
        seed: Of the run.
        step: Training step, from 1.
        count: Groups per step.
        split: Split of the tasks.
        size: Number of tasks in it; None when there is no end of them; for a mixture the blocks
            of :func:`turngym.envs.core.tasks.get_split_blocks`.
        extra_round: Which further round of the same step, from 1; 0 is the step's own.
    """
    name = str(step)
    if extra_round:
        seed, name = seed_at(seed, _EXTRA, extra_round), f"{step}.{extra_round}"
    return _starts_at(seed, range((step - 1) * count, step * count), name, split, size)


def _starts_at(seed: int, places: range, name: str, split: str, size: Size) -> list[Start]:
    """Return the starts at these places of the run's order; ``name`` is of the step."""
    starts = []
    turns: dict[int, npt.NDArray[np.int64]] = {}
    for place in places:
        if size is None:
            task = seed_at(seed, _TASKS, place) % _UNBOUNDED
        else:
            turn, at = divmod(place, len(size) if isinstance(size, np.ndarray) else size)
            if turn not in turns:
                rng = np.random.default_rng([seed, _TASKS, turn])
                mixed = isinstance(size, np.ndarray)
                turns[turn] = shuffle_blocks(rng, size) if mixed else rng.permutation(size)
            task = int(turns[turn][at])
        episode = seed_at(seed, _EPISODES, place)
        starts.append(Start(split, task, episode, f"{name}/{place}"))
    return starts
