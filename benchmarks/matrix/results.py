"""The results of a matrix: scales, fields with their means over seeds, comparable rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ...envs.utils.seed_tests import Edges, seed_interval
from .cell import Cell, CellResult, ColumnResult, SearchResult, State, What
from .matrix_files import MatrixFiles, read_parts
from .measure import SUCCESS
from .suite import Suite

MIN_GAP = 1e-9


@dataclass(frozen=True)
class Scale:
    """A normalised scale of a column: 0 is the random player, 1 the expert."""

    random: float
    expert: float

    def normalise(self, value: float) -> float:
        """Put a value on the scale; above 1 and below 0 are possible."""
        return (value - self.random) / (self.expert - self.random)


SHARES = Scale(0.0, 1.0)
"""Shares of solved episodes are their own scale."""


@dataclass(frozen=True)
class Spread:
    """A mean over training seeds.

    Attributes:
        mean: The mean.
        n: Seeds.
        low95: Lower end of Student's 95 % interval; None of one seed, which has none.
        high95: Upper end.
    """

    mean: float
    n: int
    low95: float | None
    high95: float | None

    def of_share(self) -> Spread:
        """Return the spread of a share, whose interval ends at 0 and 1: no share is beyond."""
        if self.low95 is None or self.high95 is None:
            return self
        return replace(self, low95=max(0.0, self.low95), high95=min(1.0, self.high95))


def over_seeds(values: Sequence[float]) -> Spread | None:
    """Return the mean over seeds with Student's interval; None without a value."""
    if not values:
        return None
    if len(values) == 1:
        return Spread(values[0], 1, None, None)
    found = seed_interval(values)
    return Spread(found.mean, len(values), found.low95, found.high95)


@dataclass(frozen=True)
class Place:
    """A field of the matrix: one row in one column, all seeds.

    Attributes:
        recipe: Row.
        column: Column.
        states: State per seed.
        runs: The finished cells.
        reason: Why the first cell without a score has none; empty if all have one.
        area: Mean of the column's measure of the training rollouts over the budget, on its scale.
        sampled: Success of the sampled trials after training.
        greedy: Success of the greedy trials.
        normalised: Return of the sampled trials between the random player's and the expert's.
        sharpening: Gain of the sampled success over the start less that of the greedy success.
        to_threshold: Tokens to the column's threshold of each seed; None of those that missed it.
        rates: The learning rates of the seeds, each once.
        rate_end: At which end of the rates that were searched the chosen one is, in words; empty
            where it is at none.
        scaled: Whether the measure has a scale; else areas are in its own unit.
    """

    recipe: str
    column: str
    states: tuple[State, ...]
    runs: tuple[CellResult, ...]
    reason: str
    area: Spread | None
    sampled: Spread | None
    greedy: Spread | None
    normalised: Spread | None
    sharpening: Spread | None
    to_threshold: tuple[int | None, ...]
    rates: tuple[float, ...]
    rate_end: str = ""
    scaled: bool = True

    @property
    def missing(self) -> str:
        """Return of how many seeds the values are, in words; empty where they are of all."""
        here, of = len(self.runs), len(self.states)
        return f"{here} of {of} seeds" if here < of else ""

    @property
    def state(self) -> State:
        """Return the worst state of all seeds."""
        for state in ("failed", "refused", "interrupted", "running", "waiting"):
            if state in self.states:
                return state
        return "finished"

    def mean_used(self, what: str) -> float:
        """Return the mean of a cost over the seeds; 0 without a run."""
        return sum(getattr(run.used, what) for run in self.runs) / max(1, len(self.runs))


@dataclass(frozen=True)
class Results:
    """Everything in a matrix folder or in a packed file.

    Attributes:
        files: The results as they are stored.
        recipes: Rows with results, in the suite's order.
        envs: Columns with results.
        declared: Floor and ceiling of the measure by column, where they are known to be others than
            :meth:`edges` assumes.
    """

    files: MatrixFiles
    recipes: list[str]
    envs: list[str]
    declared: Mapping[str, Edges] = field(default_factory=dict)

    @classmethod
    def read(cls, *parts: Path, declared: Mapping[str, Edges] | None = None) -> Results:
        """Read matrix folders and packed files of one suite, which may have been filled in parts.

        Args:
            parts: The folders and files.
            declared: Floors and ceilings by column; see the attribute.

        Raises:
            DataError: There is no matrix, no result, a damaged file, or parts that contradict each
                other.
        """
        return cls.of(read_parts(parts), declared)

    @classmethod
    def of(cls, files: MatrixFiles, declared: Mapping[str, Edges] | None = None) -> Results:
        """Take results that were read already; ``declared`` as in :meth:`read`."""
        touched = [result.cell for result in files.cells.values()]
        rows, names = [r.label for r in files.suite.recipes], [e.name for e in files.suite.envs]
        return cls(
            files=files,
            recipes=[row for row in rows if any(c.recipe == row for c in touched)],
            envs=[name for name in names if any(c.column == name for c in touched)],
            declared=declared or {},
        )

    @property
    def suite(self) -> Suite:
        """Return the suite."""
        return self.files.suite

    @cached_property
    def chosen(self) -> frozenset[str]:
        """Return the keys of the cells that were asked for."""
        return self.files.chosen()

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Return the suite's seeds that were asked for: all, where no ``--only seed=N`` chose."""
        found = {cell.seed for cell in self.suite.cells if cell.key in self.chosen}
        return tuple(seed for seed in self.suite.seeds if seed in found)

    @property
    def cells(self) -> Mapping[str, CellResult]:
        """Return the result of each cell that has one, by key."""
        return self.files.cells

    @property
    def columns(self) -> Mapping[str, ColumnResult]:
        """Return the start of each column that has one, by name."""
        return self.files.columns

    @property
    def searches(self) -> Mapping[tuple[str, str], SearchResult]:
        """Return the searches for learning rates, by row and column."""
        return self.files.searches

    def measure_scale(self, column: str) -> Scale | None:
        """Return the scale of a column's measure; shares of solved episodes are their own.

        None where the expert is not better than the random player, or one of them is missing.
        """
        if self.suite.column(column).measure == SUCCESS:
            return SHARES
        return self._scale(column, "measured")

    def return_scale(self, column: str) -> Scale | None:
        """Return the scale of a column's returns; None likewise."""
        return self._scale(column, "returns")

    def _scale(self, column: str, what: What) -> Scale | None:
        start = self.columns.get(column)
        players = start.reference if start else {}
        means = [players[n].mean(what) if n in players else None for n in ("random", "expert")]
        low, high = means
        if low is None or high is None or high - low < MIN_GAP:
            return None
        return Scale(low, high)

    def states(self, recipe: str, column: str) -> tuple[State, ...]:
        """Return the state of each seed of a field that was asked for."""
        found = [self.cells.get(cell.key) for cell in self._seeds(recipe, column)]
        return tuple("waiting" if result is None else result.state for result in found)

    def runs(self, recipe: str, column: str) -> list[CellResult]:
        """Return the finished cells of a field, by seed."""
        found = [self.cells.get(cell.key) for cell in self._seeds(recipe, column)]
        return [r for r in found if r is not None and r.state == "finished"]

    def areas(self, recipe: str, column: str) -> dict[int, float]:
        """Return the area of each finished run that has one, by seed.

        On the scale of the column's measure; as it is where there is no scale.
        """
        scale = self.measure_scale(column) or SHARES
        runs = self.runs(recipe, column)
        return {r.cell.seed: scale.normalise(r.area) for r in runs if r.area is not None}

    def edges(self, column: str) -> Edges:
        """Return the floor and the ceiling of a column's areas, on their scale.

        As declared; else 0 and 1 of success. Of another measure the floor is the random player, and
        no ceiling is known: the expert need not be the best.
        """
        scale = self.measure_scale(column)
        found = self.declared.get(column)
        if found is None and self.suite.column(column).measure != SUCCESS:
            found = Edges(None if scale is None else scale.random, None)
        put = (scale or SHARES).normalise
        return Edges(*(None if end is None else put(end) for end in found or Edges()))

    def place(self, recipe: str, column: str) -> Place:
        """Return a field of the matrix."""
        results = [self.cells.get(cell.key) for cell in self._seeds(recipe, column)]
        runs = self.runs(recipe, column)
        reasons = [r.reason for r in results if r is not None and r.reason]
        scale = self.return_scale(column)
        search = self.searches.get((recipe, column))

        def spread(value: Callable[[CellResult], float | None]) -> Spread | None:
            return over_seeds([v for run in runs if (v := value(run)) is not None])

        def share(value: Callable[[CellResult], float | None]) -> Spread | None:
            found = spread(value)
            return None if found is None else found.of_share()

        def normalised(run: CellResult) -> float | None:
            mean = run.tries.mean("returns") if run.tries is not None else None
            return None if scale is None or mean is None else scale.normalise(mean)

        return Place(
            recipe=recipe,
            column=column,
            states=self.states(recipe, column),
            runs=tuple(runs),
            reason=reasons[0] if reasons else "",
            area=over_seeds(list(self.areas(recipe, column).values())),
            scaled=self.measure_scale(column) is not None,
            sampled=share(lambda run: run.sampled),
            greedy=share(lambda run: run.greedy),
            normalised=spread(normalised),
            sharpening=spread(self.sharpening),
            to_threshold=tuple(run.to_threshold for run in runs),
            rates=tuple(sorted({run.rate for run in runs if run.rate is not None})),
            rate_end="" if search is None else search.at_end,
        )

    def sharpening(self, run: CellResult) -> float | None:
        """Return a run's gain of sampled success over the start, less that of greedy success.

        What is left is what a surer model gains without a better strategy.
        """
        start = self.columns.get(run.cell.column)
        tries = (start.tries, start.greedy_tries) if start is not None else (None, None)
        before = [None if t is None else t.mean("solved") for t in tries]
        values = (run.sampled, run.greedy, *before)
        if any(value is None for value in values):
            return None
        sampled, greedy, old_sampled, old_greedy = (v for v in values if v is not None)
        return (sampled - old_sampled) - (greedy - old_greedy)

    def common(self, recipes: Sequence[str]) -> list[str]:
        """Return the columns with a scale in which all rows have an area with every seed."""
        seeds = len(self.seeds)
        return [
            column
            for column in self.envs
            if self.measure_scale(column) is not None
            and all(len(self.areas(recipe, column)) == seeds for recipe in recipes)
        ]

    def ranked(self) -> list[str]:
        """Return the comparable rows; A/A rows are none.

        Rows with an area in the fewest columns are dropped until the others have a column in
        common.
        """
        apart = self.suite.yardsticks
        count = {r: len(self.common([r])) for r in self.recipes if r not in apart}
        recipes = [recipe for recipe in count if count[recipe]]
        while recipes and not self.common(recipes):
            recipes.remove(min(reversed(recipes), key=lambda recipe: count[recipe]))
        return recipes

    def _seeds(self, recipe: str, column: str) -> list[Cell]:
        return [Cell(recipe=recipe, column=column, seed=seed) for seed in self.seeds]
