"""The calibration plot: what a selector says against how often it is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .scores import BINS, SelectorScores

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
    said, true = [b.said for b in held], [b.true for b in held]
    upper.plot((0, 1), (0, 1), color=GREY, lw=1.0, ls=(0, (4, 3)), zorder=1)
    upper.vlines(said, low, high, color=BLUE, lw=1.4, alpha=0.45, zorder=2)
    upper.plot(said, true, color=BLUE, lw=1.6, marker="o", ms=4.5, zorder=3)
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
        figure.suptitle(title, x=0.02, ha="left", fontsize=11, color=INK, fontweight="bold")
    figure.savefig(path)


def _figure() -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as fault:
        from ...envs.errors import MissingExtraError

        raise MissingExtraError("the calibration plot", "matplotlib", "train") from fault
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
