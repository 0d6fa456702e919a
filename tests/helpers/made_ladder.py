"""A small ladder, a folder of results that say what a test wants, and an oracle likewise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from helpers.tiny_matrix import column, finished, tries

from turngym.benchmarks.ladder.families import CONTROL, find_family
from turngym.benchmarks.ladder.oracle.forecast import ArmForecast, FamilyForecast, Oracle, judge
from turngym.benchmarks.ladder.suites import LADDER, column_of
from turngym.benchmarks.matrix.cell import Cell
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.suite import Suite
from turngym.envs.utils.seed_tests import compare_seeds, seed_interval

Wanted = Callable[[str, str], tuple[float, float]]
"""Area and final success of a row in a column."""


def small_ladder(*names: str, rows: Sequence[str] = (), seeds: int = 5) -> Suite:
    """A ladder of some families and rows, with the quick sizes and few evaluation tasks."""
    columns = []
    for family in map(find_family, names):
        for size in (*family.quick, CONTROL):
            made = column_of(family, size)
            kept = [label for label in made.rows if not rows or label in rows]
            rates = {label: own for label, own in made.row_settings.items() if label in kept}
            few = {"eval_tasks": 10, "rows": kept, "row_settings": rates}
            columns.append(made.model_copy(update=few))
    used = {label for column in columns for label in column.rows}
    kept = tuple(row for row in LADDER.recipes if row.label in used)
    changes = {"envs": tuple(columns), "recipes": kept, "seeds": tuple(range(seeds)), "trials": 1}
    return LADDER.model_copy(update=changes)


def fill_ladder(folder: Path, suite: Suite, wanted: Wanted, spread: float = 0.01) -> Layout:
    """Write a result for every cell: what is wanted, with noise of its own for every cell."""
    layout = Layout(folder)
    folder.mkdir(parents=True, exist_ok=True)
    layout.claim(suite)
    for env in suite.envs:
        column(suite, env.name).write(layout.column_file(env.name))
    rng = np.random.default_rng(0)
    for cell in suite.cells:
        area, final = wanted(cell.recipe, cell.column)
        write_cell(layout, suite, cell, float(area + spread * rng.standard_normal()), final)
    return layout


def write_cell(layout: Layout, suite: Suite, cell: Cell, area: float, final: float) -> None:
    """Write the result of one cell."""
    solved = [1.0] * round(10 * final) + [0.0] * round(10 * (1 - final))
    made = finished(suite, cell, [solved])
    made.model_copy(update={"area": area, "tries": tries(solved)}).write(layout.cell_file(cell))


def made_oracle(difference: float) -> Oracle:
    """An oracle that saw trees differ by so much on the lottery's middle size."""
    ours = [0.5 + difference + 0.001 * i for i in range(10)]
    theirs = [0.5 + 0.001 * i for i in range(10)]
    test = compare_seeds(ours, theirs, paired=False, bound=0.03)
    base = {"column": "Lottery-0.8", "rate": 0.03, "steps": 51, "actions": 16_000.0}
    rows = (
        ArmForecast(
            arm="grpo",
            area=seed_interval(theirs),
            final=seed_interval(theirs),
            solved_frac=0.5,
            against=None,
            says="cannot show",
            **base,
        ),
        ArmForecast(
            arm="treegrpo",
            area=seed_interval(ours),
            final=seed_interval(ours),
            solved_frac=0.5,
            against=test,
            says=judge(test, control=False),
            **base,
        ),
    )
    found = FamilyForecast(family="Lottery", digest="", baseline="grpo", rows=rows)
    return Oracle(version=1, seeds=10, families=(found,))
