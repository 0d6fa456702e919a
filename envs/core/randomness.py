"""Random streams of environments and episodes, made only when first used, and derived seeds.

Gymnasium seeds a generator at every seeded reset, which costs more than most resets of these
environments, and copying one costs more than a fork may; :class:`SeededEnv` therefore offers
gymnasium's seeding interface over a generator that is made only when somebody draws.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, cast

import gymnasium as gym
import numpy as np

from .errors import BadValueError

EPISODE_KEY = (1,)
"""Keeps an episode's stream apart from the stream of an environment seeded with the same number."""

_WORD = 2**32
"""Integers below it are one word of numpy's entropy."""


class EpisodeRandom:
    """A numpy generator that costs nothing to carry or to fork until its first draw.

    Seeding PCG64 takes several microseconds and copying a generator more; most episodes of most
    environments never draw. So the generator is made at the first draw, and a fork carries only its
    position.

    Args:
        seed: Non-negative seed of the stream.
        key: Spawn key: streams of one seed with different keys are independent.
    """

    __slots__ = ("_generator", "_position", "key", "seed")

    def __init__(self, seed: int, key: tuple[int, ...] = EPISODE_KEY) -> None:
        self.seed = seed
        self.key = key
        self._generator: np.random.Generator | None = None
        self._position: Any = None

    @property
    def generator(self) -> np.random.Generator:
        """The stream itself; every draw advances the episode's state."""
        if self._generator is None:
            bits = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=self.key))
            if self._position is not None:
                bits.state = self._position
            self._generator = np.random.Generator(bits)
        return self._generator

    @property
    def position(self) -> Any:
        """Where the stream stands: None before the first use, else PCG64's state."""
        if self._generator is None:
            return self._position
        return self._generator.bit_generator.state

    def fork(self) -> EpisodeRandom:
        """Return an independent copy that will draw the same numbers."""
        twin = EpisodeRandom(self.seed, self.key)
        twin._position = self.position
        return twin

    def digest(self) -> str:
        """Return text that names the stream and its position."""
        return f"{self.seed}:{self.key}:{self.position}"


class GivenRandom:
    """A generator that the caller made and set; forks copy it whole.

    Args:
        generator: The stream; its seed is unknown and reads -1, as in gymnasium.
    """

    __slots__ = ("generator", "seed")

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self.seed = -1

    def fork(self) -> GivenRandom:
        """Return an independent copy that will draw the same numbers."""
        return GivenRandom(copy.deepcopy(self.generator))


class SeededEnv(gym.Env[str, str]):
    """A gymnasium environment whose generator is lazy; otherwise it behaves as gymnasium's."""

    _stream: EpisodeRandom | GivenRandom | None = None

    def seed_stream(self, seed: Any) -> int:
        """Start the environment's generator anew.

        Args:
            seed: A non-negative integer of any integer type.

        Returns:
            The seed as a Python int.

        Raises:
            BadValueError: Anything else.
        """
        try:
            number = operator.index(seed)
        except TypeError:
            number = -1
        if number < 0:
            where = self.spec.id if self.spec is not None else type(self).__name__
            raise BadValueError(f"{where}: seed is {seed!r}; expected an integer from 0.")
        self._stream = EpisodeRandom(number, key=())
        return number

    @property
    def np_random(self) -> np.random.Generator:
        """The environment's own generator: draws tasks and the seeds of unseeded episodes."""
        if self._stream is None:
            entropy = np.random.SeedSequence().entropy
            self._stream = EpisodeRandom(cast("int", entropy), key=())
        return self._stream.generator

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._stream = GivenRandom(value)

    @property
    def np_random_seed(self) -> int:
        """The seed of :attr:`np_random`, -1 when the generator was set from outside."""
        if self._stream is None:
            _ = self.np_random
        return cast("EpisodeRandom", self._stream).seed

    @property
    def _np_random(self) -> np.random.Generator | None:  # pyright: ignore
        return None if self._stream is None else self._stream.generator


def derive_seed(*words: int) -> int:
    """Return a seed in [0, 2**31) made of several integers; neighbours get unrelated seeds."""
    entropy = [word % 2**64 for word in words]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0]) >> 1


def make_generator(*words: int) -> np.random.Generator:
    """Return a generator that several integers seed: ``Generator(PCG64(words))``, made sooner.

    Numpy takes apart every Python integer, most of the time of seeding; an array of what it would
    make of them is taken as it is.
    """
    entropy = np.array(words, dtype=np.uint32) if max(words) < _WORD else words
    return np.random.Generator(np.random.PCG64(entropy))
