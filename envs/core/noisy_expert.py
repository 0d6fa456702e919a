"""Scripted experts with a configurable error rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from .settings import check_number


def check_mistakes(mistakes: float) -> float:
    """Return ``mistakes`` as a float if it is a probability.

    Raises:
        BadValueError: It is no probability.
    """
    return check_number("mistakes", mistakes, "expert", min=0, max=1)


class NoisyExpert:
    """A scripted expert that makes mistakes at a given rate.

    Args:
        mistakes: Probability of a plausible wrong action, as :meth:`TextEnv.expert` takes it.
        seed: Seed of the mistakes.

    Raises:
        BadValueError: ``mistakes`` is no probability.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0) -> None:
        self.mistakes = check_mistakes(mistakes)
        self._rng = np.random.default_rng(seed)

    def __call__(
        self,
        env: gym.Env[str, str],
        observation: str,  # noqa: ARG002 - an expert reads the hidden state instead
        info: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """Return the next action of the episode in ``env``."""
        return self.choose_action(env.unwrapped)

    def choose_action(self, env: Any) -> str:
        """Return the next action of the episode in ``env``, which has no wrappers."""
        raise NotImplementedError

    def draw_mistake(self) -> bool:
        """Return whether the next action is a mistake; draw nothing if ``mistakes`` is 0."""
        return bool(self.mistakes) and self._rng.random() < self.mistakes


class HastyExpert(NoisyExpert):
    """A noisy expert that may act on what was shown alone, and in some episodes wrongly throughout.

    What is shown, and what the wrong strategy is, the environment's expert says.

    Args:
        mistakes: Probability of a plausible wrong action.
        seed: Seed of the mistakes and of the haste.
        shown: Whether to act on what was shown alone.
        haste: Probability per episode of the wrong strategy.

    Raises:
        BadValueError: ``mistakes`` or ``haste`` is no probability.
    """

    def __init__(
        self, mistakes: float = 0.0, seed: int = 0, *, shown: bool = False, haste: float = 0.0
    ) -> None:
        super().__init__(mistakes, seed)
        self.shown = shown
        self.haste = check_number("haste", haste, "expert", min=0, max=1)
        self._hurries = False

    def draw_haste(self, env: Any) -> bool:
        """Return whether the episode in ``env`` is played in haste, drawn before its first action.

        Nothing is drawn where ``haste`` is 0.
        """
        if self.haste and not env.episode.steps:
            self._hurries = self._rng.random() < self.haste
        return self._hurries
