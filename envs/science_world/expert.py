"""The scripted expert: the task's solver, put into words; with mistakes on request."""

from __future__ import annotations

from typing import Any

from ..core.noisy_expert import NoisyExpert
from .engine.action_lists import list_legal_actions
from .house.state import HouseState
from .tasks.solvers.solve import LOST, plan_action

HARMLESS = ("look", "go to", "teleport to", "open", "read", "inventory", "wait1")
"""A mistake is a needless action that the task recovers from: one that begins so."""


class ScienceExpert(NoisyExpert):
    """Does what the task's solver says next, from the hidden state of the episode.

    Args:
        mistakes: Probability of another legal action instead.
        seed: Seed of the mistakes.

    Raises:
        BadValueError: ``mistakes`` is no probability.
    """

    def choose_action(self, env: Any) -> str:
        """Return the next action of the episode in ``env``."""
        house: HouseState = env.episode.state.house
        if self.draw_mistake():
            return self._wrong(house)
        return plan_action(house)

    def _wrong(self, house: HouseState) -> str:
        choices = [text for text in list_legal_actions(house) if text.startswith(HARMLESS)]
        return choices[int(self._rng.integers(len(choices)))] if choices else LOST
