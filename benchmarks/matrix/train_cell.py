"""Compute a cell: train under the suite's budget, then play every evaluation task."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...algos.learner.settings import LearnerSettings
from ...algos.recipes import make_recipe
from ...algos.runs.run_dir import read_metrics
from ...algos.training.config import Budget, EnvConfig, TrainConfig, model_digest
from ...algos.training.trainer import Trainer
from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.utils.garbage_collection import settled_heap
from .cell import Cell, CellResult, ColumnResult, Point, SearchResult, State, TrainingCurve, Used
from .layout import Layout
from .machine_info import this_machine
from .measure import mean_over_budget, read_training_curve, tokens_to_threshold
from .suite import Limits, Suite
from .trials import evaluation_set, play_trials


class RefusedCellError(BadValueError):
    """A recipe that cannot be trained in an environment: the combination is invalid."""


def train_cell(
    suite: Suite, cell: Cell, start: ColumnResult, search: SearchResult | None, layout: Layout
) -> CellResult:
    """Train a cell, or resume its interrupted run, and score its last weights.

    Args:
        suite: The suite.
        cell: The cell.
        start: The start of its column.
        search: The learning rate of its row in its column; None where none is searched.
        layout: The folder.

    Returns:
        The result, ``finished`` or ``refused``.

    Raises:
        TurngymError: Training failed.
        KeyboardInterrupt: After a checkpoint was saved.
    """
    began = time.monotonic()
    column = suite.column(cell.column)
    folder = layout.run_dir(cell)
    rate = search.rate if search is not None else None
    seed = cell.seed + suite.recipe(cell.recipe).seed_offset
    try:
        config = make_train_config(suite, cell, start, seed, column.limits, rate)
        trainer = open_trainer(config, folder)
    except RefusedCellError as refusal:
        return make_result(suite, cell, "refused", str(refusal))
    with trainer, settled_heap():
        what = evaluation_set(column, config.env).make()
        tasks = what.tasks_digest() or ""
        _check_tasks(start, tasks)
        result = trainer.run()
        played = play_trials(suite, column, what, trainer.engine, trainer.renderer)
    rows = read_metrics(folder / "metrics.jsonl")
    curve = read_training(config, rows, column.measure)
    limit, threshold = column.limits.tokens, column.threshold
    return make_result(suite, cell, "finished").model_copy(
        update={
            "start_digest": start.start_digest,
            "tasks_digest": tasks,
            "used": read_cost(rows).model_copy(update={"seconds": result.seconds}),
            "rate": config.recipe.optim.lr,
            "search": search.used if search is not None else None,
            "curve": read_curve(rows, column.eval_split),
            "training": curve,
            "area": mean_over_budget(curve, limit),
            "to_threshold": None
            if threshold is None
            else tokens_to_threshold(curve, limit, threshold),
            "tries": played.sampled,
            "greedy_tries": played.greedy,
            "seconds": time.monotonic() - began,
            "machine": this_machine(suite.device),
        }
    )


def _check_tasks(start: ColumnResult, tasks: str) -> None:
    """Check that a cell's evaluation tasks, by their hash, are those of its column.

    Raises:
        DataError: They are others: the environment's code or data have changed in between.
    """
    if start.has_other_tasks(tasks):
        raise DataError(
            f"the evaluation tasks of column {start.column!r} ({tasks[:12]}) are not those that it "
            f"began with ({start.tasks_digest[:12]}): the environment's code or data have changed, "
            "and cells of both cannot be compared. Fill a new folder, or go back to the version "
            "that this one was begun with."
        )


def has_model(start: ColumnResult) -> bool:
    """Return whether the starting model of a column is here, with the weights that it had.

    It is in no packed file, and a folder that was moved names a place on another machine.
    """
    if not start.start:
        return False
    return start.start_digest in ("", model_digest(start.start))


def make_train_config(
    suite: Suite,
    cell: Cell,
    start: ColumnResult,
    seed: int,
    limits: Limits,
    rate: float | None = None,
) -> TrainConfig:
    """Make the configuration of a training run of a row in a column.

    Args:
        suite: The suite.
        cell: The row and the column.
        start: The start of the column.
        seed: The training seed.
        limits: The budget.
        rate: Learning rate of the policy; None takes the recipe's.

    Raises:
        RefusedCellError: The recipe's settings are invalid.
    """
    column, row = suite.column(cell.column), suite.recipe(cell.recipe)
    env = EnvConfig(id=column.id, settings=dict(start.settings))
    every = column.eval_every
    step = {} if column.tokens_per_step is None else {"tokens_per_step": column.tokens_per_step}
    searched = {} if rate is None else {"optim.lr": rate}
    own = {**row.settings, **suite.row_settings(cell.recipe, cell.column)}
    settings = {**step, **column.recipe_settings, **own, **searched}
    try:
        return TrainConfig(
            env=env,
            model=start.start,
            recipe=make_recipe(row.name, settings, small=suite.small),
            budget=Budget(steps=limits.steps, tokens=limits.tokens, calls=limits.calls),
            evals=(evaluation_set(column, env),) if every else (),
            split=column.train_split,
            seed=seed,
            max_tokens=column.max_tokens,
            max_context=column.max_context,
            max_lag=column.max_lag,
            importance_cap=column.importance_cap,
            eval_every=every,
            eval_temperature=suite.eval_temperature,
            checkpoint_every=max(1, column.checkpoint_every),
            records="all" if column.checkpoint_every else "metrics",
            keep=1,
            transcripts=4,
            max_batch=suite.max_batch,
            engine_dtype=suite.dtype,
            device=suite.device,
            learner=LearnerSettings(precision=suite.dtype),
        )
    except (BadValueError, UnknownNameError) as fault:
        raise RefusedCellError(str(fault)) from fault


def open_trainer(config: TrainConfig, folder: Path) -> Trainer:
    """Open the trainer of a run, new or interrupted.

    Raises:
        RefusedCellError: A new run whose recipe and environment do not go together.
        TurngymError: An interrupted run that cannot be resumed.
    """
    fresh = not (folder / "config.json").exists()
    try:
        return Trainer(config, folder)
    except (BadValueError, UnknownNameError) as fault:
        if not fresh:
            raise
        raise RefusedCellError(str(fault)) from fault


def read_training(
    config: TrainConfig, rows: Sequence[Mapping[str, Any]], measure: str
) -> TrainingCurve:
    """Read the measure of a run's training rollouts; empty where the policy does not play them.

    Raises:
        BadValueError: The rollouts do not report the measure.
    """
    own = config.recipe.rollout.samples
    return read_training_curve(rows, measure) if own else TrainingCurve()


def read_cost(rows: Sequence[Mapping[str, Any]]) -> Used:
    """Read the cost of a run so far from its metrics."""
    known = [row for row in rows if "budget/turns" in row]
    if not known:
        return Used()
    last = known[-1]
    return Used(
        tokens=int(last["budget/tokens"]),
        calls=int(last["budget/turns"]),
        steps=int(last["step"]),
        optimizer_steps=int(max(row.get("budget/optimizer_steps", 0) for row in known)),
        seconds=float(rows[-1].get("time/elapsed_s", 0.0)),
    )


def read_curve(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[Point, ...]:
    """Read the evaluations of a run as points of its learning curve."""
    at = f"eval/{name}/"
    return tuple(
        Point(
            step=int(row["step"]),
            tokens=int(row["budget/tokens"]),
            calls=int(row["budget/turns"]),
            success=float(row[at + "success_frac"]),
            return_low95=float(row[at + "return_low95"]),
            return_high95=float(row[at + "return_high95"]),
            **{"return": float(row[at + "return_mean"])},
        )
        for row in rows
        if at + "n" in row
    )


def make_result(
    suite: Suite, cell: Cell, state: State, reason: str = "", trace: str = ""
) -> CellResult:
    """Make a result without a score."""
    return CellResult(
        suite=suite.name,
        suite_version=suite.version,
        suite_digest=suite.digest,
        digest=suite.cell_digest(cell),
        cell=cell,
        state=state,
        reason=reason,
        trace=trace,
    )
