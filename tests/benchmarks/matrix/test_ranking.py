"""Recipes against each other, from results made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.tiny_matrix import filled, tiny

from turngym.benchmarks.matrix.cell import Cell
from turngym.benchmarks.matrix.curves import budget_lines, env_lines
from turngym.benchmarks.matrix.plots import label, nice_ticks, short
from turngym.benchmarks.matrix.ranking import collect_costs, rank_recipes
from turngym.benchmarks.matrix.results import Results
from turngym.benchmarks.matrix.train_cell import make_result
from turngym.envs.core.errors import DataError

GOOD, POOR = [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]], [[0.0] * 4, [1.0, 0.0, 0.0, 0.0]]


def results(tmp_path: Path, **suite: object) -> Results:
    """PPO solves 5 of 8 tries in every environment, GRPO 1 of 8."""
    made = tiny(envs=("Bandit-v0", "Password-v0"), **suite)  # type: ignore[arg-type]
    filled(tmp_path, made, lambda cell: GOOD if cell.recipe == "ppo" else POOR)
    return Results.read(tmp_path)


def test_ranks_by_hand(tmp_path: Path) -> None:
    found = rank_recipes(results(tmp_path), "grpo")
    assert found.envs == ["Bandit-v0", "Password-v0"]
    assert [rank.recipe for rank in found.ranks] == ["ppo", "grpo"]
    best, base = found.ranks
    assert best.middle.mean == best.mean.mean == pytest.approx(5 / 8)
    assert best.middle.low95 < 5 / 8 < best.middle.high95
    # straight from 0 to 5/8 over the whole budget
    assert best.tokens_area == best.calls_area == pytest.approx(5 / 16)
    assert best.improves == 1.0
    assert best.against is not None
    # four tasks an environment: +0.5, +1, +0.5, 0
    assert best.against.n == 8
    assert best.against.difference == pytest.approx(0.5)
    assert best.against.p_value == pytest.approx(2 / 2**6)
    assert best.adjusted == best.against.p_value
    assert (base.improves, base.against, base.adjusted) == (None, None, None)
    # of four tasks two are always solved, one at times, one never
    assert best.passes == {1: (5 / 8, 5 / 8), 2: (3 / 4, 1 / 2)}
    assert base.passes == {1: (1 / 8, 1 / 8), 2: (1 / 4, 0.0)}


def test_a_baseline_that_did_not_run_is_left_out(tmp_path: Path) -> None:
    found = rank_recipes(results(tmp_path), "rloo")
    assert found.baseline == ""
    assert [rank.against for rank in found.ranks] == [None, None]


def test_a_world_that_one_recipe_lacks_is_not_compared(tmp_path: Path) -> None:
    suite = tiny(envs=("Bandit-v0", "Password-v0"))

    def returns(cell: Cell) -> object:
        if cell.recipe == "ppo" and cell.column == "Password-v0":
            return make_result(suite, cell, "failed", "a bug")
        return GOOD

    filled(tmp_path, suite, returns)
    found = Results.read(tmp_path)
    assert rank_recipes(found, "grpo").envs == ["Bandit-v0"]
    place = found.place("ppo", "Password-v0")
    assert (place.state, place.reason, place.success, place.gain) == ("failed", "a bug", None, None)


def test_a_recipe_without_a_score_is_not_ranked(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo"))
    filled(
        tmp_path,
        suite,
        lambda cell: make_result(suite, cell, "refused", "no") if cell.recipe == "ppo" else GOOD,
    )
    found = rank_recipes(Results.read(tmp_path), "grpo")
    assert ([rank.recipe for rank in found.ranks], found.left_out) == (["grpo"], ["ppo"])


def test_gain_is_over_the_start(tmp_path: Path) -> None:
    found = results(tmp_path)
    assert found.place("ppo", "Bandit-v0").gain == pytest.approx(5 / 8)
    assert found.place("grpo", "Bandit-v0").gain == pytest.approx(1 / 8)


def test_seeds_count_the_same(tmp_path: Path) -> None:
    suite = tiny(("grpo",), seeds=(0, 1))
    filled(tmp_path, suite, lambda cell: [[1.0] * 4] if cell.seed else [[0.0] * 4])
    place = Results.read(tmp_path).place("grpo", "Bandit-v0")
    assert place.success is not None
    assert (place.success.mean, place.success.low95, place.success.high95) == (0.5, 0.0, 1.0)


def test_curves_run_over_the_budget(tmp_path: Path) -> None:
    found = results(tmp_path, seeds=(0, 1))
    for line in (
        env_lines(found, "Bandit-v0", "tokens")[1],
        budget_lines(found, ["ppo"], ["Bandit-v0", "Password-v0"], "calls")[0],
    ):
        assert line.recipe == "ppo"
        assert (line.spent[0], line.spent[-1]) == (0.0, 1.0)
        assert (line.mean[0], line.mean[-1]) == (0.0, pytest.approx(5 / 8))
        assert line.mean[16] == pytest.approx(5 / 16)
        assert line.low == pytest.approx(line.mean)  # both seeds are alike
        assert line.high == pytest.approx(line.mean)


def test_costs_by_hand(tmp_path: Path) -> None:
    cost = collect_costs(results(tmp_path))[0]
    assert (cost.recipe, cost.cells, cost.tokens, cost.calls) == ("grpo", 2, 120, 24)
    assert (cost.tokens_share, cost.calls_share) == (1.0, 0.5)
    assert cost.ended_by == {"tokens": 2}


def test_folders_without_results(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no suite\.json"):
        Results.read(tmp_path)
    filled(tmp_path, tiny(), lambda cell: None)
    with pytest.raises(DataError, match="no result of a cell yet"):
        Results.read(tmp_path)


def test_ticks_enclose_and_are_round() -> None:
    assert nice_ticks(0.0, 1.0) == [0.0, 0.25, 0.5, 0.75, 1.0]
    marks = nice_ticks(0.0, 1.0)
    assert [label(m, marks, False) for m in marks] == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert label(3.0, [0.0, 1.0, 2.0, 3.0], False) == "3"
    assert label(0.25, marks, True) == "25"
    assert nice_ticks(-0.3, 0.9) == [-0.5, 0.0, 0.5, 1.0]
    assert nice_ticks(3.0, 3.0)[0] < 3.0 < nice_ticks(3.0, 3.0)[-1]
    assert [short(n) for n in (0, 950, 80_000, 1_250_000)] == ["0", "950", "80k", "1.25M"]
