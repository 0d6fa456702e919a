"""The measure of a cell, read from its training rollouts: curve, area and tokens to a threshold.

The training rollouts are logged anyway, come from the policy itself at temperature 1, and there are
many more of them than of evaluation episodes, so the area under their success tells algorithms
apart with fewer seeds than a final score. A step's value belongs to the tokens of that step: its
episodes were played by the weights before its update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...envs.core.errors import BadValueError
from .cell import TrainingCurve

SUCCESS = "success"
RETURN = "return"
_LOGGED = {
    SUCCESS: "rollout/success_frac",
    RETURN: "rollout/return_mean",
    "turns": "rollout/turns_mean",
    "invalid_actions": "rollout/invalid_actions_mean",
}
"""What every episode reports and has a key of its own; the environment's metrics follow a rule."""
_METRIC = ("rollout/metric_", "_mean")
WINDOW = 0.1
"""Part of the budget over which the measure is averaged before it is held against a threshold."""


def read_training_curve(rows: Sequence[Mapping[str, Any]], measure: str) -> TrainingCurve:
    """Read the measure of the training rollouts from a run's metrics.

    A step without an episode that could be scored has no point: its tokens count for the next one.

    Args:
        rows: Lines of ``metrics.jsonl``.
        measure: ``success``, ``return``, or a metric of the environment.

    Raises:
        BadValueError: No step reports the measure.
    """
    steps = [row for row in rows if "rollout/tokens" in row]
    key = _LOGGED.get(measure, f"{_METRIC[0]}{measure}{_METRIC[1]}")
    found = [row for row in steps if key in row]
    if steps and not found:
        known = ", ".join(sorted(logged_measures(rows))) or "none"
        raise BadValueError(
            f"measure {measure!r}: the training rollouts report no such metric; expected one of "
            f"{known}."
        )
    return TrainingCurve(
        tokens=tuple(int(row["budget/tokens"]) for row in found),
        calls=tuple(int(row["budget/turns"]) for row in found),
        values=tuple(float(row[key]) for row in found),
    )


def logged_measures(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the measures that a run's training rollouts report: those that have a curve."""
    keys = {key for row in rows if "rollout/tokens" in row for key in row}
    before, behind = _METRIC
    metrics = {k for k in keys if k.startswith(before) and k.endswith(behind)}
    named = {key.removeprefix(before).removesuffix(behind) for key in metrics}
    return named | {name for name, key in _LOGGED.items() if key in keys}


def mean_over_budget(curve: TrainingCurve, limit: int) -> float | None:
    """Return the mean of the measure over the budget ``0 .. limit`` of sampled tokens.

    Tokens beyond the limit do not count. A run that ended before it, because another limit came
    first, goes on with its last value. None for a curve without points.

    Raises:
        BadValueError: The limit is not positive.
    """
    if limit <= 0:
        raise BadValueError(f"area of the measure: the limit is {limit}; expected above 0.")
    if not curve.values:
        return None
    edges = np.minimum(np.asarray([0, *curve.tokens], dtype=np.float64), limit)
    edges[-1] = limit
    return float(np.diff(edges) @ np.asarray(curve.values) / limit)


def running_means(
    spent: Sequence[int], values: Sequence[float], places: Sequence[float], window: float
) -> list[float]:
    """Return the mean of a training curve over the window before each place.

    Args:
        spent: Tokens or calls at the end of each step.
        values: The measure of each step, at least one; the last holds beyond the end.
        places: Where to read.
        window: Length of the window; what lies before 0 does not count.
    """
    last = max(*places, *spent) + 1.0
    edges = np.asarray([0, *spent, last], dtype=np.float64)
    heights = np.asarray([*values, values[-1]], dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(np.diff(edges) * heights)])
    means = []
    for at in places:
        start = max(0.0, at - window)
        area = np.interp(at, edges, sums) - np.interp(start, edges, sums)
        means.append(float(area / (at - start)) if at > 0 else float(values[0]))
    return means


def tokens_to_threshold(curve: TrainingCurve, limit: int, threshold: float) -> int | None:
    """Return the sampled tokens after which the measure was first at the threshold.

    It is there at the end of a step when its mean over the last tenth of the budget (over all
    tokens, before there are so many) is at least the threshold, so that one lucky step is not
    enough. None if it never was within the limit.
    """
    if not curve.values:
        return None
    means = running_means(curve.tokens, curve.values, curve.tokens, WINDOW * limit)
    steps = zip((0, *curve.tokens), curve.tokens, means, strict=False)
    reached = [min(at, limit) for began, at, mean in steps if began < limit and mean >= threshold]
    return min(reached, default=None)
