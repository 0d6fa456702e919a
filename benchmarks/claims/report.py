"""The report of claims: a self-contained HTML file, and the same in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.core.errors import DataError
from ..matrix.plots import Tick, nice_ticks, short
from ..matrix.report import one_line, write_pages
from .catalogue import CLAIMS
from .claim import Comparison
from .outcome import Finding, Outcome
from .run import RESULTS
from .verdicts import EDGE, LEVEL

TEMPLATES = Path(__file__).parent / "templates"
SHARED = Path(__file__).parents[1] / "matrix" / "templates"
PAGES = {"claims.html": "claims.html.j2", "claims.md": "claims.md.j2"}
VERDICTS = ("reproduced", "not reproduced", "not decided")


@dataclass(frozen=True)
class Rail:
    """Coordinates of a finding's drawing, in percent of the width.

    Attributes:
        low: Lower end of the interval.
        mean: The difference.
        high: Upper end.
        margin: Lower bound of a reproduced difference.
        matters: Smallest relevant difference.
        ticks: The axis.
    """

    low: float
    mean: float
    high: float
    margin: float
    matters: float
    ticks: list[Tick]


def write_report(folder: Path) -> list[Path]:
    """Write ``claims.html`` and ``claims.md`` from the outcomes in a folder.

    Raises:
        DataError: There is no outcome, or one is damaged.
        MissingExtraError: Jinja2 is not installed.
    """
    content = gather(read_outcomes(folder))
    filters = {"short": short, "cell": one_line, "slug": slug}
    return write_pages(folder, PAGES, [TEMPLATES, SHARED], filters, content)


def read_outcomes(folder: Path) -> list[Outcome]:
    """Read the outcomes in a folder, in the catalogue's order.

    Raises:
        DataError: There is none, or one is damaged.
    """
    found = [Outcome.read(path) for path in sorted((folder / RESULTS).glob("*.json"))]
    if not found:
        raise DataError(f"{folder} has no outcome of a claim yet; run `turngym claims` first.")
    order = list(CLAIMS)
    return sorted(
        found,
        key=lambda o: order.index(o.claim.name) if o.claim.name in CLAIMS else len(order),
    )


def gather(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Collect the variables of the templates."""
    count = Counter(outcome.verdict for outcome in outcomes)
    machines = {m.processor: m for o in outcomes if (m := o.machine) is not None}
    changed = [
        o.claim.name
        for o in outcomes
        if o.claim.name not in CLAIMS or CLAIMS[o.claim.name].digest != o.digest
    ]
    return {
        "outcomes": outcomes,
        "counts": [(verdict, count[verdict]) for verdict in VERDICTS],
        "seconds": _seconds(outcomes),
        "machines": list(machines.values()),
        "changed": changed,
        "level": LEVEL,
        "edge": EDGE,
        "maps": [],  # of the matrix's style sheet, which these pages share
        "envs": [],
        "rail": make_rail,
        "describe_difference": describe_difference,
        "value": value,
        "expected": expected,
        "probability": probability,
    }


def make_rail(finding: Finding) -> Rail | None:
    """Make the drawing of a finding; None without an interval."""
    low, mean, high = finding.low95, finding.difference, finding.high95
    if low is None or mean is None or high is None:
        return None
    margin = finding.comparison.margin
    matters = margin + finding.comparison.min_effect
    marks = nice_ticks(min(low, margin, 0.0), max(high, matters))
    first, last = marks[0], marks[-1]

    def place(at: float) -> float:
        return round(100 * (at - first) / (last - first), 2)

    unit = finding.comparison.unit
    return Rail(
        low=place(low),
        mean=place(mean),
        high=place(high),
        margin=place(margin),
        matters=place(matters),
        ticks=[Tick(place(mark), value(mark, unit)) for mark in marks],
    )


def value(number: float | None, unit: str, *, difference: bool = True) -> str:
    """Format a number in its unit: percentage points, a factor, or plain."""
    if number is None:
        return "–"
    sign = "+" if difference else ""
    if unit == "points":
        return format(100 * number, f"{sign}.1f")
    if unit == "times":
        return f"×{2**number:.2f}" if difference else f"1/{2**-number:.1f}"
    digits = 1 if abs(number) >= 10 else 3
    return format(number, f"{sign}.{digits}f")


def probability(p: float | None) -> str:
    """Format a p-value."""
    if p is None:
        return "–"
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}"


def describe_difference(finding: Finding) -> str:
    """Format difference and interval."""
    if finding.difference is None:
        return "–"
    unit = finding.comparison.unit
    low, high = value(finding.low95, unit), value(finding.high95, unit)
    return f"{value(finding.difference, unit)} ({low} to {high})"


def expected(comparison: Comparison) -> str:
    """Describe the expected result in one line."""
    than = comparison.worse or "0"
    word = "above" if comparison.higher else "below"
    line = f"{comparison.better} {word} {than}"
    if comparison.beyond:
        line += f", by more than {comparison.beyond[0]} over {comparison.beyond[1]}"
    if comparison.margin:
        line += f"; margin {value(comparison.margin, comparison.unit)}"
    return line


def slug(name: str) -> str:
    """Return a CSS class name."""
    return name.replace(" ", "-")


def _seconds(outcomes: Sequence[Outcome]) -> float:
    """Return the total time of all arms, counting shared arms once."""
    spent = {
        (arm.folder, run.seed): run.used.seconds
        for outcome in outcomes
        for arm in outcome.arms
        for run in arm.runs
    }
    return sum(spent.values())
