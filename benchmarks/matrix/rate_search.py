"""Choose the learning rate of a row in a column, on seeds and a budget that do not count."""

from __future__ import annotations

import gc

from ...algos.runs.run_dir import read_metrics
from ...algos.training.config import TrainConfig
from ...envs.utils.garbage_collection import settled_heap
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
    tried = {} if found is None else {(trial.rate, trial.seed): trial for trial in found.tried}

    def result(state: State, reason: str = "", rate: float | None = None) -> SearchResult:
        return make_search(suite, recipe, start.column, state, reason).model_copy(
            update={"tried": tuple(tried.values()), "rate": rate}
        )

    try:
        first = Cell(recipe=recipe, column=start.column, seed=plan.seeds[0])
        own = trial_config(suite, first, start, plan).recipe
        if not own.rollout.samples:
            return result("finished", "trained on the expert's episodes: its own rate")
        rates = {scale: scale * own.optim.lr for scale in plan.scales}
        for seed in plan.seeds:
            for rate in rates.values():
                if (rate, seed) not in tried:
                    cell = Cell(recipe=recipe, column=start.column, seed=seed)
                    tried[rate, seed] = try_rate(suite, cell, start, plan, rate, layout)
                    stopped = result("interrupted", "stopped")
                    stopped.write(layout.search_file(recipe, start.column))
    except RefusedCellError as refusal:
        return result("refused", str(refusal))
    areas = {s: [tried[rate, seed].area for seed in plan.seeds] for s, rate in rates.items()}
    return result("finished", rate=rates[plan.choose(areas)])


def trial_config(
    suite: Suite, cell: Cell, start: ColumnResult, plan: RateSearch, rate: float | None = None
) -> TrainConfig:
    """Make the configuration of a trial: the cell's with the search's share of its budget.

    Args:
        suite: The suite.
        cell: The row, the column and the search seed.
        start: The start of the column.
        plan: The search.
        rate: Learning rate of the policy; None takes the row's own there.

    Raises:
        RefusedCellError: The recipe's settings are invalid.
    """
    limits = suite.column(cell.column).limits.part(plan.share)
    return make_train_config(suite, cell, start, cell.seed, limits, rate)


def try_rate(
    suite: Suite, cell: Cell, start: ColumnResult, plan: RateSearch, rate: float, layout: Layout
) -> TriedRate:
    """Train a row with a rate.

    Args:
        suite: The suite.
        cell: The row, the column and the search seed.
        start: The start of the column.
        plan: The search.
        rate: Learning rate of the policy.
        layout: The folder.

    Raises:
        RefusedCellError: The recipe cannot be trained there.
    """
    config = trial_config(suite, cell, start, plan, rate)
    folder = layout.search_dir(cell, rate)
    with open_trainer(config, folder) as trainer, settled_heap():
        trainer.run()
    del trainer
    gc.collect()  # its models form reference cycles: those of all trials would stay until the end
    rows = read_metrics(folder / "metrics.jsonl")
    column = suite.column(cell.column)
    curve = read_training(config, rows, column.measure)
    area = mean_over_budget(curve, column.limits.part(plan.share).tokens)
    return TriedRate(rate=rate, seed=cell.seed, area=area, used=read_cost(rows))


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
