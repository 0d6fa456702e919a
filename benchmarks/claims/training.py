"""Trained arms: each is a resumable matrix with one cell per seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...algos.runs.run_dir import read_metrics
from ..matrix.cell import CellResult
from ..matrix.curves import area_under
from ..matrix.executors import Ended, Executor
from ..matrix.jobs import Job
from ..matrix.layout import Layout
from ..matrix.progress_view import View
from ..matrix.run import run_matrix
from ..matrix.suite import Limits
from .experiments import TrainedArm, Training
from .outcome import RUN, ArmRuns, SeedRun

LAST_STEPS = 5
"""Number of last training steps for the mean number of turns."""
AREAS = {
    "area": "rollout/success_frac",
    "area_return": "rollout/return_mean",
    "area_right": "rollout/metric_right_mean",
}
"""Logged metric of the training episodes by the area under it."""


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
        world=experiment.world(arm),
        runs=tuple(
            _seed_run(r, arm.column.limits, layout) for r in results if r.state == "finished"
        ),
        problem=problems[0] if problems else "",
    )


def _seed_run(result: CellResult, limits: Limits, layout: Layout) -> SeedRun:
    rows = read_metrics(layout.run_dir(result.cell) / "metrics.jsonl")
    return SeedRun(
        seed=result.cell.seed,
        values=read_measures(result, limits, rows),
        used=result.used,
        optimizer_steps=int(sum(row.get("update/optimizer_steps", 0) for row in rows)),
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
    if result.tries is not None:
        for measure, what in (("success", "solved"), ("return", "returns")):
            tried = result.tries.by_task("solved" if what == "solved" else "returns")
            values[measure] = {task: float(np.mean(got)) for task, got in tried.items()}
    for measure, key in AREAS.items():
        if (area := area_of_training(rows, key, limits.tokens)) is not None:
            values[measure] = {RUN: area}
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


def area_of_training(rows: Sequence[Mapping[str, Any]], key: str, limit: float) -> float | None:
    """Return the mean of a training metric over the budget of sampled tokens.

    The episodes of a step were played by the weights before its update: its value holds from the
    tokens sampled before to those sampled after it. Tokens beyond the limit do not count; a run
    that ends early continues with its last value. None where no step logged the metric.
    """
    spent = area = last = 0.0
    seen = False
    for row in rows:
        if key in row and "budget/tokens" in row:
            end = min(float(row["budget/tokens"]), limit)
            seen, last = True, float(row[key])
            area += last * max(0.0, end - spent)
            spent = max(spent, end)
    return (area + last * (limit - spent)) / limit if seen else None


def largest_drop(values: Sequence[float]) -> float:
    """Return the largest drop of a curve below its previous maximum; 0 if it only rises."""
    best = np.maximum.accumulate(np.asarray(values, dtype=np.float64))
    return float((best - np.asarray(values)).max())


def turns_at_end(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean turns per episode in the last training steps; None without a step."""
    turns = [float(row["rollout/turns_mean"]) for row in rows if "rollout/turns_mean" in row]
    return float(np.mean(turns[-LAST_STEPS:])) if turns else None
