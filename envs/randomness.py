"""Random streams that belong to an environment or an episode, made only when first used."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

EPISODE_KEY = (1,)
"""Keeps an episode's stream apart from the stream of an environment seeded with the same number."""


class EpisodeRandom:
    """A numpy generator that costs nothing to carry or to fork until somebody draws from it.

    Seeding PCG64 takes several microseconds and copying a generator more; most episodes of most
    worlds never draw. So the generator is made at the first draw, and a fork carries only its
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
        """An independent copy that will draw the same numbers."""
        twin = EpisodeRandom(self.seed, self.key)
        twin._position = self.position
        return twin

    def digest(self) -> str:
        """Text that names the stream and its position."""
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
        """An independent copy that will draw the same numbers."""
        return GivenRandom(copy.deepcopy(self.generator))
