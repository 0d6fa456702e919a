"""Learning curves as pictures: of a run, and of several beside one another."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np

from ...envs.utils.untrusted_text import plain
from .metrics import evaluated_sets

INK, GREY = "#1b1f24", "#8a929c"
COLOURS = ("#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#0b7285")
STYLES = ("-", "--", ":", "-.")
"""Of the lines of further labels, where there are more than colours."""
WINDOW = 5
LINE, TITLE_LINE = 0.16, 0.19
"""Height of a line of a legend and of a title, in inches."""
SMOOTHED = f"mean over {WINDOW} steps"
TOKENS = "tokens sampled for training"
MEASURES = {"success": "rollout/success_frac", "return": "rollout/return_mean"}
BUDGETS = (("budget/tokens", TOKENS), ("budget/optimizer_steps", "optimiser steps"))


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
    :data:`WINDOW` steps, as its legend says, which samples.

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
    width = 4.5 * len(panels)
    title = _wrap_title(title, width)
    figure = Figure(figsize=(width, 3.6 + TITLE_LINE * title.count("\n")), dpi=160)
    FigureCanvasAgg(figure)
    room = _margins(figure, len(panels), title)
    for axes, (what, mean, head) in zip(
        figure.subplots(1, len(panels), gridspec_kw=room), panels, strict=True
    ):
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
        figure.suptitle(
            as_it_is(title), x=0.01, ha="left", fontsize=11, color=INK, fontweight="bold"
        )
    figure.savefig(path, pil_kwargs={"compress_level": 1})


def _wrap_title(title: str, width: float) -> str:
    """Return a title in lines that a picture so many inches wide has room for."""
    return "\n".join(textwrap.wrap(plain(title), int(9.5 * width)))


def as_it_is(text: str) -> str:
    """Return what matplotlib shows as this text.

    It would read what stands between two ``$`` as mathematics, and leave a label that begins with
    ``_`` out of the legend.
    """
    shown = plain(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _margins(figure: Any, panels: int, title: str) -> dict[str, float]:
    """Return room for labels, ``panels`` side by side: what matplotlib's layouts draw twice for."""
    width, height = figure.get_size_inches()
    left, right, between = 0.6, 0.15, 0.55  # inches
    panel = (width - left - right - between * (panels - 1)) / panels
    return {
        "left": left / width,
        "right": 1.0 - right / width,
        "bottom": 0.5 / height,
        "top": 1.0 - ((0.62 + TITLE_LINE * title.count("\n")) if title else 0.3) / height,
        "wspace": between / panel,
    }


def draw_runs(
    groups: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]],
    path: Path,
    measure: str = "success",
    title: str = "",
) -> None:
    """Draw the training of several runs in one picture, by sampled tokens and by optimiser steps.

    A run is a thin line, the mean over :data:`WINDOW` steps of its training rollouts; of several
    runs with one label the thick line is the mean, as far as all of them went. The legend has a
    line for each label, or several, below the panels.

    Args:
        groups: Lines of ``metrics.jsonl`` of each run, by label.
        path: Where the picture goes; its suffix says the format.
        measure: ``"success"`` or ``"return"``.
        title: What is compared, above all.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    key = MEASURES[measure]
    names = {
        label: f"{label} ({len(runs)} seeds)" if len(runs) > 1 else label
        for label, runs in groups.items()
    }
    names = {label: as_it_is(textwrap.fill(name, 115)) for label, name in names.items()}
    title = _wrap_title(title, 9.0)
    lines_below = sum(1 + name.count("\n") for name in names.values()) + 1
    height = 3.8 + LINE * lines_below + TITLE_LINE * title.count("\n")
    figure = Figure(figsize=(9.0, height), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    both = figure.subplots(1, 2, sharey=True)
    what = "Solved" if measure == "success" else "Return"
    for axes, (at, words) in zip(both, BUDGETS, strict=True):
        looks = cycle(product(STYLES, COLOURS))
        for (style, colour), (label, runs) in zip(looks, groups.items(), strict=False):
            lines = [line for rows in runs if (line := _smoothed(rows, at, key))]
            for line in lines if len(lines) > 1 else ():
                axes.plot(*line, color=colour, ls=style, lw=0.8, alpha=0.5, zorder=2)
            if lines:
                mean = _mean(lines)
                axes.plot(*mean, color=colour, ls=style, lw=2.0, label=names[label], zorder=3)
        _dress(axes, f"{what} in training, {SMOOTHED}", words)
        if measure == "success":
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, -0.02), min(high, 1.02))
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    several = any(len(runs) > 1 for runs in groups.values())
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower left",
        title=f"{SMOOTHED}{'; thick: the mean of the seeds' if several else ''}",
        alignment="left",
        frameon=False,
        fontsize=8,
        title_fontsize=8,
    )
    if title:
        figure.suptitle(
            as_it_is(title), x=0.01, ha="left", fontsize=11, color=INK, fontweight="bold"
        )
    figure.savefig(path)


def _mean(lines: Sequence[tuple[list[float], list[float]]]) -> tuple[list[float], list[float]]:
    """Return the mean of several lines, at all of their places that each of them spans."""
    first, last = max(at[0] for at, _ in lines), min(at[-1] for at, _ in lines)
    places = sorted({x for at, _ in lines for x in at if first <= x <= last})
    return places, np.mean([np.interp(places, *line) for line in lines], axis=0).tolist()


def _sets(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in evaluated_sets(row)))


def _training(axes: Any, rows: Sequence[Mapping[str, Any]], key: str) -> None:
    if line := _smoothed(rows, "budget/tokens", key):
        axes.plot(*line, color=GREY, lw=1.0, label=f"training rollouts, {SMOOTHED}", zorder=1)


def _smoothed(
    rows: Sequence[Mapping[str, Any]], at: str, key: str
) -> tuple[list[float], list[float]] | None:
    """Return a measure, mean over the last steps, by another one; None where there is none."""
    points = [(row[at], row[key]) for row in rows if key in row]
    if not points:
        return None
    places, values = zip(*points, strict=True)
    smooth = [
        sum(values[max(0, i - WINDOW + 1) : i + 1]) / min(i + 1, WINDOW) for i in range(len(values))
    ]
    return list(places), smooth


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
        label=as_it_is(f"{name} (n = {n}, 95 % band)"),
        zorder=3,
    )


def _dress(axes: Any, head: str, below: str = TOKENS) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_title(head, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(below, fontsize=9, color=INK)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(visible=True, axis="y", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=INK, length=0)
    axes.margins(x=0.02)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
