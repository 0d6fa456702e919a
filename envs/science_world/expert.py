"""The scripted expert: the task's solver, put into words; with mistakes on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.episode import Step
from ..core.errors import BadValueError
from ..core.noisy_expert import HastyExpert
from .engine.action_lists import list_legal_actions
from .house.state import HouseState
from .tasks.solvers.solve import LOST, plan_action

HARMLESS = ("look", "go to", "teleport to", "open", "read", "inventory", "wait1")
"""A mistake is a needless action that the task recovers from: one that begins so."""

LOOK = "look around"
_ON_THE_WAY = ("go to", "teleport to", "open door")
_UNCOVERING = ("go to", "teleport to", "open ")
"""Behind these there is something that the reply does not show."""


class ScienceExpert(HastyExpert):
    """Does what the task's solver says next, from the hidden state of the episode.

    Args:
        mistakes: Probability of another legal action instead.
        seed: Seed of the mistakes and of the haste.
        shown: Look around in every place that it comes to, and after it has opened something,
            before it names a thing there: then its actions follow from what was shown, as far as
            it is generally known where things are and how long animals live.
        haste: Probability per episode of a wrong strategy: not to look. It needs ``shown``.

    Raises:
        BadValueError: ``mistakes`` or ``haste`` is no probability, or ``haste`` without ``shown``.
    """

    def __init__(
        self, mistakes: float = 0.0, seed: int = 0, *, shown: bool = False, haste: float = 0.0
    ) -> None:
        super().__init__(mistakes, seed, shown=shown, haste=haste)
        if haste and not shown:
            raise BadValueError(
                f"ScienceWorld expert: haste is {haste} without shown; expected 0, or shown=True: "
                "in a hurry it does not look around, which it never does without shown."
            )

    def choose_action(self, env: Any) -> str:
        """Return the next action of the episode in ``env``."""
        house: HouseState = env.episode.state.house
        steps = env.episode.steps
        hurries = self.draw_haste(env)
        if self.draw_mistake():
            return self._wrong(house)
        action = plan_action(house)
        looks = self.shown and not hurries and house.pending is None
        if looks and not action.startswith(_ON_THE_WAY) and not _has_looked(steps):
            return LOOK
        return action

    def _wrong(self, house: HouseState) -> str:
        choices = [text for text in list_legal_actions(house) if text.startswith(HARMLESS)]
        return choices[int(self._rng.integers(len(choices)))] if choices else LOST


class Looker(ScienceExpert):
    """The expert that looks around before it names a thing, see ``shown`` there.

    Args:
        mistakes: Probability of another legal action instead.
        seed: Seed of the mistakes and of the haste.
        haste: Probability per episode of not looking.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0, *, haste: float = 0.0) -> None:
        super().__init__(mistakes, seed, shown=True, haste=haste)


def _has_looked(steps: Sequence[Step]) -> bool:
    """Whether the place and what is open in it were shown since they changed."""
    for step in reversed(steps):
        if step.action.startswith(LOOK):
            return True
        if step.action.startswith(_UNCOVERING):
            return False
    return True  # the first observation shows the place
