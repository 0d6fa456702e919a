"""Evaluation of prompting agents: the same tasks and seeds, many episodes side by side.

An episode whose server failed (it refuses, or stays silent) is recorded with status ``agent_error``
and the reason; it is excluded from averages, and the others continue. A prompt that leaves the
model no room to write ends its episode as ``truncated``, which counts as failed: a context that is
too short is the agent's own limit. Any other error ends the evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from ...agents.engines.openai_client import EndpointError
from ...agents.prompting import Agent, Limits, PromptedEpisode, TextModel
from ...agents.prompting.episode import check_dialect, check_search_env
from ...agents.scripted import text_env
from ...envs.core.errors import ContextFullError, EnvFault, EpisodeError
from ...envs.core.fork import fork
from ...envs.utils.untrusted_text import escape_json
from ..core.checks import check_minimum
from ..core.protocols import Start
from ..rollouts.episode_runner import cut_short
from .evaluate import (
    AGENT_ERROR,
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
class Prompted:
    """A prompting agent with its model, as an evaluator.

    Attributes:
        agent: Plays an episode.
        model: Writes for it.
        limits: How the model is asked.
        concurrency: Most episodes at a time.
        folder: Takes the transcripts; None writes none. Per set there are ``SET.jsonl``, every
            finished episode on a line as :func:`~turngym.envs.wrappers.record.read_transcripts`
            reads it,
            and ``SET/NUMBER.jsonl``, an episode's model calls and actions, one a line. Those that
            were there before lie in ``earlier-1/``, ... until the set is played and has a score.
    """

    agent: Agent
    model: TextModel
    limits: Limits
    concurrency: int = 16
    folder: Path | None = None

    def __post_init__(self) -> None:
        check_minimum(self, concurrency=1)
        check_dialect(self.agent.dialect, self.model)

    async def evaluate(self, what: EvalSet, tick: Tick = lambda _: None) -> Evaluation:
        """Play every task of a set once.

        Raises:
            BadValueError: The environment is not one of searching and answering, or the model
                cannot be asked so.
            EpisodeError: The agent stopped before an episode's end.
        """
        check_search_env(what.env)
        env = recorded(what, self.folder)
        play = lambda start, place: self._episode(env, start, what.name, place)  # noqa: E731
        try:
            found = await evaluate_side_by_side(what, play, self.concurrency, tick)
        finally:
            await self.model.close()
        if found.scored:
            drop_earlier(what, self.folder)
        return found

    async def _episode(
        self, prototype: gym.Env[Any, Any], start: Start, name: str, place: int
    ) -> EpisodeScore:
        options = {"split": start.split, "task": start.task}
        try:
            episode = await PromptedEpisode.open(
                fork(prototype), self.model, limits=self.limits, seed=start.seed, options=options
            )
        except EnvFault as fault:
            score = EpisodeScore(
                task_id=str(start.task), status="env_error", return_=0.0, tokens=0, metrics={}
            )
            self._write(name, place, [{"event": "end", "status": "env_error", "why": str(fault)}])
            return score
        score = await self._played(episode)
        first = {
            "event": "task",
            "agent": type(self.agent).__name__,
            "dialect": self.agent.dialect,
            "task_id": score.task_id,
            "split": start.split,
            "seed": start.seed,
            "question": episode.question,
        }
        last = {"event": "end", "status": score.status, "metrics": dict(score.metrics)}
        last["usage"] = episode.usage.metrics()
        if score.why:
            last["why"] = score.why
        self._write(name, place, [first, *episode.events, last])
        return score

    async def _played(self, episode: PromptedEpisode) -> EpisodeScore:
        task, why, full = str(episode.info["task_id"]), "", False
        metrics: Mapping[str, float] = {}
        try:
            await self.agent(episode)
            if not episode.over:
                raise EpisodeError(
                    f"task {task}: {type(self.agent).__name__} stopped before the episode's end."
                )
            status = str(episode.info["status"])
            metrics = episode.info["metrics"]
        except EnvFault as fault:
            status, why = "env_error", str(fault)
        except ContextFullError as fault:
            full, why = True, str(fault)
            status, measured = cut_short(text_env(episode.env))
            metrics = dict(measured)
        except EndpointError as fault:
            status, why = AGENT_ERROR, f"{type(fault).__name__}: {fault}"
        return EpisodeScore(
            task_id=task,
            status=status,
            return_=episode.rewards,
            tokens=episode.usage.completion_tokens,
            metrics={} if status in UNSCORED else {**metrics, **episode.usage.metrics()},
            why=why,
            context_full=full,
        )

    def _write(self, name: str, place: int, events: list[Mapping[str, Any]]) -> None:
        if self.folder is None:
            return
        file = self.folder / name / f"{place:05}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
        file.write_text(escape_json(text), encoding="utf-8")
