"""What the recipes cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .results import Results


@dataclass(frozen=True)
class Cost:
    """Of one recipe, over its finished cells.

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


def costs(results: Results) -> list[Cost]:
    """One per recipe with a finished cell."""
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
