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
    """A recipe over the common environments; all on the normalised scale unless said.

    Attributes:
        recipe: The recipe.
        mean: Mean over environments.
        middle: Interquartile mean over environments.
        tokens_area: Mean over the budget of sampled tokens.
        calls_area: Mean over the budget of calls.
        improves: Probability that a run of it scores above one of the baseline; None for itself.
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
        baseline: What they are tested against; empty when it has no score.
        ranks: One per recipe.
        left_out: Recipes with too few scores to be compared.
    """

    envs: list[str]
    baseline: str
    ranks: list[Rank]
    left_out: list[str]


@dataclass(frozen=True)
class Cost:
    """What one recipe cost, over its finished cells.

    Attributes:
        recipe: The recipe.
        cells: Finished cells.
        tokens: Tokens sampled, in all.
        calls: Actions taken, in all.
        steps: Training steps, in all.
        seconds: Wall time, in all.
        tokens_share: Share of the token budget that a cell used, mean; above 1 by its last step.
        calls_share: The same of calls.
        ended_by: How many cells ended by which limit.
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


def ranking(results: Results, baseline: str) -> Ranking:
    """Compare the recipes that have environments in common."""
    recipes = results.ranked()
    envs = results.common(recipes)
    known = baseline if baseline in recipes else ""
    others = [recipe for recipe in recipes if known and recipe != known]
    tests = {r: paired(*_on_same_tasks(results, r, known, envs)) for r in others}
    adjusted = dict(zip(others, holm([tests[r].p_value for r in others]), strict=True))
    ranks = [
        Rank(
            recipe=recipe,
            mean=two_stage({e: results.values(recipe, e) for e in envs}),
            middle=two_stage({e: results.values(recipe, e) for e in envs}, interquartile_mean),
            tokens_area=area(results, recipe, envs, "tokens"),
            calls_area=area(results, recipe, envs, "calls"),
            improves=_improves(results, recipe, known, envs) if recipe in tests else None,
            against=tests.get(recipe),
            adjusted=adjusted.get(recipe),
            passes=passes(results, recipe, envs),
        )
        for recipe in recipes
    ]
    ranks.sort(key=lambda rank: (-rank.middle.mean, -rank.mean.mean, rank.recipe))
    left_out = [recipe for recipe in results.recipes if recipe not in recipes]
    return Ranking(envs=envs, baseline=known, ranks=ranks, left_out=left_out)


def costs(results: Results) -> list[Cost]:
    """Return the costs of every recipe with a finished cell."""
    found = []
    for recipe in results.recipes:
        runs = [run for env_id in results.envs for run in results.runs(recipe, env_id)]
        if not runs:
            continue
        limits = [results.suite.env(run.cell.env_id).limits for run in runs]
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


def area(results: Results, recipe: str, envs: Sequence[str], unit: str) -> float:
    """Mean area under the normalised learning curves, over runs and then environments."""
    found = []
    for env_id in envs:
        scale = results.scale(env_id)
        limit = getattr(results.suite.env(env_id).limits, unit)
        runs = results.runs(recipe, env_id)
        if scale is None or not runs:
            continue
        areas = [
            area_under(
                [getattr(point, unit) for point in run.curve],
                [scale.put(point.return_) for point in run.curve],
                limit,
            )
            for run in runs
        ]
        found.append(sum(areas) / len(areas))
    return sum(found) / len(found)


def passes(results: Results, recipe: str, envs: Sequence[str]) -> dict[int, tuple[float, float]]:
    """pass@k and pass^k for every k up to the suite's trials: means of tasks, runs, environments.

    A task whose environment broke in some of its tries counts up to the tries that are left.
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
    worlds = []
    for env_id in envs:
        runs = []
        for run in results.runs(recipe, env_id):
            assert run.tries is not None
            tasks = [tried for tried in run.tries.by_task("solved").values() if len(tried) >= k]
            if tasks:
                runs.append(np.mean([rule(int(sum(tried)), len(tried), k) for tried in tasks]))
        if runs:
            worlds.append(np.mean(runs))
    return float(np.mean(worlds)) if worlds else None


def _improves(results: Results, recipe: str, baseline: str, envs: Sequence[str]) -> float:
    """Mean over environments of the chance that a run beats one of the baseline."""
    chances = [
        improvement(
            [float(np.mean(run)) for run in results.values(recipe, env_id)],
            [float(np.mean(run)) for run in results.values(baseline, env_id)],
        )
        for env_id in envs
    ]
    return sum(chances) / len(chances)


def _on_same_tasks(
    results: Results, ours: str, theirs: str, envs: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Normalised returns of all tasks that both have tried, a mean over tries and seeds each."""
    left: list[float] = []
    right: list[float] = []
    for env_id in envs:
        mine, other = (_task_means(results, recipe, env_id) for recipe in (ours, theirs))
        for task in sorted(mine.keys() & other.keys()):
            left.append(mine[task])
            right.append(other[task])
    return left, right


def _task_means(results: Results, recipe: str, env_id: str) -> dict[str, float]:
    scale = results.scale(env_id)
    assert scale is not None
    values: dict[str, list[float]] = {}
    for run in results.runs(recipe, env_id):
        assert run.tries is not None
        for task, tried in run.tries.by_task("returns").items():
            values.setdefault(task, []).extend(scale.put(value) for value in tried)
    return {task: sum(tried) / len(tried) for task, tried in values.items()}
