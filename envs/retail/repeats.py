"""Repeated trials: pass^k, pass@k, and success by tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb

from ..errors import BadValueError


def _checked(trials: Mapping[str, Sequence[bool]], k: int) -> None:
    if not trials:
        raise BadValueError("pass^k: there is no task.")
    fewest = min(len(done) for done in trials.values())
    if not 1 <= k <= fewest:
        raise BadValueError(
            f"pass^k: k is {k}; expected 1 to {fewest}, the fewest trials of a task."
        )


def pass_hat_k(trials: Mapping[str, Sequence[bool]], k: int) -> float:
    """How likely ``k`` fresh trials of a task all succeed: mean of C(c, k) / C(n, k).

    Args:
        trials: By task, whether each trial succeeded; broken trials are left out by the caller.
        k: How many trials.

    Raises:
        BadValueError: A task has fewer trials than ``k``.
    """
    _checked(trials, k)
    return sum(comb(sum(t), k) / comb(len(t), k) for t in trials.values()) / len(trials)


def pass_at_k(trials: Mapping[str, Sequence[bool]], k: int) -> float:
    """How likely one of ``k`` fresh trials of a task succeeds: mean of 1 - C(n - c, k) / C(n, k).

    Args:
        trials: By task, whether each trial succeeded.
        k: How many trials.

    Raises:
        BadValueError: A task has fewer trials than ``k``.
    """
    _checked(trials, k)
    missed = sum(comb(len(t) - sum(t), k) / comb(len(t), k) for t in trials.values())
    return 1 - missed / len(trials)


def by_tier(results: Sequence[Mapping[str, float]]) -> dict[int, tuple[float, int]]:
    """Share of successes and number of episodes per tier.

    Args:
        results: The ``metrics`` of finished episodes.
    """
    found: dict[int, list[float]] = {}
    for metrics in results:
        found.setdefault(int(metrics.get("tier", 0)), []).append(metrics["success"])
    return {tier: (sum(won) / len(won), len(won)) for tier, won in sorted(found.items())}
