"""Copies of one environment stepped together, with batched calls of retrievers and tools."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..core.batched_calls import drive_together
from ..core.env import TextEnv
from ..core.episode import Info
from ..core.errors import BadValueError, EpisodeError
from ..core.registration import all_ids
from ..core.settings import check_integer

Texts = tuple[str, ...]
Bools = npt.NDArray[np.bool_]

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


class TextVectorEnv(VectorEnv[Texts, Sequence[str], npt.NDArray[Any]]):
    """A gymnasium vector environment over copies of one :class:`TextEnv`.

    Observations and actions are tuples of ``num_envs`` strings, rewards float64 ``[num_envs]``,
    infos in gymnasium's form: an array and a mask ``_key`` per key. Resets happen at the step
    after an episode's end (gymnasium's next-step mode): that step ignores the copy's action and
    returns the first observation with reward 0. They keep the split of the last :meth:`reset`.

    ``gym.make_vec(id, num_envs=8)`` makes one; the copies share the environment's read-only data.
    ``vectorization_mode="async"`` with ``vector_kwargs={"shared_memory": False}`` makes gymnasium's
    own over processes instead, with the same mode of resets, observations and infos.

    Args:
        env: The environment; it is copied, and its present episode is not used.
        num_envs: Number of copies.

    Raises:
        BadValueError: ``num_envs`` is not a positive integer, or ``env`` is wrapped.
    """

    def __init__(self, env: TextEnv[Any, Any], num_envs: int) -> None:
        check_integer("num_envs", num_envs, "TextVectorEnv", min=1)
        if not isinstance(env, TextEnv):
            raise BadValueError(
                f"TextVectorEnv: {type(env).__name__} is not a bare TextEnv; wrapped environments "
                "go into gym.make_vec(..., vectorization_mode='sync')."
            )
        self.envs: list[TextEnv[Any, Any]] = [env.fork() for _ in range(num_envs)]
        for copy in self.envs:
            copy.forget()
        self.num_envs = num_envs
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.render_mode = env.render_mode
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._observations: list[str] = []
        self._ended: Bools = np.zeros(num_envs, dtype=np.bool_)
        self._again: dict[str, Any] = {}

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Texts, dict[str, Any]]:
        """Start an episode in every copy.

        Args:
            seed: One seed per copy, or the first of consecutive ones.
            options: As :meth:`TextEnv.reset`; a list under ``task`` gives each copy its own.
                ``reset_mask`` (bool ``[num_envs]``) resets only some copies.

        Raises:
            BadValueError: A list or mask of the wrong length.
            EpisodeError: A mask at the first reset leaves copies without an episode.
        """
        seeds = self._spread("seed", seed, spread=itertools.count)
        shared = dict(options or {})
        mask = self._read_mask(shared.pop("reset_mask", None))
        tasks = self._spread("options['task']", shared.pop("task", None), spread=itertools.repeat)
        self._again = {"split": shared["split"]} if "split" in shared else {}
        if not self._observations:
            self._observations = [""] * self.num_envs
        infos: list[Info | None] = [None] * self.num_envs
        for i in np.flatnonzero(mask):
            own = shared if tasks[i] is None else {**shared, "task": tasks[i]}
            self._observations[i], infos[i] = self.envs[i].reset(seed=seeds[i], options=own)
        self._ended[mask] = False
        return tuple(self._observations), self._stack_infos(infos)

    def step(
        self, actions: Sequence[str]
    ) -> tuple[Texts, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Take one action in every copy; copies whose episode ended start the next one instead.

        Raises:
            BadValueError: Not one action per copy.
            EpisodeError: Before the first reset.
        """
        if not self._observations:
            raise EpisodeError("TextVectorEnv: no episode yet; call reset first.")
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise BadValueError(
                f"TextVectorEnv: got {len(actions)} actions"
                f"{' in one string' if isinstance(actions, str) else ''}; expected one text for "
                f"each of {self.num_envs} copies."
            )
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        infos: list[Info | None] = [None] * self.num_envs
        places = [int(i) for i in np.flatnonzero(~self._ended)]
        turns = [self.envs[i].open_step(actions[i]) for i in places]
        for i in np.flatnonzero(self._ended):
            self._observations[i], infos[i] = self.envs[i].reset(options=self._again)
        for i, taken in zip(places, drive_together(turns), strict=True):
            self._observations[i], rewards[i], terminated[i], truncated[i], infos[i] = taken
        self._ended = terminated | truncated
        return tuple(self._observations), rewards, terminated, truncated, self._stack_infos(infos)

    def render(self) -> tuple[Any, ...]:
        """Return the transcript of every copy (render mode ``"ansi"``), else None for each."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 - gymnasium's signature
        """Close every copy."""
        for env in self.envs:
            env.close()

    def _spread(self, what: str, given: Any, spread: Callable[[Any], Any]) -> list[Any]:
        """Return one value per copy: a list as it is, one value spread over all, None for none."""
        if given is None:
            return [None] * self.num_envs
        if isinstance(given, (list, tuple, np.ndarray)):
            if len(given) != self.num_envs:
                raise BadValueError(
                    f"TextVectorEnv: {what} has {len(given)} entries; expected {self.num_envs}."
                )
            return list(given)
        return list(itertools.islice(spread(given), self.num_envs))

    def _read_mask(self, given: Any) -> Bools:
        if given is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        mask = np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise BadValueError(
                f"TextVectorEnv: options['reset_mask'] is {given!r}; expected {self.num_envs} "
                "booleans, at least one of them True."
            )
        if not self._observations and not mask.all():
            raise EpisodeError("TextVectorEnv: the first reset must be of all copies.")
        return mask

    def _stack_infos(self, infos: Sequence[Info | None]) -> dict[str, Any]:
        """Return many infos in gymnasium's form, built column by column."""
        present = np.array([info is not None for info in infos], dtype=np.bool_)
        given = [(i, info) for i, info in enumerate(infos) if info is not None]
        columns: dict[str, Any] = {}
        for key, kind in _FLAT.items():
            blank = np.full(self.num_envs, None) if kind is object else np.zeros(len(present), kind)
            for i, info in given:
                blank[i] = info[key]
            columns[key], columns[f"_{key}"] = blank, present.copy()
        for key in _NESTED:
            columns[key] = self._stack_numbers([(i, info[key]) for i, info in given])
            columns[f"_{key}"] = present.copy()
        return columns

    def _stack_numbers(self, named: list[tuple[int, dict[str, float]]]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for i, numbers in named:
            for key, value in numbers.items():
                if key not in columns:
                    columns[key] = np.zeros(self.num_envs, dtype=np.float64)
                    columns[f"_{key}"] = np.zeros(self.num_envs, dtype=np.bool_)
                columns[key][i] = value
                columns[f"_{key}"][i] = True
        return columns


def make_vector(env_id: str, *, num_envs: int = 1, **settings: Any) -> TextVectorEnv:
    """Make the vector form of a registered environment; ``settings`` are those of ``gym.make``.

    Raises:
        BadValueError: The environment is not a bare :class:`TextEnv`.
    """
    env = gym.make(env_id, **settings)
    if not isinstance(env, TextEnv):
        raise BadValueError(f"{env_id}: a vector environment needs a bare TextEnv, got {env}.")
    return TextVectorEnv(env, num_envs)


def __getattr__(name: str) -> Callable[..., TextVectorEnv]:
    """Return the maker of vector environments of the id ``name``, as gymnasium asks for it."""
    if name not in all_ids(hidden=True):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(make_vector, name)
