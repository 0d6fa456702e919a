"""Replay a transcript, action by action, and report the first difference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from ..core.env import TextEnv
from ..core.errors import BadValueError, TurngymError
from .record import RecordedStep, Transcript, extend_chain, read_transcripts


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """The result of a replay.

    Attributes:
        same: True when everything that was compared is equal.
        difference: The first difference in words; empty when there is none.
        turn: Turn of the first difference, 0 for the reset, None when there is none.
        turns: Actions that were compared. The action of a transcript that broke the environment
            is not among them: a fault outside the environment does not repeat.
    """

    same: bool
    difference: str
    turn: int | None
    turns: int


class _Difference(Exception):
    def __init__(self, turn: int, what: str, recorded: Any, played: Any) -> None:
        super().__init__(f"{what}: recorded {_shorten(recorded)}, played {_shorten(played)}")
        self.turn = turn


def replay(
    transcript: Transcript | str | os.PathLike[str], env: gym.Env[Any, Any] | None = None
) -> ReplayReport:
    """Step the recorded actions through a fresh episode and compare what comes back.

    Args:
        transcript: What to replay, or a file of transcripts: the report is that of the first
            episode that differs, or counts the turns of all.
        env: Where to replay it; made from the transcript's id and settings when None.

    Raises:
        BadValueError: ``env`` is not a text environment.
        DataError: The file does not exist, or a line is not a transcript.
    """
    if isinstance(transcript, Transcript):
        return _replay_one(transcript, env)
    turns = 0
    for one in read_transcripts(transcript):
        report = _replay_one(one, env)
        if not report.same:
            return report
        turns += report.turns
    return ReplayReport(same=True, difference="", turn=None, turns=turns)


def _replay_one(transcript: Transcript, env: gym.Env[Any, Any] | None) -> ReplayReport:
    made = env is None
    env = gym.make(transcript.env_id, **transcript.kwargs) if env is None else env
    inner = env.unwrapped
    if not isinstance(inner, TextEnv):
        raise BadValueError(f"replay: {inner} is not a TextEnv.")
    turns = 0
    try:
        _compare_start(transcript, env, inner)
        for turn, step in enumerate(transcript.steps, start=1):
            if step.status == "env_error":
                break
            _compare_step(transcript, turn, step, env)
            turns = turn
    except _Difference as difference:
        return ReplayReport(
            same=False, difference=str(difference), turn=difference.turn, turns=turns
        )
    finally:
        if made:
            env.close()
    return ReplayReport(same=True, difference="", turn=None, turns=turns)


def _compare_start(
    transcript: Transcript, env: gym.Env[Any, Any], inner: TextEnv[Any, Any]
) -> None:
    if inner.name != transcript.env_id:
        raise _Difference(0, "environment", transcript.env_id, inner.name)
    options = {"split": transcript.split, "task": transcript.task_id}
    try:
        observation, _ = env.reset(seed=transcript.seed, options=options)
    except TurngymError as error:
        raise _Difference(0, "task", transcript.task_id, error) from error
    _compare(0, "task digest", transcript.task_digest, inner.episode.task.digest)
    _compare(0, "instructions", transcript.instructions, inner.instructions)
    first = transcript.steps[0].observation if transcript.steps else transcript.observation
    _compare(0, "observation", first, observation)
    _compare(0, "chain", transcript.chain, extend_chain("", inner.instructions, observation))


def _compare_step(
    transcript: Transcript, turn: int, step: RecordedStep, env: gym.Env[Any, Any]
) -> None:
    """Take the recorded action and compare everything that it was answered with."""
    if (status := env.unwrapped.episode.status) != "running":  # pyright: ignore
        raise _Difference(turn, "status before the action", "running", status)
    observation, reward, terminated, truncated, info = env.step(step.action)
    for what, recorded, played in _pair_results(transcript, turn, step, observation, info):
        _compare(turn, what, recorded, played)
    _compare(turn, "reward", step.reward, float(reward))
    before = transcript.chain if turn == 1 else transcript.steps[turn - 2].chain
    _compare(turn, "chain", step.chain, extend_chain(before, step.action, observation))
    if (terminated or truncated) and turn == len(transcript.steps):
        _compare(turn, "metrics", dict(transcript.metrics), info["metrics"])


def _pair_results(
    transcript: Transcript, turn: int, step: RecordedStep, observation: str, info: Any
) -> Iterator[tuple[str, Any, Any]]:
    last = turn == len(transcript.steps)
    following = None if last else transcript.steps[turn]
    yield "observation", following.observation if following else transcript.observation, observation
    yield "reward terms", dict(step.terms), info["reward_terms"]
    yield "status", step.status, info["status"]
    yield "valid action", step.valid, info["valid_action"]
    if following:
        yield "session", following.session, info["session"]
    else:
        yield "status at the end", transcript.status, info["status"]


def _compare(turn: int, what: str, recorded: Any, played: Any) -> None:
    if recorded != played:
        raise _Difference(turn, what, recorded, played)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
