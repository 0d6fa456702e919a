"""Coordinates of the report's plots, which the templates draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .curves import Line
from .ranking import Rank
from .results import Spread

WIDTH, HEIGHT = 360.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 10.0, 30.0
Map = Callable[[float], float]
REACHES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of the budget at which a plot may end."""
COLOURS = 5
"""Number of recipes with a colour; the others are thin and grey."""


@dataclass(frozen=True)
class Tick:
    """A mark of an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Drawn:
    """A line of a plot as SVG paths; ``colour`` 0 is grey, from 1 on the palette's."""

    recipe: str
    colour: int
    path: str
    band: str
    end: tuple[float, float]


@dataclass(frozen=True)
class Plot:
    """A plot of lines.

    Attributes:
        title: Above it.
        note: Below the title, small.
        x_label: What the horizontal axis counts.
        lines: Grey ones first, so that coloured ones lie above; then the solid one, which would
            hide an equal line of dashes.
        x_ticks: Marks below.
        y_ticks: Marks at the left.
        bands: Whether bands are drawn for coloured lines.
    """

    title: str
    note: str
    x_label: str
    lines: list[Drawn]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


def colours(ranked: Sequence[str], baseline: str) -> dict[str, int]:
    """Assign palette numbers: the baseline is always 1, then the best; 0 for all others."""
    chosen = [baseline] if baseline else []
    best = [row for row in ranked if row != baseline]
    chosen += best[: COLOURS - len(chosen)]
    return {recipe: i for i, recipe in enumerate(chosen, start=1)}


def plot(
    lines: Sequence[Line],
    palette: Mapping[str, int],
    limit: float,
    labels: tuple[str, str, str],
    *,
    percent: bool = False,
    whole: bool = False,
) -> Plot:
    """Plot lines over a budget, or over the part of it that they reach.

    Args:
        lines: Over shares of the budget.
        palette: Number of the colour of each recipe that has one.
        limit: The whole budget in the axis' unit.
        labels: Title, note, and what the horizontal axis counts.
        percent: Whether values are shares.
        whole: Whether the axis ends at the budget, however far the lines reach.
    """
    shown = [v for line in lines for v in line.mean]
    if percent and all(0 <= v <= 1 for v in shown):
        lines = [_between_shares(line) for line in lines]
    shown += [v for n in lines if palette.get(n.recipe) for v in (*n.low, *n.high)]
    marks = nice_ticks(min(shown, default=0.0), max(shown, default=1.0))
    low, high = marks[0], marks[-1]

    reached = max((line.spent[-1] for line in lines), default=1.0)
    end = 1.0 if whole else min(1.0, reached)
    reach = next(share for share in REACHES if share >= end - 1e-9)

    def x(share: float) -> float:
        return LEFT + share / reach * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    drawn = [_drawn(line, palette.get(line.recipe, 0), x, y) for line in lines]
    drawn.sort(key=lambda line: line.colour)
    title, note, x_label = labels
    return Plot(
        title=title,
        note=note,
        x_label=x_label,
        lines=drawn,
        x_ticks=[Tick(x(part * reach), short(part * reach * limit)) for part in (0.0, 0.5, 1.0)],
        y_ticks=[Tick(y(mark), label(mark, marks, percent)) for mark in marks],
    )


def nice_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return about ``about`` round numbers that enclose ``low`` and ``high``."""
    if not high - low > 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def short(number: float) -> str:
    """Format ``80000`` as ``80k``."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * size:  # 999,900 is 1M, and not 1e+03k
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


@dataclass(frozen=True)
class Whisker:
    """A mean with its interval on a line of its own, in percent of the width.

    A row with one seed has no interval: ``low`` and ``high`` are its mean.
    """

    recipe: str
    low: float
    mean: float
    high: float
    label: str


def whiskers(ranks: Sequence[Rank]) -> tuple[list[Whisker], list[Tick]]:
    """Return the mean areas with their intervals, and the axis below them."""
    spans = [_span(rank.area) for rank in ranks]
    ends = [end for span in spans for end in span]
    marks = nice_ticks(min(ends, default=0.0), max(ends, default=1.0))

    def place(value: float) -> float:
        return round(100 * (value - marks[0]) / (marks[-1] - marks[0]), 2)

    rows = [
        Whisker(
            recipe=rank.recipe,
            low=place(low),
            mean=place(rank.area.mean),
            high=place(high),
            label=f"{100 * rank.area.mean:.1f}"
            + ("" if rank.area.n == 1 else f" ({100 * low:.1f} to {100 * high:.1f})"),
        )
        for rank, (low, high) in zip(ranks, spans, strict=True)
    ]
    return rows, [Tick(place(mark), f"{100 * mark:g}") for mark in marks]


def _span(value: Spread) -> tuple[float, float]:
    if value.low95 is None or value.high95 is None:
        return value.mean, value.mean
    return value.low95, value.high95


def _between_shares(line: Line) -> Line:
    """Return a line of shares whose interval, which knows no bounds, ends at 0 and 1."""
    low, high = ([min(1.0, max(0.0, v)) for v in edge] for edge in (line.low, line.high))
    return replace(line, low=low, high=high)


def _drawn(line: Line, colour: int, x: Map, y: Map) -> Drawn:
    xs = [x(share) for share in line.spent]
    with_band = bool(colour and line.low)  # of one seed there is none
    upper = [(px, y(value)) for px, value in zip(xs, line.high, strict=with_band)]
    lower = [(px, y(value)) for px, value in zip(xs, line.low, strict=with_band)]
    points = [(px, y(value)) for px, value in zip(xs, line.mean, strict=True)]
    band = _path([*upper, *reversed(lower)]) + "Z" if with_band else ""
    return Drawn(line.recipe, colour, _path(points), band, points[-1])


def _path(points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        points = [*points, *points]  # a line of no length is a dot, one point alone is not drawn
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def label(mark: float, marks: Sequence[float], percent: bool) -> str:
    """Format a mark with as many digits as the step needs, or as a percentage."""
    if percent:
        return f"{100 * mark:g}"
    if abs(mark) >= 10_000:
        return short(mark)
    step = abs(marks[1] - marks[0])
    # as many digits as give the step exactly: 0.25 takes two
    places = next((n for n in range(6) if abs(round(step, n) - step) < 1e-9), 6)
    return f"{mark:.{places}f}"
