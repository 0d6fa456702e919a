"""Coordinates of the charts, which the templates draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..schema.board import Board, BoardRow

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 16, 44
SERIES = 8
"""Number of colours; further series reuse them."""


@dataclass(frozen=True)
class Mark:
    """One entry in a chart.

    Attributes:
        x: Horizontal coordinate.
        y: Coordinate of the mean.
        high: Coordinate of the interval's upper end.
        low: Coordinate of its lower end.
        row: The entry.
        runs: Coordinates of the runs' scores.
    """

    x: float
    y: float
    high: float
    low: float
    row: BoardRow
    runs: tuple[float, ...]


@dataclass(frozen=True)
class Line:
    """The entries of one name, by budget.

    Attributes:
        name: Name of the entries.
        colour: Number of the colour.
        marks: Entries from the smallest budget up.
    """

    name: str
    colour: int
    marks: tuple[Mark, ...]

    @property
    def path(self) -> str:
        """Return the points of the line as SVG."""
        return " ".join(f"{mark.x:.1f},{mark.y:.1f}" for mark in self.marks)


@dataclass(frozen=True)
class Curves:
    """Score against sampled tokens for the algorithms that share a starting model.

    Attributes:
        start: The starting model.
        lines: One per name.
        across: Ticks of the budget: coordinate and number.
        up: Ticks of the score: coordinate and percentage.
        references: Reference rows: name and coordinate.
    """

    start: str
    lines: tuple[Line, ...]
    across: tuple[tuple[float, float], ...]
    up: tuple[tuple[float, int], ...]
    references: tuple[tuple[str, float], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM
    top: int = TOP


def curves_of(board: Board, all_boards: Iterable[Board]) -> Curves | None:
    """Make the chart of a board of algorithms, with entries of the same start on other tracks."""
    track = board.track
    if track is None:
        return None
    rows: dict[str, BoardRow] = {}
    for other in all_boards:
        if other.suite == board.suite and other.track is not None:
            same = other.track.model_copy(update={"budget": track.budget}) == track
            rows.update({r.entry_id: r for r in other.rows if same and r.reference is None})
    spent = [row.used.sampled_tokens for row in rows.values() if row.used.sampled_tokens > 0]
    if not spent:
        return None
    across = _Across(min(spent), max(spent))
    names = sorted({row.name for row in rows.values()})
    lines = tuple(
        Line(name, place % SERIES, _marks(rows.values(), name, across))
        for place, name in enumerate(names)
    )
    return Curves(
        start=track.start,
        lines=tuple(line for line in lines if line.marks),
        across=tuple((across.place(tick), tick) for tick in across.ticks()),
        up=tuple((_up(tick / 100), tick) for tick in range(0, 101, 25)),
        references=_levels(board.rows),
    )


def _levels(rows: Iterable[BoardRow]) -> tuple[tuple[str, float], ...]:
    """Return the reference rows' names and heights, one label for those of one score."""
    names: dict[float, list[str]] = {}
    for row in rows:
        if row.reference:
            names.setdefault(round(row.score.mean, 2), []).append(row.reference)
    return tuple((", ".join(of), _up(score)) for score, of in names.items())


class _Across:
    """A logarithmic axis around the budgets."""

    def __init__(self, low: float, high: float) -> None:
        self._low = math.log10(low) - 0.15
        self._high = math.log10(high) + 0.15

    def place(self, tokens: float) -> float:
        share = (math.log10(tokens) - self._low) / (self._high - self._low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> Sequence[float]:
        steps = (1, 2, 5) if self._high - self._low < 3 else (1,)
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        found = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in found if self._low <= math.log10(tick) <= self._high]


def _up(share: float) -> float:
    return TOP + (1.0 - min(1.0, max(0.0, share))) * (HEIGHT - TOP - BOTTOM)


def _marks(rows: Iterable[BoardRow], name: str, across: _Across) -> tuple[Mark, ...]:
    marks = [
        Mark(
            x=across.place(row.used.sampled_tokens),
            y=_up(row.score.mean),
            high=_up(row.score.high95),
            low=_up(row.score.low95),
            row=row,
            runs=tuple(_up(run) for run in row.runs),
        )
        for row in rows
        if row.name == name and row.used.sampled_tokens > 0
    ]
    return tuple(sorted(marks, key=lambda mark: mark.x))
