"""The ladder's pictures as SVG coordinates: curves over sizes, and a radar per row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..matrix.curves import Line
from ..matrix.plots import COLOURS, Plot, Tick, plot
from .scoring import FamilyScore, RowScore

WIDTH, HEIGHT, RADIUS = 300.0, 250.0, 82.0
RINGS = (0.25, 0.5, 0.75, 1.0)
_SIDE = 0.3
"""Cosine above which a label lies beside the radar, not above or below it."""


@dataclass(frozen=True)
class Axis:
    """An axis of a radar: its end, its label and where the label is anchored."""

    end: tuple[float, float]
    at: tuple[float, float]
    label: str
    anchor: str


@dataclass(frozen=True)
class Corner:
    """A point of a radar's shape, of a family that was run.

    A hollow one is borrowed from the row of the same gradient.
    """

    at: tuple[float, float]
    hollow: bool
    title: str


@dataclass(frozen=True)
class Radar:
    """The scores of a row over the families.

    Attributes:
        row: Label of the row.
        note: Below its name.
        axes: One per family.
        rings: Closed paths of the levels.
        shape: Path of the row's levels, closed where it has one on every family.
        reference: The baseline's shape; empty for the baseline itself.
        corners: The shape's points.
        left_out: Families on which the row has no level, where the shape is broken.
    """

    row: str
    note: str
    axes: list[Axis]
    rings: list[str]
    shape: str
    reference: str
    corners: list[Corner]
    left_out: list[str]
    width: float = WIDTH
    height: float = HEIGHT


def size_curves(score: FamilyScore, palette: Mapping[str, int]) -> Plot | None:
    """Return the areas of a family's rows over its sizes; None without two seeds anywhere."""
    last = max(len(score.sizes) - 1, 1)
    lines = []
    for row in score.rows:
        known = [(i, rung.area) for i, rung in enumerate(row.rungs) if rung.area is not None]
        if known:
            lines.append(
                Line(
                    recipe=row.label,
                    spent=[i / last for i, _ in known],
                    mean=[area.mean for _, area in known],
                    low=[area.low95 for _, area in known],
                    high=[area.high95 for _, area in known],
                )
            )
    if not lines:
        return None
    what = score.family.setting or "updates per batch"
    labels = (score.family.name, f"area, {len(lines)} rows", what)
    made = plot(lines, palette, 1.0, labels, whole=True)
    wide = made.right - made.left
    ticks = [Tick(made.left + i / last * wide, str(size)) for i, size in enumerate(score.sizes)]
    return replace(made, x_ticks=ticks)


def family_palette(score: FamilyScore) -> dict[str, int]:
    """Give colours to the baseline and to the rows that lie farthest from it at the middle size."""
    others = [row for row in score.rows if row.middle is not None]
    others.sort(key=lambda row: -abs((row.middle and row.middle.difference) or 0.0))
    chosen = [score.baseline, *(r.label for r in others if r.label not in score.yardsticks)]
    return {label: number for number, label in enumerate(chosen[:COLOURS], start=1)}


def draw_radars(scores: Sequence[FamilyScore], labels: Sequence[str], baseline: str) -> list[Radar]:
    """Return a radar per row over the families, the baseline's shape behind it.

    A spoke's length is the share of the family's sizes up to the largest that the row solved. A row
    that was not run because another has its gradient there has that one's point, hollow; a row
    that neither ran nor has such a twin has no point there, and its shape is broken.
    """
    axes = [_axis(number, len(scores), score.family.name) for number, score in enumerate(scores)]
    rings = [
        _closed([_point(i, len(scores), level) for i in range(len(scores))]) for level in RINGS
    ]
    reference = _shape(scores, baseline)
    radars = []
    for label in labels:
        rows = [score.row(label) for score in scores]
        run = sum(row is not None and row.label == label for row in rows)
        corners = [
            Corner(
                at=_point(number, len(scores), row.level),
                hollow=score.stands_in(label),
                title=_title(score, label, row),
            )
            for number, (score, row) in enumerate(zip(scores, rows, strict=True))
            if row is not None
        ]
        radars.append(
            Radar(
                row=label,
                note=f"run on {run} of {len(scores)} families",
                axes=axes,
                rings=rings,
                shape=_shape(scores, label),
                reference="" if label == baseline else reference,
                corners=corners,
                left_out=[
                    score.family.name
                    for score, row in zip(scores, rows, strict=True)
                    if row is None
                ],
            )
        )
    return radars


def _shape(scores: Sequence[FamilyScore], label: str) -> str:
    """Return the path through a row's levels, which leaves out families without one."""
    count = len(scores)
    rows = [score.row(label) for score in scores]
    points = [row and _point(number, count, row.level) for number, row in enumerate(rows)]
    if all(points):
        return _closed([point for point in points if point])
    sides = [(points[i], points[(i + 1) % count]) for i in range(count)]
    return "".join(
        f"M{one[0]:.1f} {one[1]:.1f}L{other[0]:.1f} {other[1]:.1f}"
        for one, other in sides
        if one and other
    )


def _title(score: FamilyScore, label: str, row: RowScore) -> str:
    solved = "none" if row.largest is None else f"{row.largest}"
    via = f" (as {row.label})" if score.stands_in(label) else ""
    return f"{score.family.name}: largest size solved {solved}{via}"


def _point(number: int, count: int, level: float) -> tuple[float, float]:
    angle = 2 * math.pi * number / max(count, 1) - math.pi / 2
    reach = RADIUS * level
    return WIDTH / 2 + reach * math.cos(angle), HEIGHT / 2 + reach * math.sin(angle)


def _axis(number: int, count: int, name: str) -> Axis:
    x, y = _point(number, count, 1.13)
    side = (x - WIDTH / 2) / RADIUS
    anchor = "start" if side > _SIDE else "end" if side < -_SIDE else "middle"
    below = (y - HEIGHT / 2) / RADIUS
    return Axis(_point(number, count, 1.0), (x, y + 4 + 5 * below), name, anchor)


def _closed(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"
