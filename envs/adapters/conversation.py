"""An environment as an append-only conversation, for trainers of chat models."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym

from ..core.env import TextEnv, check_action
from ..core.episode import Info
from ..core.errors import BadValueError, EnvFault, EpisodeError
from ..core.settings import check_integer
from ..core.tasks import get_default_split, get_split_size
from ..wrappers.record import RecordEpisodes

Settings = Mapping[str, Any] | str | None
"""Settings of an environment, or the same as JSON text, which every table format holds."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The environment's reply to an action.

    Attributes:
        text: Its observation.
        reward: Reward of this action.
        done: True when the episode is over.
        info: See :class:`~turngym.envs.core.episode.Info`.
    """

    text: str
    reward: float
    done: bool
    info: Info


class Conversation:
    """One environment, one episode at a time; sums rewards by their terms.

    Args:
        env_id: Registered id; ``module:id`` imports the module first.
        settings: Settings of the environment.
        where: The adapter, for messages.
        record: File that episodes are appended to, as
            :class:`~turngym.envs.wrappers.record.RecordEpisodes` writes them; None writes none.

    Attributes:
        env: The environment itself.
        terms: Named parts of the return so far.

    Raises:
        BadValueError: Not a text environment; settings that are no object; or an environment that
            opens sessions, which no conversation that only grows can hold.
    """

    def __init__(
        self,
        env_id: str,
        settings: Settings = None,
        *,
        where: str,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        self.env = make_text_env(env_id, settings, where=where)
        if self.env.sessions:
            raise BadValueError(
                f"{where}: {self.env.name} opens sessions, new contexts within an episode, "
                f"and {where} keeps one append-only conversation. Train it with turngym's own "
                "recipes, or serve it with the OpenEnv adapter, which reports the session of every "
                "observation."
            )
        self._played = self.env if record is None else RecordEpisodes(self.env, record)
        self.where = where
        self._made = {"env_id": env_id, "settings": _comparable(settings, where)}
        self.terms: dict[str, float] = {}
        self._info: Info | None = None
        self._closed = False

    def start(self, row: Mapping[str, Any]) -> str:
        """Start the episode of a row and return the complete first prompt.

        An episode that runs goes on where a start fails, with what it has earned.

        Args:
            row: ``split``, ``task`` (id or index) and ``seed``, as :func:`task_rows` makes them;
                a missing one is drawn. Other keys are the trainer's and are ignored.

        Raises:
            BadValueError: The row is of another environment (``env_id``, ``settings``).
        """
        self._check(row)
        observation, info = self._played.reset(seed=row.get("seed"), options=get_reset_options(row))
        self._info, self.terms, self._closed = cast("Info", info), {}, False
        return self.env.instructions + observation

    def _check(self, row: Mapping[str, Any]) -> None:
        for key, made in self._made.items():
            given = row.get(key)
            if given is not None and key == "settings":
                given = _comparable(given, self.where)
            if given not in (None, made):
                raise BadValueError(
                    f"{self.where}: the row's {key} is {given}, but this conversation was made "
                    f"with {made}; make one per environment."
                )

    def act(self, action: str) -> Reply:
        """Take an action, cut after the first of the environment's stop strings.

        Raises:
            EpisodeError: Before the first start, after the end, or closed.
            TypeError: The action is no text.
            EnvFault: Something that the environment needs failed; the episode has no score.
        """
        if self.info["status"] != "running":
            raise EpisodeError(f"{self.where}: the episode is over ({self.info['status']}).")
        if self._closed:  # its record is written
            raise EpisodeError(f"{self.where}: the conversation was closed; start an episode anew.")
        check_action(action, self.where)
        action = cut_at_stop(action, self.env.stop)
        observation, reward, terminated, truncated, details = self._played.step(action)
        info = self._info = cast("Info", details)
        if info["status"] == "env_error":
            raise EnvFault(f"{self.env.name}: {observation}")
        for name, value in info["reward_terms"].items():
            self.terms[name] = self.terms.get(name, 0.0) + value
        return Reply(observation, reward, terminated or truncated, info)

    async def act_beside(self, action: str) -> Reply:
        """Take an action as :meth:`act`; an environment that waits does so off the event loop."""
        if self.env.blocking:
            return await asyncio.to_thread(self.act, action)
        return self.act(action)

    def close(self) -> None:
        """Close the environment; an episode that was running is recorded as abandoned, and over."""
        self._played.close()
        self._closed = True

    @property
    def info(self) -> Info:
        """What the environment reported last.

        Raises:
            EpisodeError: Before the first start.
        """
        if self._info is None:
            raise EpisodeError(f"{self.where}: no episode yet; start one first.")
        return self._info

    @property
    def total(self) -> float:
        """The return so far."""
        return math.fsum(self.terms.values())


def make_text_env(env_id: str, settings: Settings = None, *, where: str) -> TextEnv[Any, Any]:
    """Return the bare environment of an id.

    Raises:
        BadValueError: Not a text environment, or settings that are no JSON object.
    """
    env = gym.make(env_id, **read_settings(settings, where)).unwrapped
    if not isinstance(env, TextEnv):
        raise BadValueError(f"{where}: {env_id} is not a turngym.envs.TextEnv.")
    return env


def read_settings(settings: Settings, where: str) -> dict[str, Any]:
    """Return settings as a dictionary.

    Raises:
        BadValueError: Text that is no JSON object, or no mapping.
    """
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    if not isinstance(settings, str):
        raise BadValueError(
            f"{where}: settings are {str(settings)[:60]} ({type(settings).__name__}); expected "
            "names with values, or the same as a JSON object."
        )
    try:
        read = json.loads(settings)
    except json.JSONDecodeError as error:
        raise BadValueError(f"{where}: settings {settings[:60]!r} are no JSON: {error}.") from None
    if not isinstance(read, dict):
        raise BadValueError(f"{where}: settings are {settings[:60]!r}; expected a JSON object.")
    return read


def settings_to_json(settings: Settings, where: str) -> str:
    """Return settings as JSON text, which is hashable and fits into a table.

    Raises:
        BadValueError: A value that has no JSON form.
    """
    try:
        return json.dumps(read_settings(settings, where), sort_keys=True)
    except TypeError as error:
        raise BadValueError(
            f"{where}: settings hold a value without JSON form: {error}. Pass plain values."
        ) from None


def _comparable(settings: Settings, where: str) -> str:
    """Return settings as text that is equal where rows give them back with lists for tuples."""
    return json.dumps(read_settings(settings, where), sort_keys=True, default=repr)


def get_reset_options(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of ``reset`` in a row."""
    return {key: row[key] for key in ("split", "task") if row.get(key) is not None}


def cut_at_stop(text: str, stop: tuple[str, ...]) -> str:
    """Cut ``text`` after its first stop string, which belongs to the action."""
    ends = [place + len(mark) for mark in stop if (place := text.find(mark)) >= 0]
    return text[: min(ends)] if ends else text


def task_rows(
    env_id: str,
    count: int | None = None,
    *,
    split: str | None = None,
    seed: int = 0,
    settings: Settings = None,
    where: str = "task_rows",
) -> Iterator[dict[str, Any]]:
    """Yield the first tasks of a split as flat rows, for any trainer's table.

    A row fixes its episode: all members of a group that share the row start alike.

    Args:
        env_id: Registered id.
        count: How many; None for the whole split.
        split: Train, or the first one that holds a task.
        seed: Seed of the first row; each further row takes the next.
        settings: Settings of the environment.
        where: The adapter, for messages.

    Yields:
        ``env_id``, ``settings`` (JSON), ``split``, ``task`` (its id) and ``seed``.

    Raises:
        BadValueError: More tasks than the split holds, or all of a split without end; a count
            below 1 or a seed below 0.
    """
    if count is not None:
        check_integer("count", count, where, min=1)
    check_integer("seed", seed, where, min=0)
    env = make_text_env(env_id, settings, where=where)
    split = get_default_split(env.source) if split is None else split
    size = get_split_size(env.source, split, where)
    if count is None and size is None:
        raise BadValueError(f"{where}: split {split!r} has no end; give a count.")
    if count is not None and size is not None and count > size:
        raise BadValueError(f"{where}: split {split!r} holds {size} tasks; {count} were asked for.")
    text = settings_to_json(settings, where)
    for index in range((size or 0) if count is None else count):
        yield {
            "env_id": env_id,
            "settings": text,
            "split": split,
            "task": env.source.task(split, index).id,
            "seed": seed + index,
        }
