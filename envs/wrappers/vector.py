"""Copies of one environment stepped together, with batched calls of retrievers and tools."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..core.env import TextEnv, check_action
from ..core.errors import BadValueError, EpisodeError
from ..core.registration import all_ids
from ..core.settings import check_integer
from .vector_copies import Bools, Copies, InfoColumns, ResetOrder, stack_infos
from .vector_processes import ProcessCopies

Texts = tuple[str, ...]
_OWN = ("reset", "step", "close")
"""Methods that are called of the vector environment alone."""


class TextVectorEnv(VectorEnv[Texts, Sequence[str], npt.NDArray[Any]]):
    """A gymnasium vector environment over copies of one :class:`TextEnv`.

    Observations and actions are tuples of ``num_envs`` strings, rewards float64 ``[num_envs]``,
    infos in gymnasium's form: an array and a mask ``_key`` per key. Resets happen at the step
    after an episode's end (gymnasium's next-step mode): that step ignores the copy's action and
    returns the first observation with reward 0. They keep the split of the last :meth:`reset`.

    ``gym.make_vec(id, num_envs=8)`` makes one; the copies share the environment's read-only data.
    ``gym.make_vec(id, num_envs=64, processes=2)`` spreads them over processes of their own, with a
    message each way per step and process: the same seeds and actions give the same results. While
    a process waits for actions, it begins the episodes that the next step will begin. There the
    copies share data and batched calls with those of their process alone, an environment that
    raises leaves the processes running, and one that dies or a step that is interrupted ends them
    all. A step in which an environment raises is followed by a reset of all copies: the others have
    moved on. ``vectorization_mode="async"`` with ``vector_kwargs={"shared_memory": False}`` makes
    gymnasium's own, with a process for each copy and the same mode of resets, observations and
    infos.

    Args:
        env: The environment; it is copied, and its present episode is not used.
        num_envs: Number of copies.
        processes: Processes that hold the copies, at most ``num_envs``; 1 for this one alone.

    Raises:
        BadValueError: ``num_envs`` is not a positive integer, ``processes`` is out of range,
            ``env`` is wrapped, or it cannot be sent to another process.
        EnvFault: A process could not be started.
    """

    closed: bool = True
    """Gymnasium before 1.3 closes what it collects, also what was refused and has no copies."""

    def __init__(self, env: TextEnv[Any, Any], num_envs: int, processes: int = 1) -> None:
        check_integer("num_envs", num_envs, "TextVectorEnv", min=1)
        check_integer("processes", processes, "TextVectorEnv", min=1)
        if processes > num_envs:
            raise BadValueError(
                f"TextVectorEnv: processes is {processes}, but num_envs is {num_envs}; expected at "
                "least one copy for each process."
            )
        if not isinstance(env, TextEnv):
            raise BadValueError(
                f"TextVectorEnv: {type(env).__name__} is not a bare TextEnv; wrapped environments "
                "go into gym.make_vec(..., vectorization_mode='sync')."
            )
        self.num_envs = num_envs
        self.processes = processes
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.render_mode = env.render_mode
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        # forks: batching gives a space a generator, which would make every fork of env slower
        self.observation_space = batch_space(env.observation_space.fork(), num_envs)
        self.action_space = batch_space(env.action_space.fork(), num_envs)
        self._name = env.name
        self._begun = False
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._copies: Copies | ProcessCopies = (
            Copies(env, num_envs) if processes == 1 else ProcessCopies(env, num_envs, processes)
        )
        self.closed = False

    @property
    def envs(self) -> list[TextEnv[Any, Any]]:
        """The copies.

        Raises:
            AttributeError: They are in other processes.
        """
        if isinstance(self._copies, Copies):
            return self._copies.envs
        raise AttributeError(
            f"TextVectorEnv: the copies are in {self.processes} other processes; envs is there "
            "with processes=1 alone."
        )

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
            BadValueError: A list or mask of the wrong length, a seed that is none, or options that
                are no dictionary.
            EpisodeError: A mask at the first reset, or after a reset or step that failed, leaves
                copies without an episode; or the processes of the copies were ended.
            EnvFault: A process died.
        """
        seeds = self._spread("seed", seed, spread=_count_from)
        if not isinstance(options, Mapping | None):
            raise BadValueError(
                f"TextVectorEnv: options are {options!r:.100}; expected a dictionary, such as "
                "{'split': 'dev'}, or None."
            )
        shared = dict(options or {})
        mask = self._read_mask(shared.pop("reset_mask", None))
        tasks = self._spread("options['task']", shared.pop("task", None), spread=itertools.repeat)
        self._begun = False  # a reset that fails midway has begun some copies anew, others not
        batch = self._copies.reset(
            ResetOrder(seeds=seeds, tasks=tasks, mask=mask.tolist(), options=shared)
        )
        self._begun = True
        self._ended[mask] = False
        return tuple(batch.observations), self._stack(batch.infos)

    def step(
        self, actions: Sequence[str]
    ) -> tuple[Texts, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Take one action in every copy; copies whose episode ended start the next one instead.

        Raises:
            BadValueError: Not one action per copy.
            TypeError: An action of a copy whose episode runs is not text.
            EpisodeError: Before the first reset, after a reset or a step that failed, or the
                processes of the copies were ended.
            EnvFault: A process died.
        """
        if not self._begun:
            self._copies.check_open()
            raise EpisodeError(
                "TextVectorEnv: no episode yet, or the last reset or step failed; call reset first."
            )
        if (count := _count_ordered(actions)) != self.num_envs:
            got = f"{count} actions" if count is not None else f"{actions!r:.100} as actions"
            raise BadValueError(
                f"TextVectorEnv: got {got}; expected a list or tuple with one text for each of "
                f"{self.num_envs} copies."
            )
        given = actions.tolist() if isinstance(actions, np.ndarray) else actions
        ended = self._ended.tolist()
        taken = ["" if over else a for a, over in zip(given, ended, strict=True)]
        for action in [a for a in taken if type(a) is not str]:  # before anything moves
            check_action(action, self._name)
        self._begun = False  # a step that fails midway has moved some copies, and nobody saw it
        batch = self._copies.step(taken)
        self._begun = True
        rewards = np.array(batch.rewards, dtype=np.float64)
        terminated = np.array(batch.terminated, dtype=np.bool_)
        truncated = np.array(batch.truncated, dtype=np.bool_)
        self._ended = terminated | truncated
        infos = self._stack(batch.infos)
        return tuple(batch.observations), rewards, terminated, truncated, infos

    def _stack(self, infos: InfoColumns) -> dict[str, Any]:
        """Return infos in gymnasium's form, what an environment adds of its own by its own code."""
        stacked = stack_infos(infos, self.num_envs)
        for place, details in infos.details.items():
            stacked = self._add_info(stacked, details, place)
        return stacked

    def render(self) -> tuple[Any, ...]:
        """Return the transcript of every copy (render mode ``"ansi"``), else None for each."""
        return tuple(self._copies.render())

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return what a method gives in every copy, or the attribute's value where it is none.

        With processes, arguments and results are sent, so that what comes back are copies.

        Args:
            name: Method or attribute of the environment.
            args: Arguments of the method, the same for all copies.
            kwargs: Its arguments by name.

        Raises:
            BadValueError: ``reset``, ``step`` and ``close``, which the vector environment has
                itself; what cannot be sent to or from a process.
            AttributeError: The environment has no such attribute.
            EpisodeError: The processes of the copies were ended.
            EnvFault: A process died.
        """
        if name in _OWN:
            raise BadValueError(
                f"TextVectorEnv: call of {name!r}; expected another method of the copies. Use "
                f"{name} of the vector environment itself, which knows where episodes end."
            )
        return tuple(self._copies.call(name, args, kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every copy, as :meth:`call` does."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of the copies.

        Args:
            name: Its name.
            values: A list or tuple with a value for each copy, or one value for all.

        Raises:
            BadValueError: Not one value per copy, or values that cannot be sent to a process.
            EpisodeError: The processes of the copies were ended.
            EnvFault: A process died.
        """
        own = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        if len(own) != self.num_envs:
            raise BadValueError(
                f"TextVectorEnv: set_attr of {name!r} got {len(own)} values; expected one for each "
                f"of {self.num_envs} copies, or one that is no list or tuple for all."
            )
        self._copies.set_attr(name, own)

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 - gymnasium's signature
        """Close every copy, and end the processes of copies."""
        self._copies.close()

    def _spread(self, what: str, given: Any, spread: Callable[[Any], Any]) -> list[Any]:
        """Return one value per copy: a list as it is, one value spread over all, None for none."""
        if given is None:
            return [None] * self.num_envs
        if isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim):
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
        if not self._begun and not mask.all():
            raise EpisodeError(
                "TextVectorEnv: the first reset must be of all copies, and so must one after a "
                "reset or step that failed."
            )
        return mask


def _count_ordered(actions: Any) -> int | None:
    """Return how many actions a list has; None for what is none, such as one text or a set."""
    if isinstance(actions, np.ndarray):
        return len(actions) if actions.ndim else None
    ordered = isinstance(actions, Sequence) and not isinstance(actions, (str, bytes))
    return len(actions) if ordered else None


def _count_from(seed: Any) -> Iterator[int]:
    """Return consecutive seeds from the first one."""
    try:
        return itertools.count(operator.index(seed))
    except TypeError:
        raise BadValueError(
            f"TextVectorEnv: seed is {seed!r:.100}; expected an integer from 0, or a list with one "
            "for each copy."
        ) from None


def make_vector(
    env_id: str, *, num_envs: int = 1, processes: int = 1, **settings: Any
) -> TextVectorEnv:
    """Make the vector form of a registered environment; ``settings`` are those of ``gym.make``.

    Raises:
        BadValueError: The environment is not a bare :class:`TextEnv`, or as
            :class:`TextVectorEnv`.
    """
    env = gym.make(env_id, **settings)
    if not isinstance(env, TextEnv):
        raise BadValueError(f"{env_id}: a vector environment needs a bare TextEnv, got {env}.")
    return TextVectorEnv(env, num_envs, processes)


def __getattr__(name: str) -> Callable[..., TextVectorEnv]:
    """Return the maker of vector environments of the id ``name``, as gymnasium asks for it."""
    if name not in all_ids(hidden=True):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(make_vector, name)
