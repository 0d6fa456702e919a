"""The scripted expert: the task's solver, put into words; with mistakes on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from ..api import TextEnv
from ..erring import Erring
from .legal import legal_actions
from .physics.quiet import settle
from .tasks.solvers.solve import next_intent
from .tasks.solvers.words import answer, write
from .world import World

HARMLESS = ("look", "go to", "teleport to", "open", "read", "inventory", "wait1")
"""A mistake is a needless action that the task recovers from: one that begins so."""
LOST = "look around"


def planned(world: World) -> str:
    """What the task's solver says next, or the answer to the world's question."""
    settle(world)
    try:
        intent = next_intent(world)
    except (LookupError, StopIteration):
        # What the solver looks for is gone (eaten, burnt, drained): there is no plan left.
        return LOST
    return write(world, intent) if world.pending is None else answer(world, intent)


class ScienceExpert(Erring):
    """Does what the task's solver says next, from the hidden state of the episode.

    Args:
        mistakes: Probability of another legal action instead.
        seed: Seed of the mistakes.

    Raises:
        BadValueError: ``mistakes`` is no probability.
    """

    def __call__(
        self,
        env: gym.Env[str, str],
        observation: str,  # noqa: ARG002 - the state says more
        info: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """The next action."""
        inner = env.unwrapped
        assert isinstance(inner, TextEnv)
        world: World = inner.episode.state.world
        if self.errs():
            return self._wrong(world)
        return planned(world)

    def _wrong(self, world: World) -> str:
        choices = [text for text in legal_actions(world) if text.startswith(HARMLESS)]
        return choices[int(self._rng.integers(len(choices)))] if choices else LOST
