"""The copies that a vector environment steps in one process, and their results as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.batched_calls import drive_together
from ..core.env import TextEnv
from ..core.episode import Info

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_FLAT: Mapping[str, Any] = {
    "task_id": object,
    "split": object,
    "dataset": object,
    "turn": np.int64,
    "status": object,
    "valid_action": np.bool_,
    "session": np.int64,
    "parent_session": object,
    "verdict": object,
}
_NESTED = ("reward_terms", "metrics")
_KNOWN = frozenset((*_FLAT, *_NESTED))


Nested = dict[tuple[str, ...], tuple[list[int], list[tuple[float, ...]]]]
"""Dictionaries of numbers by their names: the copies that have these, ascending, and the values."""


class InfoColumns(NamedTuple):
    """The infos of some copies, column by column, in plain lists that travel cheaply.

    Attributes:
        places: The copies that have an info, ascending.
        flat: One value for each of these, by key.
        nested: Under each key of numbers the dictionaries that are not empty, by their names.
        details: What an environment tells beyond that (:meth:`TextEnv.details`), by copy.
    """

    places: list[int]
    flat: dict[str, list[Any]]
    nested: dict[str, Nested]
    details: dict[int, dict[str, Any]]


class Batch(NamedTuple):
    """What a reset or a step of ``n`` copies gave; every list has ``n`` entries.

    Attributes:
        observations: The present observations.
        rewards: Rewards, 0 after a reset.
        terminated: Whether the task's verdict has fallen with this step.
        truncated: Whether a limit or a fault has ended the episode with this step.
        infos: The infos of the copies that were reset or stepped.
    """

    observations: list[str]
    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    infos: InfoColumns

    def pack(self) -> tuple[Any, ...]:
        """Return it without classes, whose pickles take longer than what they hold."""
        return (*self[:4], *self.infos)

    @classmethod
    def unpack(cls, packed: tuple[Any, ...]) -> Batch:
        """Return what :meth:`pack` was called on."""
        observations, rewards, terminated, truncated, *infos = packed
        return cls(observations, rewards, terminated, truncated, InfoColumns(*infos))


@dataclass(frozen=True, kw_only=True)
class ResetOrder:
    """What a reset is asked for.

    Attributes:
        seeds: A seed for each copy, or None.
        tasks: A task for each copy, or None.
        mask: Whether to reset each copy.
        options: The other options of :meth:`TextEnv.reset`, the same for all.
    """

    seeds: Sequence[Any]
    tasks: Sequence[Any]
    mask: Sequence[bool]
    options: Mapping[str, Any]

    def cut(self, start: int, end: int) -> ResetOrder:
        """Return the part of it that concerns the copies from ``start`` up to ``end``."""
        return ResetOrder(
            seeds=self.seeds[start:end],
            tasks=self.tasks[start:end],
            mask=self.mask[start:end],
            options=self.options,
        )


class Copies:
    """Copies of one environment, stepped together in this process.

    Args:
        env: The environment; it is copied, and its present episode is not used.
        count: Number of copies.
    """

    def __init__(self, env: TextEnv[Any, Any], count: int) -> None:
        self.envs: list[TextEnv[Any, Any]] = [env.fork() for _ in range(count)]
        for copy in self.envs:
            copy.forget()
        self._observations = [""] * count
        self._ended = [False] * count
        self._again: dict[str, Any] = {}
        self._ahead: dict[int, tuple[TextEnv[Any, Any], str, Info]] = {}

    def reset(self, order: ResetOrder) -> Batch:
        """Start an episode in the copies of the order's mask.

        Resets at an episode's end stay in its split, also those of the other copies.
        """
        self._ahead.clear()
        self._again = {"split": order.options["split"]} if "split" in order.options else {}
        infos: list[Info | None] = [None] * len(self.envs)
        for i, wanted in enumerate(order.mask):
            if wanted:
                task = order.tasks[i]
                own = order.options if task is None else {**order.options, "task": task}
                self._observations[i], infos[i] = self.envs[i].reset(
                    seed=order.seeds[i], options=own
                )
                self._ended[i] = False
        nothing = [False] * len(infos)
        rewards = [0.0] * len(infos)
        return Batch(list(self._observations), rewards, nothing, nothing, _gather_infos(infos))

    def step(self, actions: Sequence[str]) -> Batch:
        """Take one action in every copy; copies whose episode ended start the next one instead."""
        count = len(self.envs)
        rewards, terminated, truncated = [0.0] * count, [False] * count, [False] * count
        infos: list[Info | None] = [None] * count
        places = [i for i, ended in enumerate(self._ended) if not ended]
        turns = [self.envs[i].open_step(actions[i]) for i in places]
        for i, ended in enumerate(self._ended):
            if ended and i in self._ahead:
                self.envs[i], self._observations[i], infos[i] = self._ahead.pop(i)
            elif ended:
                self._observations[i], infos[i] = self.envs[i].reset(options=self._again)
        for i, taken in zip(places, drive_together(turns), strict=True):
            self._observations[i], rewards[i], terminated[i], truncated[i], infos[i] = taken
        self._ended = [a or b for a, b in zip(terminated, truncated, strict=True)]
        observations = list(self._observations)
        return Batch(observations, rewards, terminated, truncated, _gather_infos(infos))

    def begin_ahead(self, is_wanted: Callable[[], bool]) -> None:
        """Begin what the next step will begin: the next episodes of copies whose episode ended.

        Until that step nobody sees any of it, and a reset forgets it. Environments that may wait
        for something outside the process are left alone.

        Args:
            is_wanted: Asked before every episode whether to stop, since there is work to do.
        """
        for i, ended in enumerate(self._ended):
            if not ended or i in self._ahead or self.envs[i].blocking:
                continue
            if is_wanted():
                return
            with suppress(Exception):  # the step meets it again, and raises it
                twin = self.envs[i].fork_ahead()
                self._ahead[i] = twin, *twin.reset(options=self._again)

    def render(self) -> list[Any]:
        """Return the transcript of every copy (render mode ``"ansi"``), else None for each."""
        return [env.render() for env in self.envs]

    def call(self, name: str, args: Sequence[Any], settings: Mapping[str, Any]) -> list[Any]:
        """Return what the method of that name gives in every copy, or the attribute's value.

        Episodes that were begun ahead are forgotten: the method may change what they begin from.
        """
        self._ahead.clear()
        results = []
        for env in self.envs:
            found = env.get_wrapper_attr(name)
            results.append(found(*args, **settings) if callable(found) else found)
        return results

    def set_attr(self, name: str, values: Sequence[Any]) -> None:
        """Set an attribute of every copy to its own value, also for episodes begun ahead."""
        self._ahead.clear()
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def check_open(self) -> None:
        """Return at once: nothing ends copies in this process."""

    def close(self) -> None:
        """Close every copy."""
        for env in self.envs:
            env.close()


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Return the batches of successive shares of the copies as one."""
    if len(batches) == 1:
        return batches[0]
    joined = Batch([], [], [], [], InfoColumns([], {}, {key: {} for key in _NESTED}, {}))
    infos = joined.infos
    for batch in batches:
        start = len(joined.observations)
        joined.observations.extend(batch.observations)
        joined.rewards.extend(batch.rewards)
        joined.terminated.extend(batch.terminated)
        joined.truncated.extend(batch.truncated)
        infos.places.extend([start + place for place in batch.infos.places])
        infos.details.update({start + i: own for i, own in batch.infos.details.items()})
        for key, column in batch.infos.flat.items():
            infos.flat.setdefault(key, []).extend(column)
        for key, groups in batch.infos.nested.items():
            for names, (own_places, own_rows) in groups.items():
                places, rows = infos.nested[key].setdefault(names, ([], []))
                places.extend([start + place for place in own_places])
                rows.extend(own_rows)
    return joined


def stack_infos(infos: InfoColumns, num_envs: int) -> dict[str, Any]:
    """Return infos in gymnasium's form: per key an array ``[num_envs]`` and its mask ``_key``."""
    present = np.zeros(num_envs, dtype=np.bool_)
    present[infos.places] = True
    everywhere = len(infos.places) == num_envs
    stacked: dict[str, Any] = {}
    for key, kind in _FLAT.items():
        column = np.fromiter(infos.flat[key], kind, len(infos.places))
        if not everywhere:
            blank = np.full(num_envs, None) if kind is object else np.zeros(num_envs, kind)
            blank[present] = column
            column = blank
        stacked[key], stacked[f"_{key}"] = column, present.copy()
    for key in _NESTED:
        stacked[key], stacked[f"_{key}"] = (
            _stack_numbers(infos.nested[key], num_envs),
            present.copy(),
        )
    return stacked


def _stack_numbers(groups: Nested, num_envs: int) -> dict[str, Any]:
    stacked: dict[str, Any] = {}
    for names, (places, rows) in groups.items():
        given = np.zeros(num_envs, dtype=np.bool_)
        given[places] = True
        table = np.zeros((len(names), num_envs), dtype=np.float64)
        table[:, given] = np.array(rows, dtype=np.float64).T
        for name, column in zip(names, table, strict=True):
            if name in stacked:  # some copies have it beside other names
                stacked[name][given] = column[given]
                stacked[f"_{name}"] |= given
            else:
                stacked[name], stacked[f"_{name}"] = column, given.copy()
    return stacked


def _gather_infos(infos: Sequence[Info | None]) -> InfoColumns:
    given = [info for info in infos if info is not None]
    places = [i for i, info in enumerate(infos) if info is not None]
    return InfoColumns(
        places,
        {key: [info[key] for info in given] for key in _FLAT},
        {key: _gather_numbers(places, [info[key] for info in given]) for key in _NESTED},
        {
            place: {key: value for key, value in info.items() if key not in _KNOWN}
            for place, info in zip(places, given, strict=True)
            if len(info) > len(_KNOWN)
        },
    )


def _gather_numbers(places: Sequence[int], named: Sequence[Mapping[str, float]]) -> Nested:
    groups: Nested = {}
    for place, numbers in zip(places, named, strict=True):
        if numbers:
            names = tuple(numbers)
            group = groups.get(names)
            if group is None:
                group = groups[names] = [], []
            group[0].append(place)
            group[1].append(tuple(numbers.values()))
    return groups
