"""The learning rate of every row on every family, from the results of a suite that tries rates.

Its seeds count nowhere else, and the rule is that of every search
(:class:`~turngym.benchmarks.matrix.suite.RateSearch`). Here the trials are cells of a suite of
their own, because both forms of the ladder and all sizes of a family share what they find, which
:mod:`~turngym.benchmarks.ladder.families` holds as data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...envs.core.errors import BadValueError
from ..matrix.cell import Used
from ..matrix.results import Results
from ..matrix.suite import Suite
from .families import FAMILIES
from .suites import LADDER_RATES, LADDER_STALE_RATES, RATE_SEARCH, rate_column

_SEARCHES = (LADDER_RATES, LADDER_STALE_RATES)


@dataclass(frozen=True)
class ChosenRate:
    """The learning rate of a row on a family.

    Attributes:
        family: Name of the family.
        row: Label of the row.
        own: The family's rate when the search was made.
        scale: The chosen multiple of it.
        areas: Areas by tried multiple, one per search seed.
    """

    family: str
    row: str
    own: float
    scale: float
    areas: Mapping[float, tuple[float, ...]]

    @property
    def rate(self) -> float:
        """Return the chosen rate."""
        return self.scale * self.own

    @property
    def changed(self) -> bool:
        """Whether it is another rate than the family's."""
        return self.scale != 1


def choose_rates(results: Results) -> list[ChosenRate]:
    """Choose the rates of all rows that were tried with all seeds at all rates.

    Args:
        results: Results of the suite ``ladder-rates`` or ``ladder-stale-rates``.

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
                scale: _areas(results, row, rate_column(family, scale))
                for scale in RATE_SEARCH.scales
            }
            if all(len(tried) == len(results.suite.seeds) for tried in areas.values()):
                scale = RATE_SEARCH.choose(areas)
                found.append(ChosenRate(family.name, row, own, scale, areas))
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


def _areas(results: Results, row: str, column: str) -> tuple[float, ...]:
    runs = sorted(results.runs(row, column), key=lambda run: run.cell.seed)
    return tuple(run.area for run in runs if run.area is not None)
