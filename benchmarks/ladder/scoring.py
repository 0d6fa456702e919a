"""Scores of rows on families, from the files of a matrix and the oracle's forecast alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from ...envs.utils.seed_tests import MIN_SEEDS, seed_interval
from ...envs.utils.statistics import Estimate
from ..matrix.cell import CellResult
from ..matrix.comparison import (
    MIN_RUNS,
    Comparison,
    Contrast,
    compare_areas,
    decide_family,
    describe_lost,
)
from ..matrix.results import Place, Results
from ..matrix.suite import Suite
from .families import CONTROL, SOLVED, Family, Size, column_edges
from .oracle.forecast import ArmForecast, FamilyForecast, Oracle
from .suites import families_of, sizes_of

OF_SEEDS = 0.8
"""Share of the seeds that were run that must solve a size: 8 of 10, 4 of 5."""


@dataclass(frozen=True)
class Rung:
    """A row at one size, or in the control.

    Attributes:
        size: The size.
        areas: Areas by seed, those of finished runs.
        solved: Number of seeds that solved it.
        seeds: Number of seeds that were run: finished ones, and failed ones, which solve nothing.
        needed: Number of seeds that have to solve it.
        area: Mean area with Student's interval over seeds; None with fewer than two.
        place: The field of the matrix: success after training, sampled and greedy, and costs.
    """

    size: Size | str
    areas: Mapping[int, float]
    solved: int
    seeds: int
    needed: int
    area: Estimate | None
    place: Place

    @property
    def passed(self) -> bool:
        """Whether enough seeds solved it."""
        return self.solved >= self.needed


@dataclass(frozen=True)
class RowScore:
    """A row on a family.

    Attributes:
        label: The row.
        rungs: One per size, rising.
        control: The control's; None where the suite has none.
        largest: Largest size that enough seeds solved; None where none was.
        middle: Comparison of the middle size's areas with the baseline's; None for the baseline
            itself, or where runs are missing.
        equal: The same in the control, with equivalence as a possible verdict.
        forecast: What the oracle saw of the row at the middle size; None where it was not played,
            or where the oracle compares with another baseline.
        meets: How the networks and the oracle go together, in words; empty where either is missing.
    """

    label: str
    rungs: tuple[Rung, ...]
    control: Rung | None
    largest: Size | None
    middle: Comparison | None
    equal: Comparison | None
    forecast: ArmForecast | None
    meets: str

    @property
    def level(self) -> float:
        """Return the share of sizes up to the largest solved one, 0 to 1."""
        sizes = [rung.size for rung in self.rungs]
        return 0.0 if self.largest is None else (sizes.index(self.largest) + 1) / len(sizes)

    @property
    def contradicts(self) -> bool:
        """Whether the networks did what the tables say cannot be, or the reverse."""
        return self.meets.startswith("contradicts")

    def rung(self, size: Size | str) -> Rung | None:
        """Return the row at a size; None where it has no run."""
        return next((rung for rung in self.rungs if rung.size == size), None)


@dataclass(frozen=True)
class FamilyScore:
    """All rows of a family.

    Attributes:
        family: The family.
        sizes: Its sizes in this suite.
        middle: The size that is compared: the family's, or the middle one of those that are there.
        baseline: Label of the baseline.
        rows: Rows with runs, the baseline first; A/A rows last.
        yardsticks: Labels of the A/A rows.
        forecast: The oracle's; None without.
    """

    family: Family
    sizes: tuple[Size, ...]
    middle: Size
    baseline: str
    rows: tuple[RowScore, ...]
    yardsticks: frozenset[str]
    forecast: FamilyForecast | None

    def row(self, label: str) -> RowScore | None:
        """Return a row, or the one that has the same gradient here; None where neither ran."""
        found = {row.label: row for row in self.rows}
        return found.get(label) or found.get(self.family.same.get(label, ""))

    def stands_in(self, label: str) -> bool:
        """Whether another row stands for this one here."""
        return label in self.family.same and not any(row.label == label for row in self.rows)


def score_ladder(results: Results, oracle: Oracle | None, baseline: str) -> list[FamilyScore]:
    """Score every family that a suite has columns of.

    Args:
        results: The matrix.
        oracle: The forecasts; None for none.
        baseline: Label of the row that the others are compared with.
    """
    return [
        score_family(results, family, oracle.find(family.name) if oracle else None, baseline)
        for family in families_of(results.suite)
    ]


def score_family(
    results: Results, family: Family, forecast: FamilyForecast | None, baseline: str
) -> FamilyScore:
    """Score the rows of a family: sizes solved, areas compared, control, oracle."""
    suite = results.suite
    sizes = sizes_of(suite, family)
    middle = family.middle if family.middle in sizes else sizes[len(sizes) // 2]
    yardsticks = frozenset(suite.yardsticks)
    columns = {column.name for column in suite.envs}
    control = family.column(CONTROL) if family.column(CONTROL) in columns else None
    labels = [
        row.label
        for row in suite.recipes
        if any(results.runs(row.label, name) for name in columns & set(_columns(family, sizes)))
    ]
    order = sorted(labels, key=lambda label: (label in yardsticks, label != baseline))
    at_middle = compare_rows(results, family.column(middle), order, baseline)
    at_control = compare_rows(results, control, order, baseline, min_effect=0.0) if control else {}
    rows = []
    for label in order:
        rungs = tuple(_rung(results, family, label, size) for size in sizes)
        passed = [size for size, rung in zip(sizes, rungs, strict=True) if rung.passed]
        usable = forecast is not None and forecast.baseline == baseline
        seen = forecast.find(label, family.column(middle)) if forecast and usable else None
        compared = at_middle.get(label)
        rows.append(
            RowScore(
                label=label,
                rungs=rungs,
                control=_rung(results, family, label, CONTROL) if control is not None else None,
                largest=passed[-1] if passed else None,
                middle=compared,
                equal=at_control.get(label),
                forecast=seen,
                meets=weigh(seen, compared),
            )
        )
    return FamilyScore(family, tuple(sizes), middle, baseline, tuple(rows), yardsticks, forecast)


def weigh(forecast: ArmForecast | None, compared: Comparison | None) -> str:
    """Say whether a row did what the oracle said it can or cannot do.

    It contradicts where networks separate what tables do not, where they go the other way, or where
    they are equivalent although tables separate. Without a decision there is no contradiction, and
    where nothing could be decided (both rows at the floor or at the ceiling, too few seeds, or a
    failed one) no agreement either.
    """
    if forecast is None or forecast.against is None or compared is None:
        return ""
    verdict = compared.verdict
    if compared.edge:
        return f"not compared: {compared.edge}"
    can = forecast.says == "can show"
    side = "above" if forecast.against.difference > 0 else "below"
    if verdict == "not decided":
        if can:
            return f"tables can show it {side}: not decided"
        return "agrees: neither shows it" if compared.tested else f"not compared: {compared.why}"
    if verdict == "equivalent":
        return f"contradicts: tables show it {side}" if can else "agrees: equal"
    if not can:
        return f"contradicts: {verdict}, though tables show nothing"
    return f"agrees: {side}" if verdict == side else f"contradicts: tables show it {side}"


def least_seeds(suite: Suite) -> int:
    """Return the number of seeds below which those that were not run count as unsolved."""
    return min(MIN_SEEDS, len(suite.seeds))


def _columns(family: Family, sizes: Sequence[Size]) -> list[str]:
    return [family.column(size) for size in (*sizes, CONTROL)]


def _rung(results: Results, family: Family, label: str, size: Size | str) -> Rung:
    runs = results.runs(label, family.column(size))
    areas = _areas(runs)
    least = SOLVED * family.ceiling(size)
    finals = [run.tries.mean("measured") for run in runs if run.tries is not None]
    place = results.place(label, family.column(size))
    seeds = len(runs) + place.states.count("failed")
    return Rung(
        size=size,
        areas=areas,
        solved=sum(final is not None and final >= least for final in finals),
        seeds=seeds,
        needed=ceil(OF_SEEDS * max(seeds, least_seeds(results.suite)) - 1e-9),
        area=seed_interval(list(areas.values())) if len(areas) >= MIN_RUNS else None,
        place=place,
    )


def _areas(runs: Sequence[CellResult]) -> dict[int, float]:
    return {run.cell.seed: run.area for run in runs if run.area is not None}


def compare_rows(
    results: Results,
    column: str,
    labels: Sequence[str],
    baseline: str,
    min_effect: float | None = None,
) -> dict[str, Comparison]:
    """Compare the areas of all rows with the baseline's in a column, with Holm over the rows.

    An A/A row is compared with the row that it repeats and is no part of the correction. Rows with
    too few seeds for a test are left out.
    """
    suite = results.suite
    edges = column_edges()[column]
    families: dict[str, dict[str, Contrast | None]] = {}
    for label in labels:
        again = label in suite.yardsticks
        other = suite.yardsticks.get(label, baseline)
        own, base = (_areas(results.runs(row, column)) for row in (label, other))
        lost = describe_lost({row: results.states(row, column) for row in (label, other)})
        contrast = compare_areas(suite, own, base, edges, paired=not again, lost=lost)
        if label != baseline and contrast is not None:
            families.setdefault(label if again else baseline, {})[label] = contrast
    found = {}
    for name, tests in families.items():
        other = suite.yardsticks.get(name, baseline)
        found |= decide_family(suite, tests, other, min_effect=min_effect)
    return found
