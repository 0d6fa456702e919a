"""Rows against each other: areas over training seeds, tested, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...envs.utils.seed_tests import MIN_SEEDS, Edges
from ...envs.utils.statistics import pass_all, pass_at
from .cell import CellResult, Used
from .comparison import Comparison, Contrast, compare_areas, decide_family, describe_lost
from .results import Results, Spread, over_seeds

_WITHOUT = {"waiting": "have no result", "running": "have no result"}
"""Words for the states of seeds that are not there yet."""


@dataclass(frozen=True)
class Rank:
    """A row over the common columns.

    Attributes:
        recipe: The row.
        area: Mean over columns of the normalised area of the measure.
        sampled: Mean success of the sampled trials after training.
        greedy: Mean success of the greedy trials.
        sharpening: Gain of the sampled success less that of the greedy one.
        tokens: Tokens of a cell, mean.
        optimizer_steps: Optimiser steps of a cell, mean.
        against: Against the baseline, of an A/A row against the row it repeats; None for the
            baseline.
        passes: Share of tasks by k: pass@k and pass^k.
    """

    recipe: str
    area: Spread
    sampled: Spread | None
    greedy: Spread | None
    sharpening: Spread | None
    tokens: float
    optimizer_steps: float
    against: Comparison | None
    passes: dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Ranking:
    """All ranks, the largest area first.

    Attributes:
        envs: Columns that all of them finished.
        baseline: Row that the others are tested against; empty if it has no score.
        ranks: One per competing row.
        yardsticks: The A/A rows, which do not compete.
        left_out: Rows with too few scores to be compared, each with the reason.
        level: Rows that are at the same end of the measure as the first one in every column, or
            behind it by less than the least difference that matters.
        missing: What keeps columns out of the mean, each with its columns.
    """

    envs: list[str]
    baseline: str
    ranks: list[Rank]
    yardsticks: list[Rank]
    left_out: dict[str, str]
    level: frozenset[str] = frozenset()
    missing: dict[str, list[str]] = field(default_factory=dict)

    @property
    def leader(self) -> Rank | None:
        """Return the row whose interval lies above those of all others; None of a tie.

        Overlapping intervals are no proof that rows are equal, but nothing for a headline either.
        Nor are fewer seeds than a verdict takes, or a row that is at the same end of the measure
        or too close to matter: the headline says no more than the verdicts below it.
        """
        if len(self.ranks) < 2 or (low := self.ranks[0].area.low95) is None:
            return None
        if self.ranks[0].area.n < MIN_SEEDS or self.level:
            return None
        highs = [rank.area.high95 for rank in self.ranks[1:]]
        return self.ranks[0] if all(high is not None and low > high for high in highs) else None


@dataclass(frozen=True)
class Cost:
    """Cost of one row over its finished cells.

    Attributes:
        recipe: The row.
        cells: Finished cells.
        used: Total cost of training.
        search: Total cost of the searches for learning rates, which an A/A row shares.
        seconds: Total wall time, loading and evaluations included.
        tokens_share: Mean share of the token budget used by a cell.
        calls_share: Mean share of the call budget, likewise.
        ended_by: Number of cells that each limit ended.
    """

    recipe: str
    cells: int
    used: Used
    search: Used
    seconds: float
    tokens_share: float
    calls_share: float
    ended_by: dict[str, int]


def rank_recipes(results: Results, baseline: str) -> Ranking:
    """Compare the rows that have columns in common."""
    recipes = results.ranked()
    envs = results.common(recipes)
    apart = results.suite.yardsticks
    known = baseline if baseline in recipes else ""
    others = [recipe for recipe in recipes if known and recipe != known]
    again = [
        row
        for row, twin in apart.items()
        if twin in recipes and envs and set(envs) <= set(results.common([row]))
    ]
    values = {row: _by_seed(results, row, envs) for row in [*recipes, *again]}
    tests = {row: _contrast(results, envs, row, known) for row in others}
    found = decide_family(results.suite, tests, known)
    for row in again:
        contrast = _contrast(results, envs, row, apart[row], paired=False)
        found |= decide_family(results.suite, {row: contrast}, apart[row])
    ranks = {row: _rank(results, row, envs, values[row], found.get(row)) for row in values}
    ordered = sorted(recipes, key=lambda row: (-ranks[row].area.mean, row))
    left_out = {row: _why_left_out(results, row) for row in results.recipes if row not in ranks}
    level = {
        row
        for row in ordered[1:]
        if ranks[ordered[0]].area.mean - ranks[row].area.mean < results.suite.min_effect
        or _describe_ends(results, envs, ordered[0], row)
    }
    rows = recipes or [row for row in results.recipes if row not in apart]
    missing: dict[str, list[str]] = {}
    for column in results.envs:
        if column not in envs:
            missing.setdefault(_why_missing(results, rows, column), []).append(column)
    return Ranking(
        envs=envs,
        baseline=known,
        ranks=[ranks[row] for row in ordered],
        yardsticks=[ranks[row] for row in again],
        left_out=left_out,
        level=frozenset(level),
        missing=missing,
    )


def compare_by_column(results: Results, baseline: str) -> dict[tuple[str, str], Comparison]:
    """Compare every row with the baseline in every column.

    Holm's correction is over all comparisons together; A/A rows are compared with the row that they
    repeat and are not part of it. Fields without an area are left out, and columns without a scale:
    what matters is given in points of one, and which side is the better one is not known.
    """
    apart = results.suite.yardsticks
    tests: dict[tuple[str, str], Contrast | None] = {}
    found: dict[tuple[str, str], Comparison] = {}
    for column in results.envs:
        if results.measure_scale(column) is None:
            continue
        for row in results.recipes:
            other = apart.get(row, baseline)
            ours, theirs = results.areas(row, column), results.areas(other, column)
            if row == other or not ours or not theirs:
                continue
            at, edges, again = (row, column), results.edges(column), row in apart
            lost = describe_lost({label: results.states(label, column) for label in (row, other)})
            contrast = compare_areas(
                results.suite, ours, theirs, edges, paired=not again, lost=lost
            )
            if again:  # a family by itself
                found |= decide_family(results.suite, {at: contrast}, other)
            else:
                tests[at] = contrast
    return found | decide_family(results.suite, tests, baseline)


def collect_costs(results: Results) -> list[Cost]:
    """Return the costs of every row with a finished cell."""
    found = []
    for recipe in results.recipes:
        runs = [run for column in results.envs for run in results.runs(recipe, column)]
        if not runs:
            continue
        pairs = [(run, results.suite.column(run.cell.column).limits) for run in runs]
        ended: dict[str, int] = {"tokens": 0, "calls": 0, "steps": 0}
        for run, limit in pairs:
            shares = {
                "tokens": run.used.tokens / limit.tokens,
                "calls": run.used.calls / limit.calls,
                "steps": run.used.steps / limit.steps if limit.steps else 0.0,
            }
            ended[max(shares, key=lambda name: shares[name])] += 1
        searched = [s.used for (row, _), s in results.searches.items() if row == recipe]
        found.append(
            Cost(
                recipe=recipe,
                cells=len(runs),
                used=sum((run.used for run in runs), Used()),
                search=sum(searched, Used()),
                seconds=sum(run.seconds for run in runs),
                tokens_share=float(np.mean([r.used.tokens / b.tokens for r, b in pairs])),
                calls_share=float(np.mean([r.used.calls / b.calls for r, b in pairs])),
                ended_by={name: count for name, count in ended.items() if count},
            )
        )
    return found


def pass_rates(
    results: Results, recipe: str, envs: Sequence[str]
) -> dict[int, tuple[float, float]]:
    """Return pass@k and pass^k up to the suite's trials: means of tasks, runs, columns.

    A task whose environment failed in some trials counts for k up to its remaining trials.
    """
    found = {}
    for k in range(1, results.suite.trials + 1):
        some, every = (_passed(results, recipe, envs, k, rule) for rule in (pass_at, pass_all))
        if some is not None and every is not None:
            found[k] = (some, every)
    return found


def _by_seed(results: Results, recipe: str, envs: Sequence[str]) -> dict[int, float]:
    """Return the mean over columns of the normalised area, by seed."""
    columns = [results.areas(recipe, column) for column in envs]
    return {seed: float(np.mean([areas[seed] for areas in columns])) for seed in results.seeds}


def _rank(
    results: Results,
    recipe: str,
    envs: Sequence[str],
    values: Mapping[int, float],
    against: Comparison | None,
) -> Rank:
    area = over_seeds(list(values.values()))
    assert area is not None
    runs = [run for column in envs for run in results.runs(recipe, column)]
    return Rank(
        recipe=recipe,
        area=area,
        sampled=_mean_by_seed(results, runs, lambda run: run.sampled),
        greedy=_mean_by_seed(results, runs, lambda run: run.greedy),
        sharpening=_mean_by_seed(results, runs, results.sharpening),
        tokens=float(np.mean([run.used.tokens for run in runs])),
        optimizer_steps=float(np.mean([run.used.optimizer_steps for run in runs])),
        against=against,
        passes=pass_rates(results, recipe, envs),
    )


def _mean_by_seed(
    results: Results, runs: Sequence[CellResult], value: Callable[[CellResult], float | None]
) -> Spread | None:
    """Return the mean over columns, spread over seeds."""
    means = []
    for seed in results.seeds:
        found = [v for run in runs if run.cell.seed == seed and (v := value(run)) is not None]
        means += [float(np.mean(found))] if found else []
    return over_seeds(means)


def _contrast(
    results: Results, envs: Sequence[str], row: str, other: str, *, paired: bool = True
) -> Contrast | None:
    """Test the means over columns; an A/A row has other tasks, so its seeds are not paired.

    Rows are at an end where they are at one in every column.
    """
    ours, theirs = (_by_seed(results, label, envs) for label in (row, other))
    found = compare_areas(results.suite, ours, theirs, Edges(None, None), paired=paired)
    if found is None:
        return None
    return found._replace(edge=_describe_ends(results, envs, row, other))


def _describe_ends(results: Results, envs: Sequence[str], row: str, other: str) -> str:
    """Return at which ends both rows are, in words; empty where a column is no end of both."""
    ends = []
    for column in envs:
        areas = [list(results.areas(label, column).values()) for label in (row, other)]
        ends.append(results.edges(column).describe(*areas) if len(areas[0]) > 1 else "")
    return "; ".join(dict.fromkeys(ends)) if all(ends) else ""


def _why_left_out(results: Results, recipe: str) -> str:
    runs = [run for column in results.envs for run in results.runs(recipe, column)]
    if not runs:
        return "no finished cell"
    if all(run.area is None for run in runs):
        return "trained on the expert's episodes, so there is no success of its own in training"
    return "no column that it finished in common with the others"


def _why_missing(results: Results, recipes: Sequence[str], column: str) -> str:
    """Return what keeps a column out of the ranking: its scale, or seeds of rows, in words."""
    if results.measure_scale(column) is None:
        measure = results.suite.column(column).measure
        return f"no scale: there is no expert above the random player in {measure}"
    rows: dict[str, list[str]] = {}
    played = results.suite.column(column).rows
    for recipe in recipes:
        if played and recipe not in played:
            rows.setdefault("not in this column of the suite", []).append(recipe)
            continue
        states = results.states(recipe, column)
        counts = Counter(_WITHOUT.get(state, state) for state in states if state != "finished")
        counts["have no area"] = states.count("finished") - len(results.areas(recipe, column))
        if counts := +counts:
            parts = [f"{count} of {len(states)} seeds {what}" for what, count in counts.items()]
            rows.setdefault(", ".join(parts), []).append(recipe)
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in rows.items())


def _passed(
    results: Results,
    recipe: str,
    envs: Sequence[str],
    k: int,
    rule: Callable[[int, int, int], float],
) -> float | None:
    means = []
    for column in envs:
        runs = []
        for run in results.runs(recipe, column):
            if run.tries is None:
                continue
            tasks = [tried for tried in run.tries.by_task("solved").values() if len(tried) >= k]
            if tasks:
                runs.append(np.mean([rule(int(sum(tried)), len(tried), k) for tried in tasks]))
        if runs:
            means.append(np.mean(runs))
    return float(np.mean(means)) if means else None
