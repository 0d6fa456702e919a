"""The loop of supervised training: every row once an epoch, in a new order, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

Row = TypeVar("Row")


class BatchMetrics(NamedTuple):
    """Metrics of a batch, computed before the update.

    Attributes:
        loss: Mean loss.
        accuracy: Share of the rows that were judged correctly; nan where nothing is judged.
    """

    loss: float
    accuracy: float = math.nan


class TrainingProgress(NamedTuple):
    """The progress of training.

    Attributes:
        step: Steps taken.
        steps: Steps in all.
        loss: Of the step's batch, before it.
        accuracy: Of the step's batch, before it; nan where nothing is judged.
    """

    step: int
    steps: int
    loss: float
    accuracy: float


OnProgress = Callable[[TrainingProgress], None]


def ignore_progress(_: TrainingProgress) -> None:
    """Do nothing."""


def count_steps(rows: int, epochs: int, batch: int, warmup: float) -> tuple[int, int]:
    """Return how many steps training takes, and over how many the learning rate rises.

    Args:
        rows: Rows of an epoch.
        epochs: Times that every row is seen.
        batch: Rows per step.
        warmup: Share of the steps over which the learning rate rises.
    """
    steps = epochs * math.ceil(rows / batch)
    return steps, max(1, math.ceil(warmup * steps))


def run_epochs(
    rows: Sequence[Row],
    epochs: int,
    batch: int,
    rng: np.random.Generator,
    step: Callable[[list[Row]], BatchMetrics],
    on_progress: OnProgress = ignore_progress,
) -> dict[str, float]:
    """Train on every row once an epoch.

    Args:
        rows: What is learned from.
        epochs: Times that every row is seen.
        batch: Rows per step.
        rng: Of the rows' order.
        step: Learns from a batch.
        on_progress: Called after every step.

    Returns:
        ``steps``, and means over the last tenth of them: ``loss``, and ``accuracy`` where the
        steps report one.
    """
    steps, _ = count_steps(len(rows), epochs, batch, 0.0)
    done: list[BatchMetrics] = []
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        for start in range(0, len(order), batch):
            done.append(step([rows[i] for i in order[start : start + batch]]))
            on_progress(TrainingProgress(len(done), steps, *done[-1]))
    last = done[-max(1, len(done) // 10) :]
    means = {name: sum(getattr(d, name) for d in last) / len(last) for name in ("loss", "accuracy")}
    return {"steps": steps, **{name: x for name, x in means.items() if not math.isnan(x)}}
