"""How good a selector is: right verdicts, calibrated probabilities, and their plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...envs.core.errors import BadValueError
from ...envs.paper_crawler.scores import SELECTED_ABOVE

BINS = 10


class Bin(NamedTuple):
    """Papers whose probability lies in one range.

    Attributes:
        low: Where the range begins.
        high: Where it ends; included in the last range only.
        n: Number of papers.
        mean: Their mean probability; the middle of the range where there is no paper.
        true: Share of them that are answers; 0 where there is no paper.
    """

    low: float
    high: float
    n: int
    mean: float
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
        """Return the figures without the reliability table, by name."""
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
        ece=sum(b.n * abs(b.true - b.mean) for b in bins) / len(labels),
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
        mean = float(p[here].mean()) if n else (low + high) / 2
        made.append(Bin(low, high, n, mean, float(y[here].mean()) if n else 0.0))
    return tuple(made)


INK, GREY, BLUE, PALE = "#1b1f24", "#8a929c", "#1f6feb", "#e3e6ea"
_Z = 1.96


def draw_calibration(scores: SelectorScores, path: Path | str, title: str = "") -> None:
    """Draw a reliability diagram, with the number of papers in each range below it.

    A point per range of probabilities: mean probability across, share of answers up, with a 95 %
    interval (Wilson). On the diagonal a probability means what it says.

    Args:
        scores: What to draw.
        path: Where the picture goes.
        title: What was judged.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = _figure()
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    held = [b for b in scores.bins if b.n]
    low, high = zip(*(_wilson(b.true, b.n) for b in held), strict=True)
    mean, true = [b.mean for b in held], [b.true for b in held]
    upper.plot((0, 1), (0, 1), color=GREY, lw=1.0, ls=(0, (4, 3)), zorder=1)
    upper.vlines(mean, low, high, color=BLUE, lw=1.4, alpha=0.45, zorder=2)
    upper.plot(mean, true, color=BLUE, lw=1.6, marker="o", ms=4.5, zorder=3)
    upper.set_ylim(-0.03, 1.03)
    upper.set_ylabel("share of answers", fontsize=9, color=INK)
    upper.set_title(_figures(scores), loc="left", fontsize=8.5, color=INK, linespacing=1.5)
    lower.bar(
        [(b.low + b.high) / 2 for b in scores.bins],
        [b.n for b in scores.bins],
        width=0.88 / BINS,
        color=BLUE,
        alpha=0.8,
    )
    lower.set_ylabel("papers", fontsize=9, color=INK)
    lower.set_xlabel("probability that the paper is an answer", fontsize=9, color=INK)
    lower.set_xlim(-0.02, 1.02)
    for axes in (upper, lower):
        axes.axvline(0.5, color=PALE, lw=1.0, zorder=0)
        _dress(axes)
    if title:
        look = {"fontsize": 11, "color": INK, "fontweight": "bold"}
        figure.suptitle(title, x=0.02, ha="left", parse_math=False, **look)
    figure.savefig(path)


def _figure() -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as fault:
        from ...envs.core.errors import MissingExtraError

        raise MissingExtraError("the calibration plot", "matplotlib", "train", fault) from fault
    figure = Figure(figsize=(4.8, 5.4), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _figures(scores: SelectorScores) -> str:
    return (
        f"{scores.n:,} papers, {scores.positives:,} answers; calibration error {scores.ece:.3f}\n"
        f"precision {scores.precision:.2f}, recall {scores.recall:.2f}, F1 {scores.f1:.2f}"
    )


def _wilson(share: float, n: int) -> tuple[float, float]:
    """95 % interval of a share of ``n``."""
    z = _Z**2 / n
    middle = (share + z / 2) / (1 + z)
    half = _Z * (share * (1 - share) / n + z / (4 * n)) ** 0.5 / (1 + z)
    return middle - half, middle + half


def _dress(axes: Any) -> None:
    axes.grid(visible=True, axis="y", color=PALE, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=INK, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
