"""The learning rate of every row on every family, from the results of a suite that tries rates.

Its seeds count nowhere else, and the rule is that of every search
(:class:`~turngym.benchmarks.matrix.suite.RateSearch`). Here the trials are cells of a suite of
their own, because both forms of the ladder and all sizes of a family share what they find, which
:mod:`~turngym.benchmarks.ladder.families` holds as data. ``ladder-edge-rates`` goes on where the
largest area lies at an end of the grid, by the same rule against the rate chosen so far.

``ladder-stale-grid`` has all rates of a row as rows, and :func:`at_chosen_rates` chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ...envs.core.errors import BadValueError
from ..matrix.cell import Used
from ..matrix.results import Results
from ..matrix.suite import Suite
from .families import FAMILIES
from .scoring import FamilyScore
from .stale_suites import (
    CHOOSING,
    COMPARING,
    GRID_RATES,
    LADDER_STALE_GRID,
    STALE,
    STALE_LOSSES,
    grid_label,
)
from .suites import (
    AGAIN,
    HIGHER,
    LADDER_EDGE_RATES,
    LADDER_RATES,
    LOWER,
    RATE_SEARCH,
    rate_column,
    search_of,
)

_SEARCHES = (LADDER_RATES, LADDER_EDGE_RATES)
_SCALES = (*RATE_SEARCH.scales, *LOWER, *HIGHER)


@dataclass(frozen=True)
class ChosenRate:
    """The learning rate of a row on a family.

    Attributes:
        family: Name of the family.
        row: Label of the row.
        own: The family's rate when the search was made.
        scale: The chosen multiple of it.
        first: The multiple that was chosen among those of ``ladder-rates``.
        areas: Areas by tried multiple, one per search seed.
    """

    family: str
    row: str
    own: float
    scale: float
    first: float
    areas: Mapping[float, tuple[float, ...]]

    @property
    def rate(self) -> float:
        """Return the chosen rate."""
        return self.scale * self.own

    @property
    def changed(self) -> bool:
        """Whether it is another rate than the family's."""
        return self.scale != 1

    @property
    def moved(self) -> bool:
        """Whether it lies beyond the multiples of ``ladder-rates``."""
        return self.scale != self.first

    @property
    def best(self) -> float:
        """Return the rate of the largest mean area, however small its lead."""
        return self.own * max(self.areas, key=lambda scale: sum(self.areas[scale]))

    @property
    def end(self) -> Literal["low", "high", ""]:
        """Return at which end of the tried rates the largest mean area is; empty within them."""
        best = max(self.areas, key=lambda scale: sum(self.areas[scale]))
        return "low" if best == min(self.areas) else "high" if best == max(self.areas) else ""


def choose_rates(results: Results) -> list[ChosenRate]:
    """Choose the rates of all rows that were tried with all seeds at all rates.

    Args:
        results: Results of the suite ``ladder-rates`` or ``ladder-edge-rates``.

    Raises:
        BadValueError: They are of another suite.
    """
    if not tries_rates(results.suite):
        raise BadValueError(
            f"learning rates: the results are those of suite {results.suite.name!r}; expected "
            f"{' or '.join(repr(suite.name) for suite in _SEARCHES)}."
        )
    known = {column.name: column for column in results.suite.envs}
    found = []
    for family in FAMILIES.values():
        if (column := known.get(rate_column(family, 1.0))) is None:
            continue
        own = column.recipe_settings["optim.lr"]
        for row in column.rows:
            areas = {
                scale: _areas(results, row, name)
                for scale in _SCALES
                if (name := rate_column(family, scale)) in known and row in known[name].rows
            }
            if all(len(tried) == len(results.suite.seeds) for tried in areas.values()):
                first = RATE_SEARCH.choose({one: areas[one] for one in RATE_SEARCH.scales})
                scale = RATE_SEARCH.choose(areas, first)
                found.append(ChosenRate(family.name, row, own, scale, first, areas))
    return found


def tries_rates(suite: Suite) -> bool:
    """Return whether a suite is a search for learning rates."""
    return suite.name in {search.name for search in _SEARCHES}


def list_changes(chosen: list[ChosenRate]) -> dict[str, dict[str, float]]:
    """Return the rates that are not their family's, by family and row."""
    changes: dict[str, dict[str, float]] = {}
    for one in chosen:
        if one.changed:
            changes.setdefault(one.family, {})[one.row] = one.rate
    return changes


def search_cost(results: Results) -> Used:
    """Return what the search took: tokens, steps and seconds of all of its runs."""
    return sum((result.used for result in results.cells.values()), Used())


def format_rates(results: Results, row: str, column: str) -> str:
    """Return the learning rates of a row's runs in a column, in words; empty without one."""
    found = {run.rate for run in results.runs(row, column) if run.rate is not None}
    return ", ".join(f"{rate:g}" for rate in sorted(found))


def margin_of(suite: Suite) -> float:
    """Return the lead in area that the choice of a suite's rates lets pass; on the grid none."""
    return 0.0 if suite.name == LADDER_STALE_GRID.name else search_of(suite).margin


def at_chosen_rates(results: Results) -> Results:
    """Return the results of ``ladder-stale-grid`` with each loss at one rate, under its own name.

    The rate, the baseline's too, is that of the largest mean area in the family's middle size on
    the seeds for choosing. The cells are those of the other seeds: none that chose a rate is
    compared. The A/A row stays where the baseline has the rate that it repeats. Results of any
    other suite are returned as they are.
    """
    suite = results.suite
    if suite.name != LADDER_STALE_GRID.name:
        return results
    rows = [
        suite.recipe(grid_label(loss.label, rate)).model_copy(update={"label": loss.label})
        for loss in STALE_LOSSES
        if (rate := best_on_grid(results, loss.label)) is not None
    ]
    again = suite.recipe(AGAIN)
    twins = [row for row in rows if (row.name, row.settings) == (again.name, again.settings)]
    rows += [again] if twins else []
    labels = {
        own.label: row.label
        for row in rows
        for own in suite.recipes
        if (own.name, own.settings, own.seed_offset) == (row.name, row.settings, row.seed_offset)
    }
    kept = {"rows": [row.label for row in rows]}
    named = suite.model_copy(
        update={
            "recipes": tuple(rows),
            "envs": tuple(column.model_copy(update=kept) for column in suite.envs),
            "seeds": COMPARING,
        }
    )
    cells = {}
    for one in results.cells.values():
        if one.cell.recipe in labels and one.cell.seed in COMPARING:
            cell = one.cell.model_copy(update={"recipe": labels[one.cell.recipe]})
            cells[cell.key] = one.model_copy(update={"cell": cell})
    files = results.files._replace(suite=named, cells=cells, only=())
    return replace(results, files=files, recipes=kept["rows"])


def best_on_grid(results: Results, label: str) -> float | None:
    """Return the rate at which a loss is compared; None where no rate has all seeds that choose."""
    column = STALE.column(STALE.middle)
    found = {rate: results.areas(grid_label(label, rate), column) for rate in GRID_RATES}
    whole = {rate: areas for rate, areas in found.items() if areas.keys() >= {*CHOOSING}}
    return max(whole, key=lambda rate: sum(whole[rate][seed] for seed in CHOOSING), default=None)


def find_disputes(
    score: FamilyScore, results: Results, others: Iterable[tuple[FamilyScore, Results]]
) -> dict[str, list[str]]:
    """Return the ladders that say something else of a family's rows at other learning rates.

    Args:
        score: The family.
        results: The ladder that its verdicts are of.
        others: Families of other ladders. Those count that have the same size of the same family,
            both the row and the baseline, another rate of one of them, and enough seeds.

    Returns:
        Names of suites by row; "not decided" is something else too.
    """
    found: dict[str, list[str]] = {}
    column = score.family.column(score.middle)
    for theirs, other in others:
        if theirs.family.column(theirs.middle) != column:
            continue
        verdicts = {row.label: row.middle for row in theirs.rows}
        for row in score.rows:
            again = verdicts.get(row.label)
            if row.middle is None or again is None or not again.tested:
                continue
            pair = row.label, score.baseline
            rates = [[format_rates(r, label, column) for label in pair] for r in (results, other)]
            if rates[0] != rates[1] and row.middle.verdict != again.verdict:
                found.setdefault(row.label, []).append(other.suite.name)
    return found


def _areas(results: Results, row: str, column: str) -> tuple[float, ...]:
    runs = sorted(results.runs(row, column), key=lambda run: run.cell.seed)
    return tuple(run.area for run in runs if run.area is not None)
