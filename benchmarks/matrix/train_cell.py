"""Compute a cell: train under the suite's budget, then play every evaluation task."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...agents.engines.base import Sampling
from ...algos.evaluation.evaluate import evaluate_model
from ...algos.evaluation.result import RunResult
from ...algos.learner.settings import LearnerSettings
from ...algos.recipes import make_recipe
from ...algos.rollouts import EpisodeRunner
from ...algos.runs.run_dir import read_metrics
from ...algos.training.config import Budget, EnvConfig, TrainConfig
from ...algos.training.trainer import Trainer
from ...envs.core.errors import BadValueError, UnknownNameError
from .cell import Cell, CellResult, EnvResult, Point, Tries, Used
from .layout import Layout
from .machine_info import this_machine
from .references import collect_tries, evaluation_set
from .suite import Suite

TRIAL_SEED = 1000
"""First seed of the trials, which differ from the seeds of the learning curve."""


def train_cell(suite: Suite, cell: Cell, start: EnvResult, layout: Layout) -> CellResult:
    """Train a cell, or resume its interrupted run, and score it.

    Args:
        suite: The suite.
        cell: The cell.
        start: The start of its column.
        layout: The folder.

    Returns:
        The result, ``finished`` or ``refused``.

    Raises:
        TurngymError: Training failed.
        KeyboardInterrupt: After a checkpoint was saved.
    """
    folder = layout.run_dir(cell)
    fresh = not (folder / "config.json").exists()
    try:
        config = make_train_config(suite, cell, start)
        trainer = Trainer(config, folder)
    except (BadValueError, UnknownNameError) as refusal:
        if not fresh:
            raise
        return make_result(suite, cell, "refused", str(refusal))
    with trainer:
        result = trainer.run()
        tried = try_tasks(trainer, suite.trials)
    return make_result(suite, cell, "finished").model_copy(
        update={
            "start_digest": start.start_digest,
            "used": cost_of(result),
            "curve": read_curve(
                read_metrics(folder / "metrics.jsonl"), suite.env(cell.env_id).eval_split
            ),
            "before": result.before[0],
            "after": result.after[0],
            "tries": tried,
            "machine": this_machine(suite.device),
        }
    )


def make_train_config(suite: Suite, cell: Cell, start: EnvResult) -> TrainConfig:
    """Make the configuration of a cell's training run.

    Raises:
        BadValueError: The recipe's settings are invalid.
        UnknownNameError: No such recipe, setting, environment or split.
    """
    column = suite.env(cell.env_id)
    row = suite.recipe(cell.recipe)
    env = EnvConfig(id=column.id, settings=dict(start.settings))
    limits = column.limits
    every = column.eval_every
    return TrainConfig(
        env=env,
        model=start.start,
        recipe=make_recipe(row.name, {**column.recipe_settings, **row.settings}, small=suite.small),
        budget=Budget(steps=limits.steps, tokens=limits.tokens, calls=limits.calls),
        evals=(evaluation_set(column, env),),
        split=column.train_split,
        seed=cell.seed,
        max_tokens=column.max_tokens,
        max_context=column.max_context,
        eval_every=every,
        eval_temperature=suite.eval_temperature,
        checkpoint_every=max(1, every),
        keep=1,
        transcripts=4,
        max_batch=suite.max_batch,
        engine_dtype=suite.dtype,
        device=suite.device,
        learner=LearnerSettings(precision=suite.dtype),
    )


def try_tasks(trainer: Trainer, trials: int) -> Tries:
    """Play every evaluation task ``trials`` times with the trained weights."""
    config, what = trainer.config, trainer.sets[0]
    sampling = Sampling(max_tokens=config.max_tokens, temperature=config.eval_temperature)
    runner = EpisodeRunner(what.env, trainer.engine, trainer.renderer, sampling, config.max_context)
    sets = [replace(what, seed=TRIAL_SEED + trial) for trial in range(trials)]

    async def play() -> list[Any]:
        return [await evaluate_model(runner, each, greedy=False) for each in sets]

    return collect_tries(what, asyncio.run(play()))


def cost_of(result: RunResult) -> Used:
    """Return the cost of a run."""
    return Used(
        tokens=result.sampled_tokens,
        calls=result.env_turns,
        steps=result.steps,
        seconds=result.seconds,
    )


def read_cost(rows: Sequence[Mapping[str, Any]]) -> Used:
    """Read the cost of an unfinished run from its metrics."""
    known = [row for row in rows if "budget/turns" in row]
    if not known:
        return Used()
    last = known[-1]
    return Used(
        tokens=int(last["budget/tokens"]),
        calls=int(last["budget/turns"]),
        steps=int(last["step"]),
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
    suite: Suite, cell: Cell, state: Any, reason: str = "", trace: str = ""
) -> CellResult:
    """Make a result without a score."""
    return CellResult(
        suite=suite.name,
        suite_version=suite.version,
        suite_digest=suite.digest,
        cell=cell,
        state=state,
        reason=reason,
        trace=trace,
    )
