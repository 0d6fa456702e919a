"""Coordinates of the charts, which the templates draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..schema.board import Board, BoardRow

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 16, 44
SERIES = 8
"""Number of colours; further series reuse them, with other marks and dashes."""
LOOKS = ("", "hollow", "dotted", "ring")
"""Of the marks and lines that have a colour, each a class of the style sheet."""
ALIKE = 0.05
"""Budgets within so many powers of ten are one: methods of one track cost the same but for a few
tokens."""
LETTERS = 12
"""Height of a line of text."""
NEAR, WIDEST = 14, 90
"""Distance of marks that would cover each other, and of those of one budget at most."""


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
        look: Which of :data:`LOOKS` it has, as others have its colour.
        marks: Entries from the smallest budget up.
    """

    name: str
    colour: int
    look: str
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
        references: Reference rows: name, coordinate, and that of the name, apart from the others.
        low: Smallest number of tokens.
        high: Largest.
        side_by_side: Whether marks were moved apart.
    """

    start: str
    lines: tuple[Line, ...]
    across: tuple[tuple[float, float], ...]
    up: tuple[tuple[float, int], ...]
    references: tuple[tuple[str, float, float], ...]
    low: float
    high: float
    side_by_side: bool
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM
    top: int = TOP

    @property
    def one_budget(self) -> bool:
        """Return whether all entries cost the same, so that no budget stands against another."""
        return _one_budget(self.low, self.high)


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
    low, high = min(spent), max(spent)
    across, alone = _Across(low, high), _one_budget(low, high)
    names = sorted({row.name for row in rows.values()})
    made = [_marks(rows.values(), name, across) for name in names]
    moved = _move_apart(made, alone)
    return Curves(
        start=track.start,
        lines=tuple(
            Line(name, place % SERIES, LOOKS[place // SERIES % len(LOOKS)], marks)
            for place, (name, marks) in enumerate(zip(names, moved, strict=True))
            if marks
        ),
        across=() if alone else tuple((across.place(tick), tick) for tick in across.ticks()),
        up=tuple((_up(tick / 100), tick) for tick in range(0, 101, 25)),
        references=_levels(board.rows),
        low=low,
        high=high,
        side_by_side=moved != made,
    )


def _one_budget(low: float, high: float) -> bool:
    return math.log10(high) - math.log10(low) < ALIKE


def _move_apart(lines: Sequence[tuple[Mark, ...]], alone: bool) -> list[tuple[Mark, ...]]:
    """Put marks that would cover each other side by side, in the order of their lines.

    Args:
        lines: The marks of each line.
        alone: Whether all have one budget, and may take the width of the chart.
    """
    places = sorted(
        ((mark.x, line, at) for line, marks in enumerate(lines) for at, mark in enumerate(marks))
    )
    groups: list[list[tuple[float, int, int]]] = []
    for place in places:
        if groups and (alone or place[0] - groups[-1][-1][0] < NEAR):
            groups[-1].append(place)
        else:
            groups.append([place])
    found = [list(marks) for marks in lines]
    for group in groups:
        middle = sum(x for x, _, _ in group) / len(group)
        room = (WIDTH - LEFT - RIGHT) / (len(group) + 1)
        step = min(WIDEST if alone else NEAR, room)
        for place, (_, line, at) in enumerate(sorted(group, key=lambda one: one[1:])):
            x = middle + (place - (len(group) - 1) / 2) * step
            found[line][at] = replace(found[line][at], x=x)
    return [tuple(marks) for marks in found]


def _levels(rows: Iterable[BoardRow]) -> tuple[tuple[str, float, float], ...]:
    """Return the reference rows' names and heights, one label for those of one score.

    Names of near ones stand above one another.
    """
    names: dict[float, list[str]] = {}
    for row in rows:
        if row.reference:
            names.setdefault(round(row.score.mean, 2), []).append(row.reference)
    scores = sorted(names)  # from the bottom of the chart up
    at: list[float] = []
    for score in scores:
        at.append(min([_up(score) - 4, *(below - LETTERS for below in at[-1:])]))
    room = [LETTERS * (len(at) - i) for i in range(len(at))]  # those above end at the top
    return tuple(
        (", ".join(names[score]), _up(score), max(above, least))
        for score, above, least in zip(scores, at, room, strict=True)
    )


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
