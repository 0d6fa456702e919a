"""Recipes against each other, from results made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.tiny_matrix import filled, finished, tiny

from turngym.benchmarks.matrix.cell import Cell, TrainingCurve
from turngym.benchmarks.matrix.comparison import ONE_SEED
from turngym.benchmarks.matrix.curves import Line, budget_lines, env_lines
from turngym.benchmarks.matrix.plots import label, nice_ticks, plot, short
from turngym.benchmarks.matrix.ranking import (
    Rank,
    Ranking,
    collect_costs,
    compare_by_column,
    rank_recipes,
)
from turngym.benchmarks.matrix.report import write_report
from turngym.benchmarks.matrix.results import Results, Scale, Spread, over_seeds
from turngym.benchmarks.matrix.train_cell import make_result
from turngym.envs.core.errors import DataError
from turngym.envs.utils.seed_tests import Edges
from turngym.envs.utils.statistics import holm

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
    # training rises to 5/8 in four steps: 1/4, 2/4, 3/4, 4/4 of it
    assert best.area.mean == pytest.approx(5 / 8 * 5 / 8)
    assert (best.area.n, best.area.low95) == (1, None)
    assert best.against is not None
    assert (best.against.test, best.against.verdict) == (None, "not decided")
    assert best.against.why == ONE_SEED
    assert base.against is None
    assert best.sampled is not None
    assert best.greedy is not None
    assert best.sampled.mean == pytest.approx(5 / 8)
    assert (best.tokens, best.optimizer_steps) == (60, 8)
    # of four tasks two are always solved, one at times, one never
    assert best.passes == {1: (5 / 8, 5 / 8), 2: (3 / 4, 1 / 2)}
    assert base.passes == {1: (1 / 8, 1 / 8), 2: (1 / 4, 0.0)}


def seeded(tmp_path: Path, ours: list[float], theirs: list[float]) -> Results:
    """PPO, GRPO and GRPO again; each seed solves so many of four tasks."""
    suite = tiny(seeds=range(len(ours)), trials=1)
    suite = suite.model_copy(update={"recipes": (*suite.recipes, suite.recipes[0].again())})

    def returns(cell: Cell) -> list[list[float]]:
        solved = {"ppo": ours, "grpo": theirs, "grpo again": theirs[::-1]}[cell.recipe][cell.seed]
        return [[float(i < solved) for i in range(4)]]

    filled(tmp_path, suite, returns)
    return Results.read(tmp_path)


def test_seeds_decide(tmp_path: Path) -> None:
    found = rank_recipes(seeded(tmp_path, [3, 4, 3, 4, 4], [0, 1, 1, 0, 1]), "grpo")
    best = found.ranks[0].against
    assert best is not None
    assert best.test is not None
    gaps = [g / 4 * 5 / 8 for g in (3, 3, 2, 4, 3)]
    assert best.test.difference == pytest.approx(sum(gaps) / 5)
    assert best.test.paired
    assert best.adjusted == best.test.p_value
    assert best.verdict == "above"
    (again,) = found.yardsticks
    assert again.recipe == "grpo again"
    assert again.against is not None
    assert again.against.test is not None
    assert (again.against.other, again.against.test.paired) == ("grpo", False)
    assert again.against.test.difference == pytest.approx(0.0)
    assert "grpo again" not in [rank.recipe for rank in found.ranks]
    assert found.left_out == {}


def test_noise_is_not_decided_and_says_how_many_seeds(tmp_path: Path) -> None:
    found = rank_recipes(seeded(tmp_path, [3, 0, 4, 0, 4], [0, 3, 1, 2, 2]), "grpo")
    best = found.ranks[0].against
    assert best is not None
    assert best.verdict == "not decided"
    assert "needs" in best.why


def test_equal_rows_are_equivalent(tmp_path: Path) -> None:
    found = rank_recipes(seeded(tmp_path, [2] * 5, [2] * 5), "grpo")
    assert [rank.against.verdict for rank in found.ranks if rank.against] == ["equivalent"]


@pytest.mark.parametrize(("solved", "end"), [(0, "floor"), (4, "ceiling")])
def test_rows_at_the_same_end_are_not_equivalent(tmp_path: Path, solved: int, end: str) -> None:
    """The area of a run that solves everything is 5/8 here: what a column can reach at best."""
    seeded(tmp_path, [solved] * 5, [solved] * 5)
    declared = {"Bandit-v0": Edges(0.0, 5 / 8)}
    read = Results.read(tmp_path, declared=declared)
    found = rank_recipes(read, "grpo")
    compared = [rank.against for rank in [*found.ranks, *found.yardsticks] if rank.against]
    compared += compare_by_column(read, "grpo").values()
    assert len(compared) == 4
    assert {one.verdict for one in compared} == {"not decided"}
    assert {one.why for one in compared} == {f"both arms are at the {end}"}
    assert not any(one.tested or one.needs for one in compared)
    write_report([tmp_path], declared=declared)
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert f"both arms are at the {end}" in text
        assert "equality there is not equality shown" in text


def test_a_ranking_is_at_an_end_where_every_column_is(tmp_path: Path) -> None:
    suite = tiny(envs=("Bandit-v0", "Password-v0"), seeds=range(5), trials=1)
    for name, learned in (("both", False), ("one", True)):
        filled(
            tmp_path / name,
            suite,
            lambda cell, learned=learned: [
                [float(learned and "Bandit" in cell.column), 0.0, 0.0, 0.0]
            ],
        )
        (best,) = [
            rank.against
            for rank in rank_recipes(Results.read(tmp_path / name), "grpo").ranks
            if rank.against
        ]
        assert best.verdict == ("equivalent" if learned else "not decided")
        assert best.edge == ("" if learned else "both arms are at the floor")


def test_holm_is_over_all_fields(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo", "rloo"), ("Bandit-v0", "Password-v0"), range(5), trials=1)

    def returns(cell: Cell) -> list[list[float]]:
        more = {"ppo": 2, "rloo": 0, "grpo": 0}[cell.recipe] if "Bandit" in cell.column else 0
        return [[float(i < more + (cell.seed + len(cell.recipe)) % 3) for i in range(4)]]

    filled(tmp_path, suite, returns)
    found = compare_by_column(Results.read(tmp_path), "grpo")
    assert len(found) == 4
    tests = [f.test for f in found.values() if f.test is not None]
    assert [f.adjusted for f in found.values()] == holm([test.p_value for test in tests])


def test_another_measure_is_put_on_the_scale_of_its_players(tmp_path: Path) -> None:
    suite = tiny(("grpo",), seeds=(0, 1), trials=1)
    column = suite.envs[0].model_copy(update={"measure": "right"})
    suite = suite.model_copy(update={"envs": (column,)})
    layout = filled(tmp_path, suite, lambda cell: [[1.0, 1.0, 1.0, 1.0]])
    start = layout.column(suite, "Bandit-v0")
    assert start is not None
    measured = {
        name: tried.model_copy(update={"measured": [[value] * 4]})
        for (name, tried), value in zip(start.reference.items(), (0.75, 0.25), strict=True)
    }
    start.model_copy(update={"reference": measured}).write(layout.column_file("Bandit-v0"))
    found = Results.read(tmp_path)
    assert found.measure_scale("Bandit-v0") == Scale(random=0.25, expert=0.75)
    assert found.areas("grpo", "Bandit-v0") == {0: pytest.approx(0.75), 1: pytest.approx(0.75)}
    assert found.edges("Bandit-v0") == (0.0, None)  # the random player; an expert is no ceiling
    known = Results.read(tmp_path, declared={"Bandit-v0": Edges(0.3, 0.8)}).edges("Bandit-v0")
    assert known == (pytest.approx(0.1), pytest.approx(1.1))


def test_rows_are_not_compared_by_a_measure_without_a_scale(tmp_path: Path) -> None:
    suite = tiny(seeds=range(5), trials=1)
    turns = suite.envs[0].model_copy(update={"measure": "turns"})
    suite = suite.model_copy(update={"envs": (turns,)})
    takes = {"grpo": 4.0, "ppo": 6.0}
    layout = filled(tmp_path, suite, lambda cell: [[takes[cell.recipe] + cell.seed / 100] * 4])
    start = layout.column(suite, "Bandit-v0")
    assert start is not None
    measured = {  # the expert takes fewer turns than the random player
        name: tried.model_copy(update={"measured": [[value] * 4]})
        for (name, tried), value in zip(start.reference.items(), (3.0, 10.0), strict=True)
    }
    start.model_copy(update={"reference": measured}).write(layout.column_file("Bandit-v0"))
    found = Results.read(tmp_path)
    assert compare_by_column(found, "grpo") == {}  # more turns are not "above"
    assert list(rank_recipes(found, "grpo").missing.values()) == [["Bandit-v0"]]
    page, text = (path.read_text() for path in write_report([tmp_path]))
    for said in (page, text):
        assert "no rows are compared" in said
        assert "2.51 (2.5" in said  # turns, and not points: 5/8 of 4.02
        assert "251." not in said


def test_sharpening_is_what_greedy_decoding_did_not_gain(tmp_path: Path) -> None:
    suite = tiny(("grpo",), trials=1)
    row = [[1.0, 1.0, 1.0, 0.0]]
    filled(tmp_path, suite, lambda cell: finished(suite, cell, row, greedy=1.0), before=0.5)
    place = Results.read(tmp_path).place("grpo", "Bandit-v0")
    assert place.sharpening is not None
    # sampled from 1/2 to 3/4, greedy from 1/2 to 1
    assert place.sharpening.mean == pytest.approx(-1 / 4)


def test_a_row_that_a_column_leaves_out_is_no_missing_result(tmp_path: Path) -> None:
    suite = tiny(envs=("Bandit-v0", "Password-v0", "Keys-v0"))
    first, *others = suite.envs
    fewer = (column.model_copy(update={"rows": ["grpo"]}) for column in others)
    filled(tmp_path, suite.model_copy(update={"envs": (first, *fewer)}), lambda _: GOOD)
    found = rank_recipes(Results.read(tmp_path), "grpo").missing
    assert found == {"ppo: not in this column of the suite": ["Password-v0", "Keys-v0"]}


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
    ranking = rank_recipes(found, "grpo")
    assert ranking.envs == ["Bandit-v0"]
    assert ranking.missing == {"ppo: 1 of 1 seeds failed": ["Password-v0"]}
    for page in write_report([tmp_path]):  # a mean without the column where a row broke says so
        said = page.read_text().split("not in this mean")[1]
        assert "Password-v0 (ppo: 1 of 1 seeds failed)" in said[:90]
    place = found.place("ppo", "Password-v0")
    assert (place.state, place.reason, place.sampled, place.area) == ("failed", "a bug", None, None)


def test_a_row_that_lost_a_seed_is_not_called_better_by_the_others(tmp_path: Path) -> None:
    suite = tiny(seeds=range(6), trials=1)

    def returns(cell: Cell) -> object:
        if (cell.recipe, cell.seed) == ("ppo", 5):
            return make_result(suite, cell, "failed", "the loss is not finite")
        return [[float(i < (3 if cell.recipe == "ppo" else cell.seed % 2)) for i in range(4)]]

    filled(tmp_path, suite, returns)
    found = Results.read(tmp_path)
    compared = compare_by_column(found, "grpo")["ppo", "Bandit-v0"]
    assert compared.seeds == 5
    assert (compared.verdict, compared.why) == (
        "not decided",
        "1 of 6 seeds of ppo failed: the others are no fair sample",
    )
    missing = [found.place(row, "Bandit-v0").missing for row in ("grpo", "ppo")]
    assert missing == ["", "5 of 6 seeds"]
    for page in write_report([tmp_path]):
        assert "5 of 6 seeds" in page.read_text()
    (tmp_path / "cells" / "ppo--Bandit-v0--s5.json").unlink()
    assert compare_by_column(Results.read(tmp_path), "grpo")["ppo", "Bandit-v0"].verdict == "above"


def test_a_recipe_without_a_score_is_not_ranked(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo"))
    filled(
        tmp_path,
        suite,
        lambda cell: make_result(suite, cell, "refused", "no") if cell.recipe == "ppo" else GOOD,
    )
    found = rank_recipes(Results.read(tmp_path), "grpo")
    assert [rank.recipe for rank in found.ranks] == ["grpo"]
    assert found.left_out == {"ppo": "no finished cell"}


def test_a_recipe_that_imitates_is_not_ranked_by_the_experts_success(tmp_path: Path) -> None:
    suite = tiny(("grpo", "sft"))
    nothing = {"training": TrainingCurve(), "area": None}
    filled(
        tmp_path,
        suite,
        lambda cell: (
            finished(suite, cell, GOOD).model_copy(update=nothing) if cell.recipe == "sft" else GOOD
        ),
    )
    found = rank_recipes(Results.read(tmp_path), "grpo")
    assert "expert's episodes" in found.left_out["sft"]


def test_seeds_count_the_same(tmp_path: Path) -> None:
    suite = tiny(("grpo",), seeds=(0, 1))
    filled(tmp_path, suite, lambda cell: [[1.0] * 4] if cell.seed else [[0.0] * 4])
    place = Results.read(tmp_path).place("grpo", "Bandit-v0")
    assert place.sampled is not None
    # Student's t of 0 and 1: half the range times 12.7062, of which a share has what it can be
    wide = over_seeds([0.0, 1.0])
    assert wide is not None
    assert wide.high95 == pytest.approx(0.5 + 12.7062 / 2, abs=1e-4)
    assert (place.sampled.mean, place.sampled.low95, place.sampled.high95) == (0.5, 0.0, 1.0)


def test_curves_end_where_their_runs_do(tmp_path: Path) -> None:
    found = results(tmp_path, seeds=(0, 1))
    by_tokens = env_lines(found, "Bandit-v0", "tokens")[1]
    # half of the calls are used: a line up to all of them would say what nobody played
    by_calls = budget_lines(found, ["ppo"], ["Bandit-v0", "Password-v0"], "calls")[0]
    for line, end in ((by_tokens, 1.0), (by_calls, 0.5)):
        assert line.recipe == "ppo"
        assert (line.spent[0], line.spent[-1]) == (0.0, end)
        # the first of four steps solved a quarter of 5/8, the last all of it
        assert (line.mean[0], line.mean[-1]) == (pytest.approx(5 / 32), pytest.approx(5 / 8))
        assert line.mean[16] == pytest.approx(5 / 16)
        assert line.low == pytest.approx(line.mean)  # both seeds are alike
        assert line.high == pytest.approx(line.mean)


@pytest.mark.parametrize(("end", "marks"), [(0.082, ["0", "5", "10"]), (1.0, ["0", "50", "100"])])
def test_a_plot_ends_near_its_lines(end: float, marks: list[str]) -> None:
    """Lines over the part of a budget that was used lay in the first tenth of the picture."""
    line = Line("grpo", [0.0, end], [0.1, 0.9], [], [])
    drawn = plot([line], {"grpo": 1}, 100.0, ("", "", ""), percent=True)
    assert [tick.label for tick in drawn.x_ticks] == marks
    assert drawn.lines[0].end[0] > (drawn.left + drawn.right) / 2


def test_costs_by_hand(tmp_path: Path) -> None:
    cost = collect_costs(results(tmp_path))[0]
    assert (cost.recipe, cost.cells, cost.used.tokens, cost.used.calls) == ("grpo", 2, 120, 24)
    assert (cost.used.optimizer_steps, cost.search.tokens) == (16, 0)
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
    assert [short(n) for n in (999.7, 999_900, 7e12)] == ["1k", "1M", "7T"]


def test_the_report_counts_the_comparisons_that_were_corrected_together(tmp_path: Path) -> None:
    """Fields of one seed have no test, and stood in the number of comparisons."""
    suite = tiny(envs=("Bandit-v0", "Password-v0"), seeds=range(5), trials=1)

    def returns(cell: Cell) -> object:
        lacks = (cell.recipe, cell.column) == ("ppo", "Password-v0") and cell.seed > 0
        return None if lacks else [[float(i < 1 + cell.seed % 2) for i in range(4)]]

    filled(tmp_path, suite, returns)
    for page in write_report([tmp_path]):
        assert "over all 1 comparison" in page.read_text()


def test_a_part_that_was_chosen_says_what_its_correction_leaves_out(tmp_path: Path) -> None:
    suite = tiny(envs=("Bandit-v0", "Password-v0"), seeds=range(5), trials=1)
    layout = filled(tmp_path, suite, lambda cell: GOOD if cell.column == "Bandit-v0" else None)
    layout.choose(["column=Bandit-v0"])
    for page in write_report([tmp_path]):
        assert "for the comparisons shown here alone" in page.read_text()


def test_a_solid_line_does_not_hide_an_equal_one_of_dashes() -> None:
    lines = [Line(row, [0.0, 1.0], [0.2, 0.6], [], []) for row in ("grpo", "ppo", "rloo")]
    drawn = plot(lines, {"grpo": 1, "ppo": 2}, 100.0, ("", "", "")).lines
    assert [line.recipe for line in drawn] == ["rloo", "grpo", "ppo"]


def test_a_tie_has_no_leader() -> None:
    def rank(name: str, low: float | None, high: float | None, n: int = 5) -> Rank:
        spread = Spread(mean=((low or 0.0) + (high or 0.0)) / 2, n=n, low95=low, high95=high)
        return Rank(name, spread, None, None, None, 0.0, 0.0, None, {})

    def leader(*ranks: Rank) -> str | None:
        found = Ranking([], "", list(ranks), [], {}).leader
        return found.recipe if found else None

    assert leader(rank("a", 0.6, 0.7), rank("b", 0.4, 0.5)) == "a"
    assert leader(rank("a", 0.6, 0.7), rank("b", 0.4, 0.65)) is None
    assert leader(rank("a", None, None), rank("b", None, None)) is None
    assert leader(rank("a", 0.6, 0.7)) is None
    assert leader(rank("a", 0.6, 0.7, n=4), rank("b", 0.4, 0.5, n=4)) is None  # decide nothing


def test_a_lead_too_small_to_matter_leaves_no_leader(tmp_path: Path) -> None:
    """The headline named a leader of whom the verdict said that the difference does not matter."""
    suite = tiny(seeds=range(5), trials=1, min_effect=0.2)
    solved = {"ppo": 4, "grpo": 3}  # areas of 5/8 and 15/32
    filled(tmp_path, suite, lambda cell: [[float(i < solved[cell.recipe]) for i in range(4)]])
    found = rank_recipes(Results.read(tmp_path), "grpo")
    assert found.ranks[0].against is not None
    assert found.ranks[0].against.verdict == "not decided"
    assert found.leader is None


def test_a_row_at_the_leaders_end_of_the_measure_leaves_no_leader(tmp_path: Path) -> None:
    """The headline named a leader where every verdict below it said that nothing was compared."""
    seeded(tmp_path, [4] * 5, [3] * 5)  # areas of 5/8 and 15/32, no deviation
    assert rank_recipes(Results.read(tmp_path), "grpo").leader is not None
    ends = {"Bandit-v0": Edges(0.0, 0.45)}
    found = rank_recipes(Results.read(tmp_path, declared=ends), "grpo")
    assert found.ranks[0].against is not None
    assert found.ranks[0].against.verdict == "not decided"
    assert found.leader is None
