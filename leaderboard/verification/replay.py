"""Replays one episode of an entry and compares the chain of observations, step by step."""

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
    world: TextEnv[Any, Any], cell: Cell, episode: Episode, max_action_chars: int
) -> EpisodeResult:
    """Play the actions of an episode again.

    Args:
        world: An environment of the cell; its state is replaced.
        cell: The suite's cell.
        episode: What the entry holds; its slot and seed were checked.
        max_action_chars: Longest action that is taken.

    Raises:
        Refused: The first difference.
        BadValueError: The cell's metric is no measure of the world.
    """
    if len(episode.chain) != len(episode.actions) + 1:
        raise refused_episode(
            "chain_length",
            episode.name,
            f"the chain has {len(episode.chain)} hashes; expected one for the "
            "start and one for every action.",
            expected=str(len(episode.actions) + 1),
            got=str(len(episode.chain)),
        )
    options = {"split": cell.split, "task": episode.task}
    observation, info = world.reset(seed=episode.seed, options=options)
    if info["task_id"] != episode.task_id:
        raise refused_episode(
            "unknown_task",
            episode.name,
            f"task {episode.task} of split {cell.split!r} has another id.",
            expected=info["task_id"],
            got=episode.task_id,
        )
    chain = extend_chain("", world.instructions, observation)
    _compare(episode, 0, chain, observation)
    readable = 0
    for turn, action in enumerate(episode.actions, start=1):
        _check_action(world, episode, turn, max_action_chars)
        observation, _, _, _, info = world.step(action)
        if info["status"] == "env_error":
            raise refused_episode(
                "environment_broken",
                episode.name,
                f"the environment broke while replaying turn {turn}: {observation}",
                turn=turn,
            )
        chain = extend_chain(chain, action, observation)
        _compare(episode, turn, chain, observation)
        readable += info["valid_action"]
    _check_end(world, episode)
    return _result(world, cell, episode, info["metrics"], readable)


def _check_action(world: TextEnv[Any, Any], episode: Episode, turn: int, longest: int) -> None:
    action = episode.actions[turn - 1]
    if (status := world.episode.status) != "running":
        raise refused_episode(
            "action_after_end",
            episode.name,
            f"turn {turn} comes after the end of the episode ({status}).",
            turn=turn,
            expected=f"{turn - 1} actions",
            got=f"{len(episode.actions)} actions",
        )
    if len(action) > longest:
        raise refused_episode(
            "action_too_long",
            episode.name,
            f"the action of turn {turn} has {len(action)} characters.",
            turn=turn,
            expected=f"at most {longest}",
            got=str(len(action)),
        )


def _compare(episode: Episode, turn: int, chain: str, observation: str) -> None:
    if episode.chain[turn] != chain:
        where = "the start" if turn == 0 else f"turn {turn}"
        raise refused_episode(
            "observation",
            episode.name,
            f"at {where} the world answers otherwise than recorded. It says: {observation[:200]!r}",
            turn=turn,
            expected=chain,
            got=episode.chain[turn],
        )


def _check_end(world: TextEnv[Any, Any], episode: Episode) -> None:
    status = world.episode.status
    if status == "running" and episode.error is None:
        raise refused_episode(
            "unfinished",
            episode.name,
            f"the episode goes on after its {len(episode.actions)} actions, and no "
            "error says why the agent stopped.",
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
    world: TextEnv[Any, Any],
    cell: Cell,
    episode: Episode,
    metrics: dict[str, float],
    readable: int,
) -> EpisodeResult:
    played = world.episode
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
        tool_calls=readable,
        metrics=dict(metrics),
    )


def _score(cell: Cell, metrics: dict[str, float]) -> float:
    value = metrics.get(cell.metric)
    if value is None or not 0.0 <= value <= 1.0:
        raise BadValueError(
            f"suite cell {cell.key}: the metric {cell.metric!r} came out as {value!r}; expected a "
            "measure of the world from 0 to 1."
        )
    return float(value)
