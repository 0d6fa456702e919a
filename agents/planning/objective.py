"""What a planner maximises: the reward model's score, and further terms at search time.

``R'(x, h) = R(x, h) - l N(h) - p price(h) / scale + sum_i w_i f_i(h)``. With further terms, R is
standardised over the trajectories of the task that were tried so far, so that weights mean the same
for every reward model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_number
from .trajectory import Attempt, Trajectory

Feature = Callable[[Attempt], float]


class Scorer(Protocol):
    """A reward of whole trajectories."""

    def score(self, trajectories: Sequence[Trajectory]) -> list[float]:
        """One number per trajectory; higher is better."""
        ...


class Term(NamedTuple):
    """A weighted feature of an attempt."""

    weight: float
    feature: Feature


def length_penalty(weight: float) -> Term:
    """Takes off ``weight`` per action.

    Raises:
        BadValueError: The weight is no finite number.
    """
    check_number("weight", weight, "length penalty")
    return Term(-weight, lambda attempt: float(len(attempt.trajectory.moves)))


def price_penalty(weight: float, price: Feature, scale: float = 1.0) -> Term:
    """Takes off ``weight * price / scale``.

    Raises:
        BadValueError: ``scale`` is not positive, or the weight no finite number.
    """
    check_number("weight", weight, "price penalty")
    if not scale > 0:
        raise BadValueError(f"price penalty: scale is {scale}; expected more than 0.")
    return Term(-weight / scale, price)


def metric(name: str) -> Feature:
    """Return a metric that the environment reports of a finished episode; 0 for one that was cut.

    A metric that knows the task's verdict makes a planner an oracle; what an agent could read off
    the trajectory itself, as a price, does not.
    """

    def read(attempt: Attempt) -> float:
        if attempt.over and name not in attempt.metrics:
            raise BadValueError(
                f"planner: the environment reports no metric {name!r}; it has "
                f"{', '.join(sorted(attempt.metrics)) or 'none'}."
            )
        return float(attempt.metrics.get(name, 0.0))

    return read


@dataclass(frozen=True)
class Objective:
    """R' as a sum.

    Attributes:
        terms: What is added to R.
        standardise: Whether R is standardised (mean 0, deviation 1) over the task's trajectories
            so far; None: where there are terms.
    """

    terms: Sequence[Term] = ()
    standardise: bool | None = None

    def values(self, tried: Sequence[tuple[Attempt, float]]) -> list[float]:
        """R' of all trajectories tried, from each one's attempt and R.

        While all R are equal, standardised ones are 0.
        """
        rewards = [reward for _, reward in tried]
        if self.standardise or (self.standardise is None and self.terms):
            rewards = _standardised(rewards)
        return [
            reward + math.fsum(term.weight * term.feature(attempt) for term in self.terms)
            for (attempt, _), reward in zip(tried, rewards, strict=True)
        ]


@dataclass
class ScoredAttempts:
    """All trajectories of one task, each with its R; R' is read anew as they become more."""

    objective: Objective
    kept: list[tuple[Attempt, float]] = field(default_factory=list)
    _known: list[float] = field(default_factory=list)

    def add(self, attempt: Attempt, reward: float) -> int:
        """Keep an attempt; returns its place.

        Raises:
            BadValueError: The reward is no number.
        """
        if not math.isfinite(reward):
            raise BadValueError(
                f"planner: the reward model's score is {reward}; its weights are broken, or its "
                "number format is too small."
            )
        self.kept.append((attempt, reward))
        return len(self.kept) - 1

    def value(self, place: int) -> float:
        """R' of the attempt at ``place``, given all that were tried so far.

        Raises:
            BadValueError: It is no number.
        """
        if len(self._known) != len(self.kept):
            values = self.objective.values(self.kept)
            if not all(map(math.isfinite, values)):
                raise BadValueError(
                    f"planner: R' of the trajectories is {values}; a term of the objective gives "
                    "no finite number."
                )
            self._known = values
        return self._known[place]

    def best(self, among: Sequence[int] | None = None) -> int:
        """Return the place of the highest R', the first of equals."""
        return max(range(len(self.kept)) if among is None else among, key=self.value)


def _standardised(values: Sequence[float]) -> list[float]:
    if not values or min(values) == max(values):  # whose mean may be another number by rounding
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    return [(v - mean) / spread if spread > 0 else 0.0 for v in values]
