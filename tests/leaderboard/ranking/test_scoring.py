"""Scores of replayed episodes: which interval stands beside a mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turngym.envs.utils.statistics import bootstrap_mean, estimate_share
from turngym.leaderboard.ranking.scoring import score_entry
from turngym.leaderboard.schema.result import EpisodeResult
from turngym.leaderboard.schema.suite import Cell, Suite


def results(suite: Suite, score: Callable[[Cell, int, int], float]) -> list[EpisodeResult]:
    """One run of every task and trial; a task is solved where it scores 1."""
    return [
        EpisodeResult(
            env=cell.key,
            task=task,
            task_id=str(task),
            run=0,
            trial=trial,
            status="solved" if score(cell, task, trial) == 1 else "failed",
            success=score(cell, task, trial) == 1,
            score=score(cell, task, trial),
            return_=0.0,
            turns=1,
            tool_calls=1,
            metrics={},
        )
        for cell in suite.cells
        for task in range(len(cell.tasks))
        for trial in range(cell.trials)
    ]


def test_who_solves_all_is_not_shown_as_certain(suite: Suite) -> None:
    found = score_entry(suite, results(suite, lambda *_: 1.0), runs=1)
    sizes = [len(cell.tasks) for cell in suite.cells]
    assert found.score == found.success == estimate_share([[1.0] * n for n in sizes])
    assert found.score.mean == 1.0 > found.score.low95
    for env, n in zip(found.envs, sizes, strict=True):
        assert env.success.low95 == pytest.approx(0.025 ** (1 / n))
        assert env.success.high95 == 1.0


def test_tasks_that_are_solved_now_and_then_are_resampled(suite: Suite) -> None:
    assert max(cell.trials for cell in suite.cells) > 1
    found = score_entry(suite, results(suite, lambda _, task, trial: float(trial <= task)), runs=1)
    for cell, env in zip(suite.cells, found.envs, strict=True):
        means = [
            sum(trial <= task for trial in range(cell.trials)) / cell.trials
            for task in range(len(cell.tasks))
        ]
        if set(means) - {0.0, 1.0}:
            assert env.success == bootstrap_mean([means])
        else:
            assert env.success == estimate_share([means])
