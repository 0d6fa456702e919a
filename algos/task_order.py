"""Which tasks a training step plays: a function of the seed and the step alone."""

from __future__ import annotations

import numpy as np

from .contracts import Start
from .rollouts import seed_at

# Different purposes draw from different streams of one seed.
_TASKS, _EPISODES, _EXTRA = 1, 2, 3
_UNBOUNDED = 2**31


def step_starts(
    seed: int, step: int, count: int, split: str, size: int | None, extra_round: int = 0
) -> list[Start]:
    """The ``count`` starts of one training step.

    A finite split is gone through in a new random order each time round, so that every task is
    played equally often; an endless one is sampled. Extra rounds have orders of their own.

    Args:
        seed: Of the run.
        step: Training step, from 1.
        count: Groups per step.
        split: Split of the tasks.
        size: Number of tasks in it; None when there is no end of them.
        extra_round: Which further round of the same step, from 1; 0 is the step's own.
    """
    name = str(step)
    if extra_round:
        seed, name = seed_at(seed, _EXTRA, extra_round), f"{step}.{extra_round}"
    starts = []
    for place in range((step - 1) * count, step * count):
        if size is None:
            task = seed_at(seed, _TASKS, place) % _UNBOUNDED
        else:
            turn, at = divmod(place, size)
            order = np.random.default_rng([seed, _TASKS, turn]).permutation(size)
            task = int(order[at])
        episode = seed_at(seed, _EPISODES, place)
        starts.append(Start(split, task, episode, f"{name}/{place}"))
    return starts
