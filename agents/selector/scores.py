"""How good a selector is: right verdicts, and probabilities that mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...envs.errors import BadValueError
from ...envs.paper_scores import SELECTED_ABOVE

BINS = 10


class Bin(NamedTuple):
    """Papers whose probability lies in one range.

    Attributes:
        low: Where the range begins.
        high: Where it ends; included in the last range only.
        n: Number of papers.
        said: Their mean probability; the middle of the range where there is no paper.
        true: Share of them that are answers; 0 where there is no paper.
    """

    low: float
    high: float
    n: int
    said: float
    true: float


@dataclass(frozen=True)
class SelectorScores:
    """Verdicts and calibration over pairs.

    Attributes:
        n: Number of pairs.
        positives: How many of them are answers.
        precision: Share of answers among the selected; 0 where none is selected.
        recall: Share of the answers that are selected.
        f1: Harmonic mean of both.
        accuracy: Share of right verdicts.
        ece: Expected calibration error: mean distance, over papers, between the share of answers
            in a range of probabilities and the mean probability there.
        brier: Mean squared distance between probability and label.
        bins: The reliability table, ranges of equal width.
    """

    n: int
    positives: int
    precision: float
    recall: float
    f1: float
    accuracy: float
    ece: float
    brier: float
    bins: tuple[Bin, ...]

    def figures(self) -> dict[str, float]:
        """The figures without the reliability table, by name."""
        names = ("n", "positives", "precision", "recall", "f1", "accuracy", "ece", "brier")
        return {name: getattr(self, name) for name in names}


def selector_scores(probabilities: Sequence[float], labels: Sequence[bool]) -> SelectorScores:
    """Score probabilities against labels; a paper is selected above 0.5.

    Raises:
        BadValueError: Nothing to score, unequal numbers, or no probabilities.
    """
    if not labels or len(probabilities) != len(labels):
        raise BadValueError(
            f"selector_scores: {len(probabilities)} probabilities, {len(labels)} labels; expected "
            "as many of one as of the other, and at least one."
        )
    p = np.asarray(probabilities, dtype=np.float64)
    y = np.asarray(labels, dtype=bool)
    if not ((p >= 0) & (p <= 1)).all():
        raise BadValueError("selector_scores: expected probabilities from 0 to 1.")
    chosen = p > SELECTED_ABOVE
    right = int((chosen & y).sum())
    precision = right / max(int(chosen.sum()), 1)
    recall = right / max(int(y.sum()), 1)
    bins = _bins(p, y)
    return SelectorScores(
        n=len(labels),
        positives=int(y.sum()),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if right else 0.0,
        accuracy=float((chosen == y).mean()),
        ece=sum(b.n * abs(b.true - b.said) for b in bins) / len(labels),
        brier=float(((p - y) ** 2).mean()),
        bins=bins,
    )


def _bins(p: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[Bin, ...]:
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    made = []
    for i in range(BINS):
        here = place == i
        n = int(here.sum())
        low, high = i / BINS, (i + 1) / BINS
        said = float(p[here].mean()) if n else (low + high) / 2
        made.append(Bin(low, high, n, said, float(y[here].mean()) if n else 0.0))
    return tuple(made)
