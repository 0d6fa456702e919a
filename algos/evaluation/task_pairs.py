"""Two agents on the same tasks: how their success and return differ, paired by task.

Such a difference is one between two agents as they are, for models two sets of weights. Its
interval and its p-value are over tasks. Training seeds are no source of error in it, so it decides
nothing about the algorithms that trained them: :mod:`~turngym.envs.utils.seed_tests` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...envs.core.errors import BadValueError
from ...envs.utils.statistics import (
    Estimate,
    mcnemar_p,
    paired_mean,
    paired_share,
    sign_flip_p,
    task_gaps,
)
from .evaluate import describe_decoding
from .score_rows import Played, ScoreRow, TaskOutcome


@dataclass(frozen=True, kw_only=True)
class ReturnDifference:
    """How the returns of two agents differ on the same tasks.

    Attributes:
        mean: Mean of ours less theirs.
        interval: Student's 95 % interval over tasks; None where all differ by the same.
        p_value: Two-sided sign-flip permutation test; all patterns of signs are tried for up to 13
            tasks that differ.
    """

    mean: float
    interval: Estimate | None
    p_value: float


@dataclass(frozen=True, kw_only=True)
class TaskDifference:
    """How two agents differ on the same tasks.

    Attributes:
        tasks: Tasks that both have a score for.
        left_out: Tasks that one of them has no score for: its environment or its agent broke.
        gained: Tasks that only our agent solved.
        lost: Tasks that only the other one solved.
        success: Difference of the shares, ours less theirs, with its 95 % interval over tasks
            (:func:`~turngym.envs.utils.statistics.paired_share`); None without a task.
        p_value: McNemar's exact test of the successes; 1 without a task.
        return_: Difference of the returns; None without a task, and where success is all that the
            environment measures.
    """

    tasks: int
    left_out: int
    gained: int
    lost: int
    success: Estimate | None
    p_value: float
    return_: ReturnDifference | None


class Ways(NamedTuple):
    """Episodes of two agents that can be compared.

    Attributes:
        how: How both chose their actions, in words; empty for agents without a temperature.
        ours: Our agent's episodes.
        theirs: The other one's, of the same tasks.
    """

    how: str
    ours: Sequence[TaskOutcome]
    theirs: Sequence[TaskOutcome]


def compare_outcomes(ours: Sequence[TaskOutcome], theirs: Sequence[TaskOutcome]) -> TaskDifference:
    """Compare two agents task by task.

    Args:
        ours: Our agent's episodes, one per task.
        theirs: The other one's, of the same tasks in the same order.

    Raises:
        BadValueError: The tasks are not the same.
    """
    names = [[e.task for e in side] for side in (ours, theirs)]
    if names[0] != names[1]:
        raise BadValueError(f"paired comparison: {first_other(*names)}; expected the same tasks.")
    pairs: list[tuple[bool, bool]] = []
    returns: list[tuple[float, float]] = []
    for our, their in zip(ours, theirs, strict=True):
        if our.success is None or their.success is None:
            continue
        pairs.append((our.success, their.success))
        returns.append((our.return_ or 0.0, their.return_ or 0.0))
    mine, other = [a for a, _ in pairs], [b for _, b in pairs]
    gained = sum(a and not b for a, b in pairs)
    lost = sum(b and not a for a, b in pairs)
    return TaskDifference(
        tasks=len(pairs),
        left_out=len(ours) - len(pairs),
        gained=gained,
        lost=lost,
        success=paired_share(mine, other) if pairs else None,
        p_value=mcnemar_p(gained, lost),
        return_=_compare_returns(returns) if returns != pairs else None,
    )


def _compare_returns(returns: Sequence[tuple[float, float]]) -> ReturnDifference:
    mine, other = [a for a, _ in returns], [b for _, b in returns]
    gaps = task_gaps(mine, other)
    interval = paired_mean(mine, other)
    return ReturnDifference(
        mean=sum(gaps) / len(gaps) if interval is None else interval.mean,
        interval=interval,
        p_value=sign_flip_p(gaps),
    )


def first_other(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return in words where two lists of tasks part; empty where they do not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} tasks here and {len(theirs)} there"
    places = (i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    place = next(places, None)
    if place is None:
        return ""
    return f"task {place + 1} is {ours[place]} here and {theirs[place]} there"


def pair_ways(ours: ScoreRow, theirs: ScoreRow) -> list[Ways]:
    """Return the ways of decoding in which two agents can be compared, with their episodes.

    An agent without a temperature is compared with each way of the other. What cannot be compared
    is named by :func:`why_apart`.

    Raises:
        BadValueError: A row has no episodes.
    """
    for row in (ours, theirs):
        if row.episodes is None:
            raise BadValueError(
                f"paired comparison: {row.agent} on {row.score.name} has no episodes; expected the "
                "row of a whole set."
            )
    common = common_ways(ours.played, theirs.played)
    found = [(how, _episodes(ours, how), _episodes(theirs, how)) for how in common]
    return [Ways(how, one, two) for how, one, two in found if one is not None and two is not None]


def common_ways(ours: Played, theirs: Played) -> list[str]:
    """Return how both agents chose their actions, in words, where they did so alike."""
    if _other_tokens(ours, theirs):
        return []
    mine, other = _decodings(ours.temperature), _decodings(theirs.temperature)
    if "" in mine or "" in other:
        return other if "" in mine else mine
    return [how for how in mine if how in other]


def why_apart(ours: Played, theirs: Played) -> str:
    """Return in words what of two agents cannot be compared, and why; empty where all can."""
    if _other_tokens(ours, theirs):
        tokens = f"{ours.max_tokens} here and {theirs.max_tokens} there"
        return f"max tokens differ ({tokens}); give --max-tokens {theirs.max_tokens}"
    heats = (ours.temperature, theirs.temperature)
    if None in heats or heats[0] == heats[1]:
        return ""
    return (
        f"temperatures of the sampled scores differ ({heats[0]:g} here and {heats[1]:g} there), so "
        "only greedy ones are compared"
    )


def _other_tokens(ours: Played, theirs: Played) -> bool:
    limits = (ours.max_tokens, theirs.max_tokens)
    alike = (ours.model is None) == (theirs.model is None)  # both write actions, or both replies
    return alike and None not in limits and limits[0] != limits[1]


def _decodings(temperature: float | None) -> list[str]:
    """Return the ways in which an agent was scored; one with a temperature has a greedy one."""
    heats = [None] if temperature is None else [temperature, 0.0]
    return list(dict.fromkeys(describe_decoding(heat) for heat in heats))


def _episodes(row: ScoreRow, how: str) -> Sequence[TaskOutcome] | None:
    """Return a row's episodes in one way of decoding."""
    heat = row.score.temperature
    if heat is None or how == describe_decoding(heat):
        return row.episodes
    return row.greedy_episodes
