"""Trials of the evaluation tasks, sampled and greedy, by a model or a scripted player."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...agents.engines.base import Engine, Sampling
from ...agents.rendering.factory import Renderer
from ...agents.scripted import scripted, text_env
from ...algos.evaluation.evaluate import (
    UNSCORED,
    EpisodeScore,
    EvalSet,
    Evaluation,
    evaluate_model,
    evaluate_policy,
)
from ...algos.rollouts import EpisodeRunner
from ...algos.training.config import EnvConfig, EvalConfig
from ...envs.core.errors import BadValueError
from .cell import Tries
from .measure import RETURN, SUCCESS
from .suite import Suite, SuiteEnv

TRIAL_SEED = 1000
"""First seed of the trials, which differ from the seeds of the learning curve."""
REFERENCES = ("expert", "random", "null")


class Played(NamedTuple):
    """The trials of one model: several sampled ones of each task, and a greedy one."""

    sampled: Tries
    greedy: Tries


def evaluation_set(column: SuiteEnv, env: EnvConfig) -> EvalConfig:
    """Return the evaluation tasks of a column."""
    split = column.eval_split
    return EvalConfig(name=split, env=env, split=split, n=column.eval_tasks)


def play_trials(
    suite: Suite, column: SuiteEnv, what: EvalSet, engine: Engine, renderer: Renderer
) -> Played:
    """Play every evaluation task with the engine's weights: the suite's trials and a greedy one."""
    sampling = Sampling(max_tokens=column.max_tokens, temperature=suite.eval_temperature)
    runner = EpisodeRunner(what.env, engine, renderer, sampling, column.max_context)
    sets = [replace(what, seed=TRIAL_SEED + trial) for trial in range(suite.trials)]

    async def play() -> Played:
        drawn = [await evaluate_model(runner, each, greedy=each is sets[0]) for each in sets]
        greedy = drawn[0].greedy
        assert greedy is not None
        return Played(
            sampled=collect_tries(what, drawn, column.measure),
            greedy=collect_tries(what, [greedy], column.measure),
        )

    return asyncio.run(play())


def play_references(what: EvalSet, measure: str) -> dict[str, Tries]:
    """Play every task once with each scripted player that the environment has."""
    env = text_env(what.env)
    found = {}
    for name in REFERENCES:
        if name == "expert" and env.find_expert() is None:
            continue
        played = evaluate_policy(what, lambda seed, name=name: scripted(name, seed, env))
        found[name] = collect_tries(what, [played], measure)
    return found


def collect_tries(what: EvalSet, played: Sequence[Evaluation], measure: str) -> Tries:
    """Collect every trial of every task; None where the environment failed.

    Raises:
        BadValueError: An episode does not report the measure.
    """
    rows = [one.episodes for one in played]
    return Tries(
        tasks=[f"{what.split}/{task}" for task in what.tasks],
        solved=[[e.status == "solved" if _scored(e) else None for e in row] for row in rows],
        returns=[[e.return_ if _scored(e) else None for e in row] for row in rows],
        measured=[]
        if measure == SUCCESS
        else [[_measured(e, measure) if _scored(e) else None for e in row] for row in rows],
    )


def _scored(episode: EpisodeScore) -> bool:
    return episode.status not in UNSCORED


def _measured(episode: EpisodeScore, measure: str) -> float:
    if measure == RETURN:
        return episode.return_
    if measure not in episode.metrics:
        raise BadValueError(
            f"measure {measure!r}: the episode of task {episode.task_id} does not report it; "
            f"expected one of {', '.join(sorted({SUCCESS, RETURN, *episode.metrics}))}."
        )
    return float(episode.metrics[measure])
