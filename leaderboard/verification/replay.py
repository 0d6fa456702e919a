"""Replay one episode of an entry and compare the hash chain of observations step by step."""

from __future__ import annotations

from typing import Any

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from ...envs.wrappers.record import extend_chain
from ..schema.entry import Episode
from ..schema.result import EpisodeResult, refused_episode
from ..schema.suite import Cell

NO_SCORE = 0.0


def replay_episode(
    env: TextEnv[Any, Any], cell: Cell, episode: Episode, max_action_chars: int
) -> EpisodeResult:
    """Replay the actions of an episode.

    Args:
        env: An environment of the cell; its state is replaced.
        cell: The suite's cell.
        episode: The entry's record; slot and seed have been checked.
        max_action_chars: Maximum length of an action.

    Raises:
        Refused: The first difference.
        BadValueError: The environment does not report the cell's metric.
    """
    if len(episode.chain) != len(episode.actions) + 1:
        raise refused_episode(
            "chain_length",
            episode.name,
            f"the chain has {len(episode.chain)} hashes; expected one more than actions.",
            expected=str(len(episode.actions) + 1),
            got=str(len(episode.chain)),
        )
    options = {"split": cell.split, "task": episode.task}
    observation, info = env.reset(seed=episode.seed, options=options)
    if info["task_id"] != episode.task_id:
        raise refused_episode(
            "unknown_task",
            episode.name,
            f"task {episode.task} of split {cell.split!r} has a different id.",
            expected=info["task_id"],
            got=episode.task_id,
        )
    chain = extend_chain("", env.instructions, observation)
    _compare(episode, 0, chain, observation)
    valid = 0
    for turn, action in enumerate(episode.actions, start=1):
        _check_action(env, episode, turn, max_action_chars)
        observation, _, _, _, info = env.step(action)
        if info["status"] == "env_error":
            raise refused_episode(
                "environment_broken",
                episode.name,
                f"the environment failed while replaying turn {turn}: {observation}",
                turn=turn,
            )
        chain = extend_chain(chain, action, observation)
        _compare(episode, turn, chain, observation)
        valid += info["valid_action"]
    _check_end(env, episode)
    return _result(env, cell, episode, info["metrics"], valid)


def _check_action(env: TextEnv[Any, Any], episode: Episode, turn: int, max_chars: int) -> None:
    action = episode.actions[turn - 1]
    if (status := env.episode.status) != "running":
        raise refused_episode(
            "action_after_end",
            episode.name,
            f"turn {turn} comes after the end of the episode ({status}).",
            turn=turn,
            expected=f"{turn - 1} actions",
            got=f"{len(episode.actions)} actions",
        )
    if len(action) > max_chars:
        raise refused_episode(
            "action_too_long",
            episode.name,
            f"the action of turn {turn} has {len(action)} characters.",
            turn=turn,
            expected=f"at most {max_chars}",
            got=str(len(action)),
        )


def _compare(episode: Episode, turn: int, chain: str, observation: str) -> None:
    if episode.chain[turn] != chain:
        where = "the start" if turn == 0 else f"turn {turn}"
        raise refused_episode(
            "observation",
            episode.name,
            f"at {where} the observation differs from the recorded one: {observation[:200]!r}",
            turn=turn,
            expected=chain,
            got=episode.chain[turn],
        )


def _check_end(env: TextEnv[Any, Any], episode: Episode) -> None:
    status = env.episode.status
    if status == "running" and episode.error is None:
        raise refused_episode(
            "unfinished",
            episode.name,
            f"the episode is still running after its {len(episode.actions)} actions, and no error "
            "explains why the agent stopped.",
            turn=len(episode.actions),
            expected="a finished episode, or the error that stopped it",
            got="running",
        )
    if status != "running" and episode.error is not None:
        raise refused_episode(
            "error_after_end",
            episode.name,
            f"states an error, but the episode ended ({status}).",
            turn=len(episode.actions),
            expected=status,
            got=episode.error,
        )


def _result(
    env: TextEnv[Any, Any],
    cell: Cell,
    episode: Episode,
    metrics: dict[str, float],
    valid: int,
) -> EpisodeResult:
    played = env.episode
    ended = episode.error is None
    return EpisodeResult(
        env=cell.key,
        task=episode.task,
        task_id=episode.task_id,
        run=episode.run,
        trial=episode.trial,
        status=played.status if episode.error is None else episode.error,
        success=played.status == "solved",
        score=_score(cell, metrics) if ended else NO_SCORE,
        return_=played.total_reward if ended else min(0.0, played.total_reward),
        turns=len(episode.actions),
        tool_calls=valid,
        metrics=dict(metrics),
    )


def _score(cell: Cell, metrics: dict[str, float]) -> float:
    value = metrics.get(cell.metric)
    if value is None or not 0.0 <= value <= 1.0:
        raise BadValueError(
            f"suite cell {cell.key}: the metric {cell.metric!r} is {value!r}; expected a metric of "
            "the environment between 0 and 1."
        )
    return float(value)
