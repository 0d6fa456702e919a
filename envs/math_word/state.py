"""The state of an episode of MathWord."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MathState:
    """Steps of the plan that were reached, and the answer."""

    reached: tuple[int, ...] = ()  # steps of the plan whose results were written
    answer: str | None = None
