"""Row mask: turns or paths that the policy has left, and was punished for, are not trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.checks import check_choices, check_numbers
from ..core.forest import Ids
from ..core.protocols import Floats, Loss, LossBatch, LossOut
from .policy import PolicyLoss

Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class MaskedLoss(Loss):
    """A policy loss without rows whose probability has fallen far (ARL-Arena, arXiv 2602.21534).

    A row is dropped where its mean advantage is below 0 and the mean of ``old - new``
    log-probabilities over its tokens is above ``delta``. Dropped tokens are in no sum and in no
    denominator, the KL and entropy terms included. Whether a row is dropped is decided before every
    optimiser step, with the weights of that moment, so it does not depend on micro batches.

    Degenerate cases: with one optimiser step per batch nothing has moved and nothing is dropped,
    as with ``delta=none``. Where all rows are dropped, a step goes by momentum alone.

    Attributes:
        of: The loss of what is left.
        delta: Fall of the mean log-probability in nats from which a row is dropped; none for no
            mask. ln 1.25 = .223 is ARL-Arena's default, 3e-3 its scripts'.
        unit: What a row is: a ``"turn"``, as in ARL-Arena, whose trainer has one row per turn, or
            a whole ``"path"``.
    """

    of: PolicyLoss = field(default_factory=PolicyLoss)
    delta: float | None = 3e-3
    unit: Literal["turn", "path"] = "turn"

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(self)
        if not isinstance(self.of, (PolicyLoss, type)):  # classes are the recipe's to refuse
            raise BadValueError(f"MaskedLoss.of is {self.of!r:.100}; expected a PolicyLoss().")
        if self.delta is not None and not self.delta > 0:
            raise BadValueError(f"MaskedLoss.delta is {self.delta}; expected above 0, or none.")
        if self.delta is not None and self.unit == "turn" and self.of.ratio.startswith("seq"):
            raise BadValueError(
                f"MaskedLoss: unit 'turn' would take turns out of a path whose ratio is one "
                f"({self.of.ratio!r}). Use unit='path', or ratio='turn'."
            )

    @property
    def needs(self) -> frozenset[str]:
        """Streams that the inner loss reads."""
        return self.of.needs

    @property
    def masks(self) -> bool:
        """Whether rows may be dropped."""
        return self.delta is not None

    def keeps(self, log_ratios: Floats, advantages: Floats, turns: Ids) -> Kept:
        """Return which tokens of a path are kept ``[n_act]``.

        Args:
            log_ratios: New minus old log-probabilities ``[n_act]``.
            advantages: Of its tokens ``[n_act]``.
            turns: The turn of each token ``[n_act]``.
        """
        if self.delta is None:
            return np.ones(len(log_ratios), dtype=bool)
        rows = turns if self.unit == "turn" else np.zeros(len(log_ratios), np.int64)
        _, at = np.unique(rows, return_inverse=True)
        counts = np.bincount(at)
        fall = -np.bincount(at, np.asarray(log_ratios, np.float64)) / counts
        worth = np.bincount(at, np.asarray(advantages, np.float64)) / counts
        return ~((worth < 0) & (fall > self.delta))[at]

    def __call__(self, batch: LossBatch) -> LossOut:
        """Return the inner loss; the batch's mask and counts are without what was dropped."""
        return self.of(batch)
