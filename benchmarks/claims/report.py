"""The report of claims: a self-contained HTML file, and the same in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.utils.disk_cache import make_folder
from ...envs.utils.seed_tests import EDGE, LEVEL
from ..matrix.plots import Tick, nice_ticks, short
from ..matrix.report import MATCHED, one_line, write_pages
from .catalogue import CLAIMS
from .claim import Comparison
from .outcome import CONTROL_HOLDS, NO_DIFFERENCE, Finding, Outcome
from .packing import read_outcomes

TEMPLATES = Path(__file__).parent / "templates"
SHARED = Path(__file__).parents[1] / "matrix" / "templates"
PAGES = {"claims.html": "claims.html.j2", "claims.md": "claims.md.j2"}
VERDICTS = ("reproduced", CONTROL_HOLDS, "not reproduced", NO_DIFFERENCE, "not decided")


@dataclass(frozen=True)
class Repetitions:
    """What the rule said about arms that were compared with themselves.

    Attributes:
        findings: One per repeated arm and measure, with the claim that it stands beside.
        count: Findings with a test, but for those at an end of the measure.
        at_end: Further ones, whose arms are both at the floor or the ceiling: no test of the rule.
        different: Those that were called different, in either direction.
        significant: Those with p <= .05.
        missed: Those whose interval leaves 0 out.
        allowed: Most of them that chance explains (the 97.5th percentile at 5 %).
    """

    findings: list[tuple[str, Finding]]
    count: int
    at_end: int
    different: int
    significant: int
    missed: int
    allowed: int

    @property
    def within(self) -> bool:
        """Whether chance explains what was found."""
        return max(self.different, self.significant, self.missed) <= self.allowed


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


def write_report(folder: Path, source: Path | None = None) -> list[Path]:
    """Write ``claims.html`` and ``claims.md`` from outcomes.

    Args:
        folder: Where the pages go.
        source: A folder with outcomes, or a packed file; None is ``folder``.

    Raises:
        DataError: There is no outcome, or one is damaged.
        MissingExtraError: Jinja2 is not installed.
    """
    content = gather(read_outcomes(folder if source is None else source))
    filters = {"short": short, "cell": one_line, "slug": slug}
    make_folder(folder)
    return write_pages(folder, PAGES, [TEMPLATES, SHARED], filters, content)


def gather(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Collect the variables of the templates."""
    count = Counter(outcome.shown for outcome in outcomes)
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
        "describe_test": describe_test,
        "unmatched": unmatched,
        "columns_of": columns_of,
        "repetitions": collect_repetitions(outcomes),
        "value": value,
        "expected": expected,
        "probability": probability,
    }


def make_rail(finding: Finding) -> Rail | None:
    """Make the drawing of a finding; None without an interval."""
    if finding.test is None:
        return None
    low, mean, high = finding.test.low95, finding.test.difference, finding.test.high95
    margin = finding.comparison.margin
    matters = margin + finding.comparison.min_effect
    if finding.comparison.expected == "equal":
        margin = -finding.comparison.min_effect
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
    test, unit = finding.test, finding.comparison.unit
    if test is None:
        return "–"
    low, high = value(test.low95, unit), value(test.high95, unit)
    return f"{value(test.difference, unit)} ({low} to {high})"


def describe_test(finding: Finding) -> str:
    """Format the test: p-value, seeds and what they can detect."""
    test, unit = finding.test, finding.comparison.unit
    if test is None:
        return "–"
    p = finding.adjusted if finding.adjusted is not None else test.equivalence_p
    kind = "" if finding.adjusted is not None else "equivalence "
    alone = finding.comparison.worse is None  # against 0: seeds without a partner
    pairs = f"{test.n} {'' if alone else 'pairs of ' if test.paired else 'unpaired '}seeds"
    tasks = f" × {finding.units} tasks" if finding.units > 1 else ""
    return f"{kind}{probability(p)}, {pairs}{tasks}, detectable {size(test.detectable, unit)}"


def unmatched(outcome: Outcome, comparison: Comparison) -> str:
    """Return how far the arms' tokens and optimiser steps differ; empty where they match."""
    arms = [arm for arm in outcome.arms if arm.name in comparison.arms and arm.runs]
    found = []
    for what, spent in (
        ("tokens", [arm.tokens for arm in arms]),
        ("optimiser steps", [arm.optimizer_steps for arm in arms]),
    ):
        if len(spent) > 1 and max(spent) > (1 + MATCHED) * min(spent):
            found.append(f"{what} {min(spent):,.0f} to {max(spent):,.0f}")
    return f"not matched: {', '.join(found)}" if found else ""


def columns_of(outcome: Outcome) -> list[tuple[str, str]]:
    """Return the measures that the table of arms has, with their units.

    What the comparisons are about comes first; then sampled and greedy success at the end, side by
    side, so that sharpening can be told from learning.
    """
    units = {one.measure: one.unit for one in reversed(outcome.claim.comparisons)}
    seen = {name for arm in outcome.arms for run in arm.runs for name in run.values}
    ends = [(name, "points") for name in ("success", "greedy") if "greedy" in seen]
    first = [(one.measure, units[one.measure]) for one in outcome.claim.comparisons]
    return list(dict.fromkeys([*first, *(pair for pair in ends if pair[0] not in units)]))


def collect_repetitions(outcomes: Sequence[Outcome]) -> Repetitions:
    """Collect the comparisons of arms with themselves, each arm and measure once."""
    found: dict[tuple[str, str], tuple[str, Finding]] = {}
    for outcome in outcomes:
        folders = {arm.name: arm.folder for arm in outcome.arms}
        for finding in outcome.repetition:
            key = folders.get(finding.comparison.better, ""), finding.comparison.measure
            found.setdefault(key, (outcome.claim.name, finding))
    compared = [f for _, f in found.values() if f.test is not None]
    tests = [(f.test, f.verdict) for f in compared if f.test is not None and not f.at_end]
    return Repetitions(
        findings=list(found.values()),
        count=len(tests),
        at_end=len(compared) - len(tests),
        different=sum(
            verdict == "reproduced" or (verdict == "not reproduced" and test.high95 < 0)
            for test, verdict in tests
        ),
        significant=sum(test.p_value <= LEVEL for test, _ in tests),
        missed=sum(not test.low95 <= 0 <= test.high95 for test, _ in tests),
        allowed=allowed_by_chance(len(tests)),
    )


def allowed_by_chance(count: int) -> int:
    """Return the largest number of rejections at 5 % that chance explains among ``count`` tests."""
    from scipy.stats import binom  # slow to import

    return int(binom.ppf(0.975, count, LEVEL)) if count else 0


def size(number: float, unit: str) -> str:
    """Format a difference without its sign."""
    return value(number, unit).lstrip("+")


def expected(comparison: Comparison) -> str:
    """Describe the expected result in one line."""
    than = comparison.worse or "0"
    if comparison.expected == "equal":
        bound = size(comparison.min_effect, comparison.unit)
        return f"{comparison.better} equal to {than} within {bound}"
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
