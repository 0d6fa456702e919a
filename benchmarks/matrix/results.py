"""The results of a matrix, read from its folder, and the scale that its scores are put on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...envs.core.errors import DataError
from ...envs.utils.statistics import Estimate, two_stage
from .cell import Cell, CellResult, ColumnResult, State
from .layout import Layout
from .suite import Suite

MIN_GAP = 1e-9


@dataclass(frozen=True)
class Scale:
    """Normalised returns of an environment: 0 is the random player's, 1 the expert's."""

    random: float
    expert: float

    def normalise(self, value: float) -> float:
        """Normalise a return; above 1 and below 0 are possible."""
        return (value - self.random) / (self.expert - self.random)


@dataclass(frozen=True)
class Place:
    """A field of the matrix: one recipe on one environment, all seeds.

    Attributes:
        recipe: Row.
        column: Column.
        states: State per seed.
        runs: The finished cells.
        reason: Why the first cell without a score has none; empty if all have one.
        success: Share of solved episodes; None without a score.
        normalised: Normalised return; None without a score or a scale.
        gain: Gain of normalised return over the starting model; None likewise.
    """

    recipe: str
    column: str
    states: tuple[State, ...]
    runs: tuple[CellResult, ...]
    reason: str
    success: Estimate | None
    normalised: Estimate | None
    gain: float | None

    @property
    def state(self) -> State:
        """Return the worst state of all seeds."""
        for state in ("failed", "refused", "interrupted", "running", "waiting"):
            if state in self.states:
                return state
        return "finished"


@dataclass(frozen=True)
class Results:
    """Everything in a matrix folder.

    Attributes:
        suite: The suite.
        cells: Result of each cell that has one, by key.
        columns: Start of each column that has one.
        recipes: Rows with results, in the suite's order.
        envs: Columns with results.
    """

    suite: Suite
    cells: dict[str, CellResult]
    columns: dict[str, ColumnResult]
    recipes: list[str] = field(default_factory=list)
    envs: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read a matrix folder.

        Raises:
            DataError: There is no matrix, no result, or a damaged file.
        """
        layout = Layout(folder)
        if not layout.suite_file.exists():
            raise DataError(f"{folder} has no suite.json; give the folder of a matrix.")
        suite = Suite.read(layout.suite_file)
        cells = {c.key: r for c in suite.cells if (r := layout.cell(suite, c)) is not None}
        if not cells:
            raise DataError(f"{folder} has no result of a cell yet; fill the matrix first.")
        names = [e.name for e in suite.envs]
        columns = {name: r for name in names if (r := layout.column(suite, name)) is not None}
        touched = [result.cell for result in cells.values()]
        return cls(
            suite=suite,
            cells=cells,
            columns=columns,
            recipes=[r.label for r in suite.recipes if any(c.recipe == r.label for c in touched)],
            envs=[name for name in names if any(c.column == name for c in touched)],
        )

    def scale(self, column: str) -> Scale | None:
        """Return the scale of an environment; None where the expert is not better than random."""
        start = self.columns.get(column)
        players = start.reference if start else {}
        means = [players[n].mean("returns") if n in players else None for n in ("random", "expert")]
        low, high = means
        if low is None or high is None or high - low < MIN_GAP:
            return None
        return Scale(low, high)

    def runs(self, recipe: str, column: str) -> list[CellResult]:
        """Return the finished cells of a field, by seed."""
        found = [self.cells.get(cell.key) for cell in self._seeds(recipe, column)]
        return [r for r in found if r is not None and r.state == "finished" and _scored(r)]

    def values(self, recipe: str, column: str) -> list[list[float]]:
        """Return each finished run's normalised returns by episode; empty without a scale."""
        scale = self.scale(column)
        if scale is None:
            return []
        return [
            [scale.normalise(value) for value in run.tries.flat("returns")]
            for run in self.runs(recipe, column)
            if run.tries is not None
        ]

    def place(self, recipe: str, column: str) -> Place:
        """Return a field of the matrix."""
        results = [self.cells.get(cell.key) for cell in self._seeds(recipe, column)]
        runs = self.runs(recipe, column)
        reasons = [r.reason for r in results if r is not None and r.reason]
        values = self.values(recipe, column)
        solved = [run.tries.flat("solved") for run in runs if run.tries is not None]
        normalised = two_stage({column: values}) if values else None
        return Place(
            recipe=recipe,
            column=column,
            states=tuple("waiting" if r is None else r.state for r in results),
            runs=tuple(runs),
            reason=reasons[0] if reasons else "",
            success=two_stage({column: solved}) if solved else None,
            normalised=normalised,
            gain=self._gain(column, normalised),
        )

    def common(self, recipes: Sequence[str]) -> list[str]:
        """Return the environments with a scale where all recipes finished all seeds."""
        seeds = len(self.suite.seeds)
        return [
            column
            for column in self.envs
            if all(len(self.values(recipe, column)) == seeds for recipe in recipes)
        ]

    def ranked(self) -> list[str]:
        """Return the comparable recipes.

        Recipes with the fewest scored environments are dropped until the others have an environment
        in common.
        """
        count = {r: sum(bool(self.values(r, e)) for e in self.envs) for r in self.recipes}
        recipes = [recipe for recipe in self.recipes if count[recipe]]
        while recipes and not self.common(recipes):
            recipes.remove(min(reversed(recipes), key=lambda recipe: count[recipe]))
        return recipes

    def _gain(self, column: str, after: Estimate | None) -> float | None:
        scale = self.scale(column)
        start = self.columns.get(column)
        before = start.tries.mean("returns") if start is not None and start.tries else None
        if scale is None or after is None or before is None:
            return None
        return after.mean - scale.normalise(before)

    def _seeds(self, recipe: str, column: str) -> list[Cell]:
        return [Cell(recipe=recipe, column=column, seed=seed) for seed in self.suite.seeds]


def _scored(result: CellResult) -> bool:
    return result.tries is not None and bool(result.tries.flat("returns"))
