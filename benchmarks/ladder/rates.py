"""The learning rate of every row on every family, from the results of a suite that tries rates.

Its seeds count nowhere else. A rate other than the family's is taken only where it leads clearly:
choosing the best of a few noisy areas would give rows different rates by luck, and the seeds of a
cell, which share the rate, could not show that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...envs.core.errors import BadValueError
from ..matrix.cell import Used
from ..matrix.results import Results
from ..matrix.suite import Suite
from .families import FAMILIES
from .suites import LADDER_RATES, LADDER_STALE_RATES, SCALES

_SEARCHES = (LADDER_RATES, LADDER_STALE_RATES)

MARGIN = 0.05
"""Lead in area, in the mean, from which another rate is taken; it has to lead with every seed."""


@dataclass(frozen=True)
class ChosenRate:
    """The learning rate of a row on a family.

    Attributes:
        family: Name of the family.
        row: Label of the row.
        rate: The chosen rate.
        areas: Areas by rate, one per search seed.
    """

    family: str
    row: str
    rate: float
    areas: Mapping[float, tuple[float, ...]]

    @property
    def changed(self) -> bool:
        """Whether it is another rate than the family's."""
        return self.rate != FAMILIES[self.family].lr

    @property
    def shares(self) -> dict[float, tuple[float, ...]]:
        """Areas by the rate's share of the family's."""
        return dict(zip(SCALES, self.areas.values(), strict=True))


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
    found = []
    columns = {column.name: column for column in results.suite.envs}
    for family in FAMILIES.values():
        column = columns.get(f"{family.name}-rate-{SCALES[0]:g}")
        for row in () if column is None else column.rows:
            areas = {
                scale * family.lr: _areas(results, row, f"{family.name}-rate-{scale:g}")
                for scale in SCALES
            }
            if all(len(tried) == len(results.suite.seeds) for tried in areas.values()):
                found.append(ChosenRate(family.name, row, clear_best(areas, family.lr), areas))
    return found


def tries_rates(suite: Suite) -> bool:
    """Return whether a suite is a search for learning rates."""
    return suite.name in {search.name for search in _SEARCHES}


def clear_best(areas: Mapping[float, tuple[float, ...]], default: float) -> float:
    """Return the rate with the largest mean area if it leads the default clearly, else that.

    Args:
        areas: Areas by rate, by seed in the same order.
        default: The rate that is kept in doubt.
    """
    best = max(areas, key=lambda rate: sum(areas[rate]))
    leads = [ours - own for ours, own in zip(areas[best], areas[default], strict=True)]
    clear = min(leads) > 0 and sum(leads) / len(leads) > MARGIN
    return best if clear else default


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
