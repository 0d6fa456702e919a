"""Choose the learning rate of a row in a column, on seeds and a budget that do not count."""

from __future__ import annotations

from ...algos.runs.run_dir import read_metrics
from ...algos.training.trainer import settled_heap
from .cell import Cell, ColumnResult, SearchResult, State, TriedRate
from .layout import Layout
from .measure import mean_over_budget
from .suite import RateSearch, Suite
from .train_cell import (
    RefusedCellError,
    make_train_config,
    open_trainer,
    read_cost,
    read_training,
)


def search_rate(
    suite: Suite, recipe: str, start: ColumnResult, plan: RateSearch, layout: Layout
) -> SearchResult:
    """Try every rate with every search seed, or go on with an interrupted search.

    A recipe that imitates has no rollouts of its own to choose by; it keeps its rate.

    Args:
        suite: The suite.
        recipe: Label of the row.
        start: The start of the column.
        plan: The search.
        layout: The folder; the result is written there after every trial.

    Returns:
        The result, ``finished`` or ``refused``.

    Raises:
        TurngymError: Training failed.
        KeyboardInterrupt: The finished trials are kept.
    """
    found = layout.search(suite, recipe, start.column)
    tried = list(found.tried) if found is not None else []
    done = {(trial.rate, trial.seed) for trial in tried}

    def result(state: State, reason: str = "") -> SearchResult:
        rate = best_rate(tried, plan.rates) if state == "finished" else None
        return make_search(suite, recipe, start.column, state, reason).model_copy(
            update={"tried": tuple(tried), "rate": rate}
        )

    for seed in plan.seeds:
        for rate in plan.rates:
            if (rate, seed) in done:
                continue
            try:
                cell = Cell(recipe=recipe, column=start.column, seed=seed)
                trial = try_rate(suite, cell, start, rate, layout)
            except RefusedCellError as refusal:
                return result("refused", str(refusal))
            if trial is None:
                return result("finished", "trained on the expert's episodes: its own rate")
            tried.append(trial)
            result("interrupted", "stopped").write(layout.search_file(recipe, start.column))
    return result("finished")


def try_rate(
    suite: Suite, cell: Cell, start: ColumnResult, rate: float, layout: Layout
) -> TriedRate | None:
    """Train a row with a rate; None where the rollouts are not the policy's own.

    Args:
        suite: The suite; it has a search.
        cell: The row, the column and the search seed.
        start: The start of the column.
        rate: Learning rate of the policy.
        layout: The folder.

    Raises:
        RefusedCellError: The recipe cannot be trained there.
    """
    assert suite.lr_search is not None
    column = suite.column(cell.column)
    limits = column.limits.part(suite.lr_search.share)
    config = make_train_config(suite, cell, start, cell.seed, limits, rate)
    if not config.recipe.rollout.samples:
        return None
    folder = layout.search_dir(cell, rate)
    with open_trainer(config, folder) as trainer, settled_heap():
        trainer.run()
    rows = read_metrics(folder / "metrics.jsonl")
    area = mean_over_budget(read_training(config, rows, column.measure), limits.tokens)
    return TriedRate(rate=rate, seed=cell.seed, area=area, used=read_cost(rows))


def best_rate(tried: list[TriedRate], rates: tuple[float, ...]) -> float | None:
    """Return the rate with the largest mean area, the first of equal ones; None without an area."""
    means = {}
    for rate in rates:
        areas = [trial.area for trial in tried if trial.rate == rate and trial.area is not None]
        if areas:
            means[rate] = sum(areas) / len(areas)
    return max(means, key=lambda rate: means[rate]) if means else None


def make_search(
    suite: Suite, recipe: str, column: str, state: State, reason: str = ""
) -> SearchResult:
    """Make the result of a search without trials."""
    return SearchResult(
        suite_digest=suite.digest,
        digest=suite.search_digest(recipe, column),
        recipe=recipe,
        column=column,
        state=state,
        reason=reason,
    )
