"""Recipes against each other: scores on the environments in common, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...envs.utils.statistics import (
    Estimate,
    Paired,
    holm,
    improvement,
    interquartile_mean,
    paired,
    pass_all,
    pass_at,
    two_stage,
)
from .curves import area_under
from .results import Results


@dataclass(frozen=True)
class Rank:
    """Scores of a recipe over the common environments, on the normalised scale.

    Attributes:
        recipe: The recipe.
        mean: Mean over environments.
        middle: Interquartile mean over environments.
        tokens_area: Mean over the budget of sampled tokens.
        calls_area: Mean over the budget of calls.
        improves: Probability that its run scores above a run of the baseline; None for itself.
        against: Paired test over tasks against the baseline; None for itself.
        adjusted: The test's p-value after Holm.
        passes: Share of tasks by k: pass@k and pass^k.
    """

    recipe: str
    mean: Estimate
    middle: Estimate
    tokens_area: float
    calls_area: float
    improves: float | None
    against: Paired | None
    adjusted: float | None
    passes: dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Ranking:
    """All ranks, the best interquartile mean first.

    Attributes:
        envs: Environments that all of them finished.
        baseline: Recipe that the others are tested against; empty if it has no score.
        ranks: One per recipe.
        left_out: Recipes with too few scores to be compared.
    """

    envs: list[str]
    baseline: str
    ranks: list[Rank]
    left_out: list[str]


@dataclass(frozen=True)
class Cost:
    """Cost of one recipe over its finished cells.

    Attributes:
        recipe: The recipe.
        cells: Finished cells.
        tokens: Total sampled tokens.
        calls: Total actions.
        steps: Total training steps.
        seconds: Total wall time.
        tokens_share: Mean share of the token budget used by a cell; its last step may exceed 1.
        calls_share: Mean share of the call budget, likewise.
        ended_by: Number of cells that each limit ended.
    """

    recipe: str
    cells: int
    tokens: int
    calls: int
    steps: int
    seconds: float
    tokens_share: float
    calls_share: float
    ended_by: dict[str, int]


def rank_recipes(results: Results, baseline: str) -> Ranking:
    """Compare the recipes that have environments in common."""
    recipes = results.ranked()
    envs = results.common(recipes)
    known = baseline if baseline in recipes else ""
    others = [recipe for recipe in recipes if known and recipe != known]
    tests = {r: paired(*_pair_by_task(results, r, known, envs)) for r in others}
    adjusted = dict(zip(others, holm([tests[r].p_value for r in others]), strict=True))
    ranks = [
        Rank(
            recipe=recipe,
            mean=two_stage({e: results.values(recipe, e) for e in envs}),
            middle=two_stage({e: results.values(recipe, e) for e in envs}, interquartile_mean),
            tokens_area=mean_area(results, recipe, envs, "tokens"),
            calls_area=mean_area(results, recipe, envs, "calls"),
            improves=_probability_of_improvement(results, recipe, known, envs)
            if recipe in tests
            else None,
            against=tests.get(recipe),
            adjusted=adjusted.get(recipe),
            passes=pass_rates(results, recipe, envs),
        )
        for recipe in recipes
    ]
    ranks.sort(key=lambda rank: (-rank.middle.mean, -rank.mean.mean, rank.recipe))
    left_out = [recipe for recipe in results.recipes if recipe not in recipes]
    return Ranking(envs=envs, baseline=known, ranks=ranks, left_out=left_out)


def collect_costs(results: Results) -> list[Cost]:
    """Return the costs of every recipe with a finished cell."""
    found = []
    for recipe in results.recipes:
        runs = [run for column in results.envs for run in results.runs(recipe, column)]
        if not runs:
            continue
        limits = [results.suite.column(run.cell.column).limits for run in runs]
        pairs = list(zip(runs, limits, strict=True))
        ended: dict[str, int] = {"tokens": 0, "calls": 0, "steps": 0}
        for run, limit in pairs:
            shares = {
                "tokens": run.used.tokens / limit.tokens,
                "calls": run.used.calls / limit.calls,
                "steps": run.used.steps / limit.steps if limit.steps else 0.0,
            }
            ended[max(shares, key=lambda name: shares[name])] += 1
        found.append(
            Cost(
                recipe=recipe,
                cells=len(runs),
                tokens=sum(run.used.tokens for run in runs),
                calls=sum(run.used.calls for run in runs),
                steps=sum(run.used.steps for run in runs),
                seconds=sum(run.used.seconds for run in runs),
                tokens_share=float(np.mean([r.used.tokens / b.tokens for r, b in pairs])),
                calls_share=float(np.mean([r.used.calls / b.calls for r, b in pairs])),
                ended_by={name: count for name, count in ended.items() if count},
            )
        )
    return found


def mean_area(results: Results, recipe: str, envs: Sequence[str], unit: str) -> float:
    """Return the mean area under normalised learning curves, over runs and environments."""
    found = []
    for column in envs:
        scale = results.scale(column)
        limit = getattr(results.suite.column(column).limits, unit)
        runs = results.runs(recipe, column)
        if scale is None or not runs:
            continue
        areas = [
            area_under(
                [getattr(point, unit) for point in run.curve],
                [scale.normalise(point.return_) for point in run.curve],
                limit,
            )
            for run in runs
        ]
        found.append(sum(areas) / len(areas))
    return sum(found) / len(found)


def pass_rates(
    results: Results, recipe: str, envs: Sequence[str]
) -> dict[int, tuple[float, float]]:
    """Return pass@k and pass^k up to the suite's trials: means of tasks, runs, environments.

    A task whose environment failed in some trials counts for k up to its remaining trials.
    """
    found = {}
    for k in range(1, results.suite.trials + 1):
        some, every = (_passed(results, recipe, envs, k, rule) for rule in (pass_at, pass_all))
        if some is not None and every is not None:
            found[k] = (some, every)
    return found


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
            assert run.tries is not None
            tasks = [tried for tried in run.tries.by_task("solved").values() if len(tried) >= k]
            if tasks:
                runs.append(np.mean([rule(int(sum(tried)), len(tried), k) for tried in tasks]))
        if runs:
            means.append(np.mean(runs))
    return float(np.mean(means)) if means else None


def _probability_of_improvement(
    results: Results, recipe: str, baseline: str, envs: Sequence[str]
) -> float:
    """Return the mean chance over environments that a run beats one of the baseline."""
    chances = [
        improvement(
            [float(np.mean(run)) for run in results.values(recipe, column)],
            [float(np.mean(run)) for run in results.values(baseline, column)],
        )
        for column in envs
    ]
    return sum(chances) / len(chances)


def _pair_by_task(
    results: Results, ours: str, theirs: str, envs: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Return the normalised returns of all common tasks, means over trials and seeds."""
    left: list[float] = []
    right: list[float] = []
    for column in envs:
        mine, other = (_task_means(results, recipe, column) for recipe in (ours, theirs))
        for task in sorted(mine.keys() & other.keys()):
            left.append(mine[task])
            right.append(other[task])
    return left, right


def _task_means(results: Results, recipe: str, column: str) -> dict[str, float]:
    scale = results.scale(column)
    assert scale is not None
    values: dict[str, list[float]] = {}
    for run in results.runs(recipe, column):
        assert run.tries is not None
        for task, tried in run.tries.by_task("returns").items():
            values.setdefault(task, []).extend(scale.normalise(value) for value in tried)
    return {task: sum(tried) / len(tried) for task, tried in values.items()}
