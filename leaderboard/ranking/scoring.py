"""Compute the scores of an entry from its replayed episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...envs.utils.statistics import (
    estimate_scores,
    pass_all,
    pass_at,
    student_mean,
)
from ..schema.result import EnvScores, EpisodeResult, Scores
from ..schema.suite import Cell, Suite

Value = Callable[[EpisodeResult], float]


def score_entry(suite: Suite, results: Sequence[EpisodeResult], runs: int) -> Scores:
    """Compute all scores of an entry.

    Args:
        suite: The suite that was played.
        results: Every episode of every run.
        runs: Number of runs.
    """
    by_env = {cell.key: [r for r in results if r.env == cell.key] for cell in suite.cells}
    envs = tuple(_env_scores(cell, by_env[cell.key]) for cell in suite.cells)
    common = min(cell.trials for cell in suite.cells)
    per_run = tuple(_run_score(by_env, run) for run in range(runs))
    return Scores(
        score=estimate_scores([task_means(found, _score) for found in by_env.values()]),
        success=estimate_scores([task_means(found, _success) for found in by_env.values()]),
        pass_at=tuple(_mean([env.pass_at[k] for env in envs]) for k in range(common)),
        pass_all=tuple(_mean([env.pass_all[k] for env in envs]) for k in range(common)),
        turns=_mean([env.turns for env in envs]),
        tool_calls=_mean([env.tool_calls for env in envs]),
        errors=sum(env.errors for env in envs),
        episodes=len(results),
        runs=per_run,
        between_runs=student_mean(per_run) if runs > 1 else None,
        envs=envs,
    )


def task_scores(results: Sequence[EpisodeResult]) -> dict[tuple[str, int], float]:
    """Return each task's mean score over trials and runs, by environment and task index."""
    found: dict[tuple[str, int], list[float]] = {}
    for result in results:
        found.setdefault((result.env, result.task), []).append(result.score)
    return {key: _mean(values) for key, values in found.items()}


def task_means(results: Sequence[EpisodeResult], value: Value) -> list[float]:
    """Return a value's mean for each task of one environment, over trials and runs."""
    found: dict[int, list[float]] = {}
    for result in results:
        found.setdefault(result.task, []).append(value(result))
    return [_mean(values) for values in found.values()]


def _env_scores(cell: Cell, results: Sequence[EpisodeResult]) -> EnvScores:
    solved: dict[tuple[int, int], int] = {}
    for r in results:
        solved[r.run, r.task] = solved.get((r.run, r.task), 0) + r.success
    ks = range(1, cell.trials + 1)
    return EnvScores(
        env=cell.key,
        env_id=cell.env_id,
        metric=cell.metric,
        tasks=len(cell.tasks),
        trials=cell.trials,
        score=estimate_scores([task_means(results, _score)]),
        success=estimate_scores([task_means(results, _success)]),
        return_=estimate_scores([task_means(results, lambda r: r.return_)]),
        pass_at=tuple(_mean([pass_at(c, cell.trials, k) for c in solved.values()]) for k in ks),
        pass_all=tuple(_mean([pass_all(c, cell.trials, k) for c in solved.values()]) for k in ks),
        turns=_mean([float(r.turns) for r in results]),
        tool_calls=_mean([float(r.tool_calls) for r in results]),
        errors=sum(r.failed for r in results),
        metrics=_metric_means(results),
    )


def _metric_means(results: Sequence[EpisodeResult]) -> dict[str, float]:
    whole = [r.metrics for r in results if not r.failed]
    names = sorted({name for metrics in whole for name in metrics})
    return {name: _mean([m[name] for m in whole if name in m]) for name in names}


def _run_score(by_env: Mapping[str, Sequence[EpisodeResult]], run: int) -> float:
    means = [_mean([r.score for r in found if r.run == run]) for found in by_env.values()]
    return _mean(means)


def _score(result: EpisodeResult) -> float:
    return result.score


def _success(result: EpisodeResult) -> float:
    return float(result.success)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
