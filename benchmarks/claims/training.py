"""Trained arms: each is a resumable matrix with one cell per seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...algos.runs.run_dir import read_metrics
from ..matrix.cell import CellResult, Tries, What
from ..matrix.curves import area_under
from ..matrix.executors import Ended, Executor
from ..matrix.jobs import Job
from ..matrix.layout import Layout
from ..matrix.measure import (
    RETURN,
    SUCCESS,
    logged_measures,
    mean_over_budget,
    read_training_curve,
)
from ..matrix.progress_view import View
from ..matrix.run import run_matrix
from ..matrix.suite import Limits
from .experiments import TrainedArm, Training
from .outcome import RUN, ArmRuns, SeedRun

LAST_STEPS = 5
"""Number of last training steps for the mean number of turns."""
AREAS = {"area": SUCCESS, "area_return": RETURN, "area_right": "right", "area_coins": "coins"}
"""Measure of the training episodes by the area under it."""


class PersistentExecutor:
    """An executor whose workers persist between matrices, until :meth:`close`.

    Args:
        inner: Runs the jobs.
    """

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._running = 0

    @property
    def slots(self) -> int:
        """Return the number of concurrent jobs."""
        return self._inner.slots

    def submit(self, job: Job) -> None:
        """Start a job."""
        self._running += 1
        self._inner.submit(job)

    def wait(self, seconds: float) -> list[Ended]:
        """Wait up to the timeout; return the jobs that ended."""
        ended = self._inner.wait(seconds)
        self._running -= len(ended)
        return ended

    def stop(self) -> None:
        """Stop if jobs are running; idle workers stay."""
        if self._running:
            self.close()

    def close(self) -> None:
        """Stop the workers."""
        self._running = 0
        self._inner.stop()


def run_training(
    experiment: Training,
    seeds: Sequence[int],
    folder: Path,
    executor: Executor,
    view: Callable[[], View],
) -> tuple[ArmRuns, ...]:
    """Compute every arm's cells and read their metrics.

    Args:
        experiment: The arms.
        seeds: Training seeds.
        folder: Parent of the arms' folders.
        executor: Runs the cells.
        view: Makes the progress view of an arm.

    Raises:
        KeyboardInterrupt: After the running cells were saved; the same call resumes.
    """
    return tuple(_arm(experiment, arm, seeds, folder, executor, view()) for arm in experiment.arms)


def _arm(
    experiment: Training,
    arm: TrainedArm,
    seeds: Sequence[int],
    folder: Path,
    executor: Executor,
    view: View,
) -> ArmRuns:
    suite, key = experiment.suite(arm), experiment.key(arm)
    wanted = [cell for cell in suite.cells if cell.seed in seeds]
    board = run_matrix(suite, folder / key, executor, view, wanted)
    layout = Layout(folder / key)
    results = [board.results[cell.key] for cell in wanted]
    problems = [
        f"seed {r.cell.seed} {r.state}: {r.reason.splitlines()[0] if r.reason else ''}"
        for r in results
        if r.state != "finished"
    ]
    return ArmRuns(
        name=arm.name,
        folder=key,
        pairing=experiment.pairing(arm),
        runs=tuple(
            _seed_run(r, arm.column.limits, layout) for r in results if r.state == "finished"
        ),
        problem=problems[0] if problems else "",
    )


def _seed_run(result: CellResult, limits: Limits, layout: Layout) -> SeedRun:
    rows = read_metrics(layout.run_dir(result.cell) / "metrics.jsonl")
    return SeedRun(
        seed=result.cell.seed, values=read_measures(result, limits, rows), used=result.used
    )


def read_measures(
    result: CellResult, limits: Limits, rows: Sequence[Mapping[str, Any]]
) -> Mapping[str, Mapping[str, float]]:
    """Read every metric of a finished cell.

    Args:
        result: The cell's result.
        limits: Its budget.
        rows: The metrics that its training logged.
    """
    values: dict[str, Mapping[str, float]] = {}
    trials: tuple[tuple[str, Tries | None, What], ...] = (
        ("success", result.tries, "solved"),
        ("return", result.tries, "returns"),
        ("greedy", result.greedy_tries, "solved"),
    )
    for measure, tries, what in trials:
        if tries is not None:
            tried = tries.by_task(what)
            values[measure] = {task: float(np.mean(got)) for task, got in tried.items()}
    logged = logged_measures(rows) if result.area is not None else set()
    for name, measure in AREAS.items():  # imitation plays no episodes of its own
        if measure in logged:
            area = mean_over_budget(read_training_curve(rows, measure), limits.tokens)
            assert area is not None
            values[name] = {RUN: area}
    if len(result.curve) > 1:
        success = [point.success for point in result.curve]
        tokens = [float(point.tokens) for point in result.curve]
        calls = [float(point.calls) for point in result.curve]
        values["area_tokens"] = {RUN: area_under(tokens, success, limits.tokens)}
        values["area_calls"] = {RUN: area_under(calls, success, limits.calls)}
        values["fall"] = {RUN: largest_drop(success)}
    if (turns := turns_at_end(rows)) is not None:
        values["turns"] = {RUN: turns}
    return values


def largest_drop(values: Sequence[float]) -> float:
    """Return the largest drop of a curve below its previous maximum; 0 if it only rises."""
    best = np.maximum.accumulate(np.asarray(values, dtype=np.float64))
    return float((best - np.asarray(values)).max())


def turns_at_end(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean turns per episode in the last training steps; None without a step."""
    turns = [float(row["rollout/turns_mean"]) for row in rows if "rollout/turns_mean" in row]
    return float(np.mean(turns[-LAST_STEPS:])) if turns else None
