"""How good a reward model is: pairs told apart, and margins that mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...envs.core.errors import BadValueError
from ..paper_selector.calibration import Bin, selector_scores
from .objective import Scorer
from .records import Pair


@dataclass(frozen=True)
class PairScores:
    """A reward model on pairs.

    Attributes:
        n: Number of pairs.
        accuracy: Share of pairs whose better trajectory has the higher reward; ties count half.
        loss: Mean of ``-log sigmoid(r+ - r-)``.
        centre: Mean of ``r+ + r-``.
        ece: Expected calibration error of ``sigmoid(r_1 - r_2)`` as the probability that the first
            trajectory is the better one, over both orders of every pair.
        brier: Mean squared distance between that probability and the truth.
        bins: The reliability table; it is symmetric around one half.
    """

    n: int
    accuracy: float
    loss: float
    centre: float
    ece: float
    brier: float
    bins: tuple[Bin, ...]

    def figures(self) -> dict[str, float]:
        """Return the figures without the reliability table, by name."""
        names = ("n", "accuracy", "loss", "centre", "ece", "brier")
        return {name: float(getattr(self, name)) for name in names}


def pair_scores(better: Sequence[float], worse: Sequence[float]) -> PairScores:
    """Score rewards of the better trajectories against those of the worse ones.

    Raises:
        BadValueError: Nothing to score, or unequal numbers.
    """
    if not better or len(better) != len(worse):
        raise BadValueError(
            f"pair_scores: {len(better)} better and {len(worse)} worse rewards; expected as many "
            "of one as of the other, and at least one."
        )
    plus, minus = np.asarray(better, np.float64), np.asarray(worse, np.float64)
    margin = plus - minus
    loss = np.logaddexp(0.0, -margin)
    sure = np.exp(-loss)
    both = selector_scores([*sure, *(1 - sure)], [True] * len(sure) + [False] * len(sure))
    return PairScores(
        n=len(margin),
        accuracy=float((margin > 0).mean() + (margin == 0).mean() / 2),
        loss=float(loss.mean()),
        centre=float((plus + minus).mean()),
        ece=both.ece,
        brier=both.brier,
        bins=both.bins,
    )


def evaluate_pairs(scorer: Scorer, pairs: Sequence[Pair]) -> PairScores:
    """Score a reward model on pairs that it has not seen.

    Raises:
        BadValueError: No pairs.
    """
    found = scorer.score([t for pair in pairs for t in (pair.better, pair.worse)])
    return pair_scores(found[::2], found[1::2])
