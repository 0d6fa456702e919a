"""A memory of transitions that keeps rewarded ones apart, so that they are drawn more often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .features import StateActions


class Transition(NamedTuple):
    """One action.

    Attributes:
        before: Where it was taken; its only action is the one that was taken.
        reward: What came of it.
        after: What followed; None where the episode was over by the task's verdict.
    """

    before: StateActions
    reward: float
    after: StateActions | None


class RingBuffer:
    """The latest transitions, up to a number of them."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._kept: list[Transition] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, transition: Transition) -> None:
        """Remember one, in the place of the oldest where it is full."""
        if len(self._kept) < self.capacity:
            self._kept.append(transition)
        else:
            self._kept[self._next] = transition
        self._next = (self._next + 1) % self.capacity

    def draw(self, count: int, rng: np.random.Generator) -> list[Transition]:
        """Some, drawn with replacement."""
        return [self._kept[int(at)] for at in rng.integers(len(self._kept), size=count)]


class ReplayMemory:
    """Two rings: transitions with a reward above 0, and the others.

    Args:
        capacity: Transitions in all.
        priority: Share of the memory and of what is drawn that has a reward above 0.
    """

    def __init__(self, capacity: int, priority: float) -> None:
        rewarded = round(capacity * priority)
        self.priority = priority
        self.rewarded = RingBuffer(max(1, rewarded))
        self.others = RingBuffer(max(1, capacity - rewarded))

    def __len__(self) -> int:
        return len(self.rewarded) + len(self.others)

    def add(self, transition: Transition) -> None:
        """Remember one."""
        (self.rewarded if self.priority and transition.reward > 0 else self.others).add(transition)

    def draw(self, count: int, rng: np.random.Generator) -> list[Transition]:
        """Return a batch; what one ring lacks comes from the other."""
        wanted = round(count * self.priority) if len(self.rewarded) else 0
        if not len(self.others):
            wanted = count
        return self.rewarded.draw(wanted, rng) * bool(wanted) + (
            self.others.draw(count - wanted, rng) if wanted < count else []
        )
