"""Gymnasium's seeding interface over a generator that is made only when somebody draws.

Gymnasium seeds a generator at every seeded reset, which costs more than most resets of these
worlds, and copying one costs more than a fork may.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import gymnasium as gym
import numpy as np

from .errors import BadValueError
from .randomness import EpisodeRandom, GivenRandom


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
