"""The results of a matrix, read from its folder, and the scale that its scores are put on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...envs.core.errors import DataError
from ...envs.utils.statistics import Estimate, two_stage
from .cell import Cell, CellResult, EnvResult, State
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
        env_id: Column.
        states: State per seed.
        runs: The finished cells.
        reason: Why the first cell without a score has none; empty if all have one.
        success: Share of solved episodes; None without a score.
        normalised: Normalised return; None without a score or a scale.
        gain: Gain of normalised return over the starting model; None likewise.
    """

    recipe: str
    env_id: str
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
    columns: dict[str, EnvResult]
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
        columns = {e.id: r for e in suite.envs if (r := layout.env(suite, e.id)) is not None}
        touched = [result.cell for result in cells.values()]
        return cls(
            suite=suite,
            cells=cells,
            columns=columns,
            recipes=[r.name for r in suite.recipes if any(c.recipe == r.name for c in touched)],
            envs=[e.id for e in suite.envs if any(c.env_id == e.id for c in touched)],
        )

    def scale(self, env_id: str) -> Scale | None:
        """Return the scale of an environment; None where the expert is not better than random."""
        column = self.columns.get(env_id)
        players = column.reference if column else {}
        means = [players[n].mean("returns") if n in players else None for n in ("random", "expert")]
        low, high = means
        if low is None or high is None or high - low < MIN_GAP:
            return None
        return Scale(low, high)

    def runs(self, recipe: str, env_id: str) -> list[CellResult]:
        """Return the finished cells of a field, by seed."""
        found = [self.cells.get(cell.key) for cell in self._seeds(recipe, env_id)]
        return [r for r in found if r is not None and r.state == "finished" and _scored(r)]

    def values(self, recipe: str, env_id: str) -> list[list[float]]:
        """Return each finished run's normalised returns by episode; empty without a scale."""
        scale = self.scale(env_id)
        if scale is None:
            return []
        return [
            [scale.normalise(value) for value in run.tries.flat("returns")]
            for run in self.runs(recipe, env_id)
            if run.tries is not None
        ]

    def place(self, recipe: str, env_id: str) -> Place:
        """Return a field of the matrix."""
        results = [self.cells.get(cell.key) for cell in self._seeds(recipe, env_id)]
        runs = self.runs(recipe, env_id)
        reasons = [r.reason for r in results if r is not None and r.reason]
        values = self.values(recipe, env_id)
        solved = [run.tries.flat("solved") for run in runs if run.tries is not None]
        normalised = two_stage({env_id: values}) if values else None
        return Place(
            recipe=recipe,
            env_id=env_id,
            states=tuple("waiting" if r is None else r.state for r in results),
            runs=tuple(runs),
            reason=reasons[0] if reasons else "",
            success=two_stage({env_id: solved}) if solved else None,
            normalised=normalised,
            gain=self._gain(env_id, runs, normalised),
        )

    def common(self, recipes: Sequence[str]) -> list[str]:
        """Return the environments with a scale where all recipes finished all seeds."""
        seeds = len(self.suite.seeds)
        return [
            env_id
            for env_id in self.envs
            if all(len(self.values(recipe, env_id)) == seeds for recipe in recipes)
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

    def _gain(
        self, env_id: str, runs: Sequence[CellResult], after: Estimate | None
    ) -> float | None:
        scale = self.scale(env_id)
        starts = [run.before.return_.mean for run in runs if run.before is not None]
        if scale is None or after is None or not starts:
            return None
        return after.mean - scale.normalise(sum(starts) / len(starts))

    def _seeds(self, recipe: str, env_id: str) -> list[Cell]:
        return [Cell(recipe=recipe, env_id=env_id, seed=seed) for seed in self.suite.seeds]


def _scored(result: CellResult) -> bool:
    return result.tries is not None and bool(result.tries.flat("returns"))
