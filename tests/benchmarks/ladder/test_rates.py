"""Learning rates of the ladder: another one than the family's needs a clear lead."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.made_ladder import fill_ladder, small_ladder, write_cell

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.ladder.families import (
    AT_HIGH_END,
    AT_LOW_END,
    FAMILIES,
    WIDE_RATES,
    find_family,
)
from turngym.benchmarks.ladder.rates import (
    at_chosen_rates,
    choose_rates,
    list_changes,
    margin_of,
    search_cost,
)
from turngym.benchmarks.ladder.stale_suites import (
    CHOOSING,
    COMPARING,
    GRID_RATES,
    LADDER_STALE_GRID,
    grid_label,
)
from turngym.benchmarks.ladder.suites import (
    AGAIN,
    LADDER,
    LADDER_EDGE_RATES,
    LADDER_RATES,
    RATE_SEARCH,
    column_of,
)
from turngym.benchmarks.matrix.cell import Cell
from turngym.benchmarks.matrix.results import Results
from turngym.benchmarks.matrix.suite import Suite
from turngym.envs.core.errors import BadValueError

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
PACKED = RESULTS / "ladder-rates.jsonl.gz"
WIDER = RESULTS / "ladder-edge-rates.jsonl.gz"


def part() -> Suite:
    """The search of one family with two rows."""
    columns = [e for e in LADDER_RATES.envs if e.name.startswith("Judge-")]
    kept = [c.model_copy(update={"rows": ["grpo", "ppo"]}) for c in columns]
    rows = tuple(row for row in LADDER_RATES.recipes if row.label in ("grpo", "ppo"))
    return LADDER_RATES.model_copy(update={"envs": tuple(kept), "recipes": rows})


def edges() -> Suite:
    """The search beyond the grid of one family with two rows."""
    columns = [e for e in LADDER_EDGE_RATES.envs if e.name.startswith("Judge-")]
    rows = ["tarl", "treegrpo"]
    kept = tuple(c.model_copy(update={"rows": rows}) for c in columns)
    recipes = tuple(row for row in LADDER_EDGE_RATES.recipes if row.label in rows)
    return LADDER_EDGE_RATES.model_copy(update={"envs": kept, "recipes": recipes})


def fill(folder: Path, suite: Suite) -> None:
    def wanted(row: str, column: str) -> tuple[float, float]:
        slow = column.endswith("-0.3")
        return (0.6 if slow else 0.0) if row == "ppo" else 0.5, 0.5

    fill_ladder(folder, suite, wanted)


def test_the_ladders_rates_are_those_of_the_packed_search() -> None:
    chosen = choose_rates(Results.read(PACKED))
    assert [(one.family, one.row) for one in chosen] == [
        (family.name, row) for family in FAMILIES.values() for row in family.rows
    ]
    assert {one.family: one.own for one in chosen} == {f.name: f.lr for f in FAMILIES.values()}
    rates = {family.name: dict(family.rates) for family in FAMILIES.values() if family.rates}
    assert list_changes(chosen) == rates


def test_rows_whose_largest_area_is_at_an_end_of_the_grid_are_tried_beyond_it() -> None:
    """Every such row, beyond that end, with the settings and the seeds of the search."""
    at: dict[str, dict[str, set[str]]] = {"low": {}, "high": {}}
    for one in choose_rates(Results.read(PACKED)):
        if one.end:
            at[one.end].setdefault(one.family, set()).add(one.row)
    assert at["low"] == {family: set(rows) for family, rows in AT_LOW_END.items()}
    assert at["high"] == {family: set(rows) for family, rows in AT_HIGH_END.items()}
    known = {column.name: column for column in LADDER_RATES.envs}
    scales: dict[tuple[str, str], set[float]] = {}
    for column in LADDER_EDGE_RATES.envs:
        family, _, scale = column.name.partition("-rate-")
        for row in column.rows:
            scales.setdefault((family, row), set()).add(float(scale))
        rate = float(scale) * FAMILIES[family].lr
        settings = {**known[f"{family}-rate-1"].recipe_settings, "optim.lr": rate}
        own = {"name": column.name, "rows": column.rows, "recipe_settings": settings}
        assert column == known[f"{family}-rate-1"].model_copy(update=own)
    beyond = {"low": {0.1, 0.03}, "high": {4.0, 8.0}}
    assert scales == {
        (family, row): {*RATE_SEARCH.scales, *beyond[end]}
        for end, families in at.items()
        for family, rows in families.items()
        for row in rows
    }
    assert LADDER_EDGE_RATES.seeds == LADDER_RATES.seeds


def test_the_rates_of_the_wider_grid_are_those_of_its_packed_search() -> None:
    chosen = choose_rates(Results.read(WIDER))
    assert {(one.family, one.row) for one in chosen if one.moved} == {
        ("Corridor", "spo"),
        ("Keys", "treegrpo"),
        ("Judge", "tarl"),
        ("Spawn", "ppo"),
    }
    assert {(one.family, one.row) for one in chosen if one.end} == {
        ("Keys", "arpo"),
        ("Keys", "spo"),
        ("Fog", "reinforcepp"),
    }
    for family, rates in WIDE_RATES.items():
        own, rows = FAMILIES[family], {*AT_LOW_END.get(family, ()), *AT_HIGH_END.get(family, ())}
        found = {one.row: one for one in chosen if one.family == family}
        assert found.keys() >= rows
        if family in ("Corridor", "Keys", "Spawn"):
            assert {row: one.rate for row, one in found.items() if one.moved} == rates
            continue
        assert rates == {
            row: one.best for row, one in found.items() if one.best != own.rates.get(row, own.lr)
        }


def test_a_rate_beyond_the_grid_has_to_lead_the_one_within_it(tmp_path: Path) -> None:
    """TARL's area rises up to four times the rate; that of trees by less than the margin there."""

    def wanted(row: str, column: str) -> tuple[float, float]:
        scale = column.partition("-rate-")[2]
        best = 0.8 if row == "tarl" else 0.62
        return {"0.3": 0.2, "1": 0.4, "2": 0.6, "4": best, "8": 0.5}[scale], 0.5

    fill_ladder(tmp_path, edges(), wanted, spread=0.0)
    found = {one.row: one for one in choose_rates(Results.read(tmp_path))}
    assert {row: (one.first, one.scale, one.moved) for row, one in found.items()} == {
        "tarl": (2.0, 4.0, True),
        "treegrpo": (2.0, 2.0, False),
    }
    assert {one.end for one in found.values()} == {""}


def test_a_row_that_collapses_at_the_familys_rate_gets_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path, part())
    results = Results.read(tmp_path)
    chosen = choose_rates(results)
    judge = find_family("Judge")
    assert {one.row: one.rate for one in chosen} == {"grpo": judge.lr, "ppo": 0.3 * judge.lr}
    assert list_changes(chosen) == {"Judge": {"ppo": 0.3 * judge.lr}}
    assert search_cost(results).tokens == sum(r.used.tokens for r in results.cells.values()) > 0
    main(["bench", "--report", str(tmp_path)])
    assert "2 rows on families" in capsys.readouterr().out


def test_rows_without_all_trials_are_not_chosen(tmp_path: Path) -> None:
    suite = part()
    fill(tmp_path, suite)
    (tmp_path / "cells" / "ppo--Judge-rate-2--s101.json").unlink()
    assert [one.row for one in choose_rates(Results.read(tmp_path))] == ["grpo"]


def test_results_of_another_suite_are_refused(tmp_path: Path) -> None:
    suite = small_ladder("Judge", rows=["grpo"], seeds=2)
    fill_ladder(tmp_path, suite, lambda row, column: (0.5, 0.5))
    with pytest.raises(BadValueError, match="ladder-rates"):
        choose_rates(Results.read(tmp_path))


def test_seeds_of_the_search_count_nowhere_else() -> None:
    offsets = {row.seed_offset for row in LADDER.recipes}
    used = {seed + offset for seed in range(10) for offset in offsets}
    assert not used & set(RATE_SEARCH.seeds)
    assert LADDER_RATES.seeds == RATE_SEARCH.seeds
    assert all(AGAIN not in column.rows for column in LADDER_RATES.envs)


def test_a_rate_of_a_family_is_that_of_its_row_in_every_column() -> None:
    judge = FAMILIES["Judge"].model_copy(update={"rates": {"grpo": 1e-4}})
    made = column_of(judge, 4)
    suite = LADDER.model_copy(update={"envs": (made,)})
    assert suite.row_settings("grpo", made.name) == {"optim.lr": 1e-4}
    assert suite.row_settings(AGAIN, made.name) == {"optim.lr": 1e-4}
    assert suite.row_settings("ppo", made.name) == {}


def grid(folder: Path, best: dict[str, float]) -> Results:
    """The grid with some losses, each with its largest area at a rate, on the seeds that choose.

    On the others all rates are equal.
    """
    labels = [grid_label(loss, rate) for loss in best for rate in GRID_RATES]
    kept = [*labels, AGAIN]
    suite = LADDER_STALE_GRID.model_copy(
        update={
            "recipes": tuple(row for row in LADDER_STALE_GRID.recipes if row.label in kept),
            "envs": tuple(
                e.model_copy(update={"rows": kept, "eval_tasks": 10})
                for e in LADDER_STALE_GRID.envs
            ),
            "trials": 1,
        }
    )
    layout = fill_ladder(folder, suite, lambda row, column: (0.5, 0.5), spread=0.0)
    for loss, rate in best.items():
        for seed in CHOOSING:
            cell = Cell(recipe=grid_label(loss, rate), column="Stale-16", seed=seed)
            write_cell(layout, suite, cell, 0.6, 0.5)
    return Results.read(folder)


def test_a_loss_of_the_grid_has_the_rate_that_its_choosing_seeds_chose(tmp_path: Path) -> None:
    whole = grid(tmp_path, {"grpo": 6e-4, "dppo": 2e-3})
    at_best = at_chosen_rates(whole)
    assert at_best.recipes == ["grpo", "dppo", AGAIN]
    assert at_best.suite.yardsticks == {AGAIN: "grpo"}
    assert at_best.suite.recipe("dppo").settings["optim.lr"] == 2e-3
    # what chose is not compared
    assert at_best.areas("dppo", "Stale-16") == dict.fromkeys(COMPARING, 0.5)
    assert at_best.areas("dppo", "Stale-control").keys() == {*COMPARING}
    assert len(at_best.cells) == 3 * 2 * len(COMPARING)
    assert at_best.suite.column("Stale-16").rows == at_best.recipes
    assert margin_of(at_best.suite) == 0 < margin_of(LADDER)


def test_the_grid_s_a_a_row_goes_where_its_twin_has_another_rate(tmp_path: Path) -> None:
    assert at_chosen_rates(grid(tmp_path, {"grpo": 1e-3, "dppo": 3e-4})).recipes == ["grpo", "dppo"]


def test_rates_of_other_suites_stay(tmp_path: Path) -> None:
    fill_ladder(tmp_path, small_ladder("Rare"), lambda row, column: (0.5, 0.5))
    results = Results.read(tmp_path)
    assert at_chosen_rates(results) is results
