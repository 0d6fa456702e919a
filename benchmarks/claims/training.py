"""Trained arms: each is a resumable matrix with one cell per seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...algos.runs.run_dir import read_metrics
from ..matrix.cell import Cell, CellResult
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
        runs=tuple(
            SeedRun(
                seed=r.cell.seed, values=read_measures(r, arm.column.limits, layout), used=r.used
            )
            for r in results
            if r.state == "finished"
        ),
        problem=problems[0] if problems else "",
    )


def read_measures(
    result: CellResult, limits: Limits, layout: Layout
) -> Mapping[str, Mapping[str, float]]:
    """Read every metric of a finished cell."""
    values: dict[str, Mapping[str, float]] = {}
    if result.tries is not None:
        for measure, what in (("success", "solved"), ("return", "returns")):
            tried = result.tries.by_task("solved" if what == "solved" else "returns")
            values[measure] = {task: float(np.mean(got)) for task, got in tried.items()}
    if len(result.curve) > 1:
        success = [point.success for point in result.curve]
        tokens = [float(point.tokens) for point in result.curve]
        calls = [float(point.calls) for point in result.curve]
        values["area_tokens"] = {RUN: area_under(tokens, success, limits.tokens)}
        values["area_calls"] = {RUN: area_under(calls, success, limits.calls)}
        values["fall"] = {RUN: largest_drop(success)}
    if (turns := turns_at_end(layout, result.cell)) is not None:
        values["turns"] = {RUN: turns}
    return values


def largest_drop(values: Sequence[float]) -> float:
    """Return the largest drop of a curve below its previous maximum; 0 if it only rises."""
    best = np.maximum.accumulate(np.asarray(values, dtype=np.float64))
    return float((best - np.asarray(values)).max())


def turns_at_end(layout: Layout, cell: Cell) -> float | None:
    """Read the mean turns per episode in the last training steps; None without a step."""
    rows = read_metrics(layout.run_dir(cell) / "metrics.jsonl")
    turns = [float(row["rollout/turns_mean"]) for row in rows if "rollout/turns_mean" in row]
    return float(np.mean(turns[-LAST_STEPS:])) if turns else None
