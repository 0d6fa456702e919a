"""The scripted player of ScienceWorld: reads the hidden state, follows its task's solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from ...errors import BadValueError
from ..parser import within_reach
from ..wording import other_end
from ..world import World
from .solvers.actor import Intent
from .solvers.solve import next_intent
from .solvers.words import answer, write

_SLIPS = (
    ("look at", 0.3),
    ("go", 0.25),
    ("pick up", 0.2),
    ("wait1", 0.15),
    ("focus", 0.1),
)
"""What a mistake is, with its share: mostly lost time, sometimes the wrong focus."""


class ScienceExpert:
    """A policy for ScienceWorld.

    Args:
        mistakes: Probability per action of a plausible wrong action instead.
        seed: Seed of the mistakes.

    Raises:
        BadValueError: ``mistakes`` is no probability.
    """

    def __init__(self, *, mistakes: float = 0.0, seed: int = 0) -> None:
        if not 0 <= mistakes <= 1:
            raise BadValueError(f"ScienceWorld expert: mistakes is {mistakes}; expected 0 to 1.")
        self.mistakes = mistakes
        self._rng = np.random.default_rng(seed)

    def __call__(
        self,
        env: gym.Env[str, str],
        observation: str,  # noqa: ARG002 - the expert reads the hidden state instead
        info: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """The next action of the episode in ``env``."""
        return self.act(env.unwrapped.episode.world)  # pyright: ignore[reportAttributeAccessIssue]

    def act(self, world: World) -> str:
        """The next action in a world."""
        intent = next_intent(world)
        if world.pending is not None:
            # Every meaning is one of its own; any of them answers a question after a mistake.
            return answer(world, intent) or "0"
        if self.mistakes and self._rng.random() < self.mistakes:
            intent = self._slip(world)
        return write(world, intent)

    def _slip(self, world: World) -> Intent:
        """Something that one might do by mistake."""
        verbs, shares = zip(*_SLIPS, strict=True)
        verb = verbs[int(self._rng.choice(len(verbs), p=shares))]
        here = world.here()
        if verb == "go":
            ends = [other_end(world, portal, here) for portal in world.portals[here]]
            things = [end for end in ends if end is not None and end in world.places.values()]
        else:
            reach = within_reach(world, terminals=False)
            things = [o for o in reach if verb != "pick up" or world.kind[o].movable]
        if verb == "wait1" or not things:
            return Intent("wait1")
        return Intent(verb, (things[int(self._rng.integers(len(things)))],))
