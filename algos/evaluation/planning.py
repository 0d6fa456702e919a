"""Evaluation of planners: the same tasks and seeds, many episodes side by side.

A planner searches in copies of the environment; its answer is then played as one ordinary
episode, and that episode is scored. An episode whose model server failed is recorded with status
``agent_error`` and is excluded from averages. An answer whose end did not fit into the budget or
the model's context is ``truncated``, which counts as failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from ...agents.engines.openai_client import EndpointError
from ...agents.planning.search import Planner, PlannerSetup, PlanResult, play, reset_env
from ...agents.scripted import text_env
from ...envs.core.errors import EnvFault
from ...envs.core.fork import fork
from ..core.checks import check_minimum
from ..core.protocols import Start
from ..rollouts.episode_runner import cut_short
from .evaluate import (
    AGENT_ERROR,
    ENV_ERROR,
    UNSCORED,
    EpisodeScore,
    EvalSet,
    Evaluation,
    Tick,
    drop_earlier,
    evaluate_side_by_side,
    recorded,
)


@dataclass(frozen=True, kw_only=True)
class Planning:
    """A planner with its models, as an evaluator.

    Attributes:
        planner: Decides on whole episodes.
        tools: Makes what one episode's planning works with.
        concurrency: Most episodes at a time.
        folder: Takes the transcripts; None writes none. ``SET.jsonl`` has every finished episode on
            a line, as :func:`~turngym.envs.wrappers.record.read_transcripts` reads it. One that was
            there before lies in ``earlier-1/``, ... until the set is played and has a score.
    """

    planner: Planner
    tools: Callable[[], PlannerSetup]
    concurrency: int = 16
    folder: Path | None = None

    def __post_init__(self) -> None:
        check_minimum(self, concurrency=1)

    async def evaluate(self, what: EvalSet, tick: Tick = lambda _: None) -> Evaluation:
        """Plan and play every task of a set once."""
        stage = recorded(what, self.folder)
        play = lambda start, _: self._episode(fork(what.env), fork(stage), start)  # noqa: E731
        found = await evaluate_side_by_side(what, play, self.concurrency, tick)
        if found.scored:
            drop_earlier(what, self.folder)
        return found

    async def _episode(
        self, copy: gym.Env[Any, Any], stage: gym.Env[Any, Any], start: Start
    ) -> EpisodeScore:
        where = (start.seed, start.split, start.task)
        task = str(start.task)
        try:
            await reset_env(copy, *where)
            task = text_env(copy).episode.task.id
            planned = await self.planner.plan(copy, self.tools(), start.seed)
            played = await play(await reset_env(stage, *where), planned)
        except EnvFault as fault:
            return _unscored(task, ENV_ERROR, str(fault))
        except EndpointError as fault:
            return _unscored(task, AGENT_ERROR, f"{type(fault).__name__}: {fault}")
        status, metrics = str(played.info["status"]), dict(played.info["metrics"])
        if not played.over:
            status, measured = cut_short(text_env(stage))
            metrics = dict(measured)
        return EpisodeScore(
            task_id=task,
            status=status,
            return_=played.total,
            tokens=planned.spent.sampled_tokens,
            metrics={} if status in UNSCORED else {**metrics, **_measures(planned)},
            why="" if played.over else "the answer has no end: budget or context left no room",
            context_full=planned.context_full and not played.over,
        )


def _measures(planned: PlanResult) -> Mapping[str, float]:
    """Return the cost of planning, and R' of the answer."""
    found = planned.spent.metrics()
    if planned.value is not None:
        found["reward_of_answer"] = planned.value
    return found


def _unscored(task: str, status: str, why: str) -> EpisodeScore:
    return EpisodeScore(task_id=task, status=status, return_=0.0, tokens=0, metrics={}, why=why)
