"""Credit relative to the expected return of the task: SPO's single stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.checks import check_above_zero
from ..core.forest import Forest, are_equal
from ..core.protocols import Annotations, Credit, Credits
from .group import Returns, on_every_token


@dataclass(frozen=True, kw_only=True)
class TrackedCredit(Credit):
    """``A = whiten over paths of (R - v)``, v a tracker's value of the task (SPO, 2509.13232, 3).

    Degenerate cases: a single path, or paths that are all equally better than expected, get 0.

    Attributes:
        eps: Added to the batch's standard deviation (unbiased).
    """

    eps: float = 1e-8

    whole_returns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_above_zero(self, "eps")

    @property
    def needs(self) -> frozenset[str]:
        """The tracker's values."""
        return frozenset({"tracked_values"})

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:
        """Return one constant advantage per path, on its ``[n_act]`` action tokens."""
        values = np.array([float(v[0]) for v in annotations["tracked_values"]])
        surprise = forest.returns() - values
        return Credits(
            advantages=on_every_token(forest, self.compare(surprise)),
            metrics={"surprise_mean": float(surprise.mean()) if len(surprise) else 0.0},
        )

    def compare(self, surprise: Returns) -> Returns:
        """Whiten over the batch's paths ``[n]``."""
        if len(surprise) < 2 or are_equal(surprise):
            return np.zeros(len(surprise))
        return (surprise - surprise.mean()) / (surprise.std(ddof=1) + self.eps)
