"""A run's learning curve as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

INK, GREY = "#1b1f24", "#8a929c"
COLOURS = ("#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#0b7285")
WINDOW = 5


def draw_curve(
    rows: Sequence[Mapping[str, Any]],
    path: Path,
    title: str = "",
    temperature: float | None = None,
) -> None:
    """Draw ``curve.png``.

    From left to right the return, the success by sampling and, where greedy decoding was evaluated
    too, the success by greedy decoding, all against tokens sampled for training. A line with its
    95 % band is an evaluation set; the thin grey line is training itself, a mean over
    :data:`WINDOW` steps, which samples.

    Args:
        rows: Lines of ``metrics.jsonl``.
        path: Where the picture goes.
        title: What was trained, above all.
        temperature: Temperature of the evaluations' sampling; None if unknown. At 0 the sampled
            panels are greedy themselves and the third is left out.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    how = "" if temperature is None else f", sampled at temperature {temperature:g}"
    if temperature == 0:
        how = ", greedy"
    panels = [("return", "return_mean", f"Return{how}")]
    panels += [("success", "success_frac", f"Solved{how}")]
    both = any(key.endswith("/greedy_success_frac") for row in rows for key in row)
    if both and temperature != 0:
        panels += [("greedy_success", "greedy_success_frac", "Solved, greedy")]
    figure = Figure(figsize=(4.5 * len(panels), 3.6), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (what, mean, head) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _training(axes, rows, f"rollout/{mean}")
        for colour, name in zip(COLOURS * 9, _sets(rows), strict=False):
            _evaluation(axes, rows, name, (what, mean), colour)
        _dress(axes, head)
        if what != "return":
            axes.set_ylim(-0.02, 1.02)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if what == "success":
            handles, labels = axes.get_legend_handles_labels()
            if handles:
                axes.legend(handles, labels, frameon=False, fontsize=8, loc="best")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK, fontweight="bold")
    figure.savefig(path)


def _sets(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [key.split("/")[1] for row in rows for key in row if key.startswith("eval/")]
    return list(dict.fromkeys(found))


def _training(axes: Any, rows: Sequence[Mapping[str, Any]], key: str) -> None:
    points = [(row["budget/tokens"], row[key]) for row in rows if key in row]
    if not points:
        return
    tokens, values = zip(*points, strict=True)
    smooth = [
        sum(values[max(0, i - WINDOW + 1) : i + 1]) / min(i + 1, WINDOW) for i in range(len(values))
    ]
    axes.plot(tokens, smooth, color=GREY, lw=1.0, label="training rollouts", zorder=1)


def _evaluation(
    axes: Any, rows: Sequence[Mapping[str, Any]], name: str, what: tuple[str, str], colour: str
) -> None:
    at = f"eval/{name}/"
    seen = [row for row in rows if at + what[1] in row]
    if not seen:
        return
    tokens = [row["budget/tokens"] for row in seen]
    low, high = ([row[f"{at}{what[0]}_{end}95"] for row in seen] for end in ("low", "high"))
    n = int(seen[-1][at + "n"])
    axes.fill_between(tokens, low, high, color=colour, alpha=0.18, lw=0, zorder=2)
    axes.plot(
        tokens,
        [row[at + what[1]] for row in seen],
        color=colour,
        lw=1.8,
        marker="o",
        ms=3.5,
        label=f"{name} (n = {n}, 95 % band)",
        zorder=3,
    )


def _dress(axes: Any, head: str) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_title(head, loc="left", fontsize=10, color=INK)
    axes.set_xlabel("tokens sampled for training", fontsize=9, color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(visible=True, axis="y", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=INK, length=0)
    axes.margins(x=0.02)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
