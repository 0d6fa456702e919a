"""Arms that are trained: each one a matrix of one cell per seed, resumed like any other."""

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
"""Of training, over which the turns of an episode are a mean."""


class Lasting:
    """An executor whose workers live on between matrices, until :meth:`close`.

    Args:
        inner: Where the jobs run.
    """

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._running = 0

    @property
    def slots(self) -> int:
        """Jobs at a time."""
        return self._inner.slots

    def submit(self, job: Job) -> None:
        """Start a job."""
        self._running += 1
        self._inner.submit(job)

    def wait(self, seconds: float) -> list[Ended]:
        """Jobs that ended."""
        ended = self._inner.wait(seconds)
        self._running -= len(ended)
        return ended

    def stop(self) -> None:
        """End what runs; workers that have nothing to do are kept."""
        if self._running:
            self.close()

    def close(self) -> None:
        """End the workers."""
        self._running = 0
        self._inner.stop()


def run_training(
    experiment: Training,
    seeds: Sequence[int],
    folder: Path,
    executor: Executor,
    view: Callable[[], View],
) -> tuple[ArmRuns, ...]:
    """Fill every arm's cells and read what they measured.

    Args:
        experiment: The arms.
        seeds: Training seeds.
        folder: Takes a folder per arm.
        executor: Where cells run.
        view: Makes where an arm is shown.

    Raises:
        KeyboardInterrupt: After the running cells were saved; the same call goes on.
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
            SeedRun(seed=r.cell.seed, values=measured(r, arm.column.limits, layout), used=r.used)
            for r in results
            if r.state == "finished"
        ),
        problem=problems[0] if problems else "",
    )


def measured(
    result: CellResult, limits: Limits, layout: Layout
) -> Mapping[str, Mapping[str, float]]:
    """Every measure of a finished cell."""
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
        values["fall"] = {RUN: fall(success)}
    if (turns := turns_at_end(layout, result.cell)) is not None:
        values["turns"] = {RUN: turns}
    return values


def fall(values: Sequence[float]) -> float:
    """The deepest a curve ever lies below the best that it had reached; 0 where it only rises."""
    best = np.maximum.accumulate(np.asarray(values, dtype=np.float64))
    return float((best - np.asarray(values)).max())


def turns_at_end(layout: Layout, cell: Cell) -> float | None:
    """Turns per episode in the last training steps; None without a step."""
    rows = read_metrics(layout.run_dir(cell) / "metrics.jsonl")
    turns = [float(row["rollout/turns_mean"]) for row in rows if "rollout/turns_mean" in row]
    return float(np.mean(turns[-LAST_STEPS:])) if turns else None
