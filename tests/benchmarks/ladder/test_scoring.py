"""Scores and pages of a ladder from made results: sizes solved, verdicts, stand-ins, the oracle."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.made_ladder import fill_ladder, made_oracle, small_ladder, write_cell

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.ladder.families import find_family
from turngym.benchmarks.ladder.oracle import forecast as forecasts
from turngym.benchmarks.ladder.oracle.forecast import Oracle
from turngym.benchmarks.ladder.plots import draw_radars, size_curves
from turngym.benchmarks.ladder.report import ORACLE_FILE, write_ladder
from turngym.benchmarks.ladder.scoring import FamilyScore, score_ladder, weigh
from turngym.benchmarks.matrix.cell import Cell
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.results import Results
from turngym.benchmarks.matrix.run import lock_folder
from turngym.benchmarks.matrix.train_cell import make_result
from turngym.envs.core.errors import BadValueError

AREAS = {"grpo": 0.5, "grpo again": 0.5, "treegrpo": 0.7, "spo": 0.3}


def wanted(row: str, column: str) -> tuple[float, float]:
    """Trees learn more at every size; the largest size is solved by them alone; controls equal."""
    family, _, size = column.partition("-")
    if size == "control":
        return 0.6, 1.0
    hardest = size == f"{find_family(family).quick[-1]}"
    return AREAS.get(row, 0.5), 0.9 if row == "treegrpo" or not hardest else 0.3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ladder")
    fill_ladder(place, small_ladder("Lottery", "Rare"), wanted)
    return place


@pytest.fixture(scope="module")
def scores(folder: Path) -> list[FamilyScore]:
    return score_ladder(Results.read(folder), made_oracle(0.1), "grpo")


def test_the_score_is_the_largest_size_that_enough_seeds_solve(scores: list[FamilyScore]) -> None:
    lottery = scores[0]
    tree, grpo = lottery.row("treegrpo"), lottery.row("grpo")
    assert tree is not None
    assert grpo is not None
    assert (tree.largest, grpo.largest) == (0.9, 0.8)
    assert tree.level == 1.0
    assert grpo.level == pytest.approx(2 / 3)
    assert [(rung.solved, rung.needed) for rung in grpo.rungs] == [(5, 4), (5, 4), (0, 4)]


def test_four_of_five_seeds_are_enough_and_three_are_not(tmp_path: Path) -> None:
    suite = small_ladder("Rare", rows=("grpo", "treegrpo"))
    layout = fill_ladder(tmp_path, suite, wanted)
    for failing, largest in ((1, 5), (2, 4)):
        for seed in range(failing):
            cell = Cell(recipe="treegrpo", column="Rare-5", seed=seed)
            write_cell(layout, suite, cell, 0.7, 0.7)
        row = score_ladder(Results.read(tmp_path), None, "grpo")[0].row("treegrpo")
        assert row is not None
        assert row.largest == largest


def test_five_seeds_of_ten_are_four_of_five_and_two_seeds_solve_nothing(tmp_path: Path) -> None:
    suite = small_ladder("Rare", rows=("grpo",), seeds=10)
    layout = fill_ladder(tmp_path, suite, lambda row, column: (0.5, 0.9))
    (score,) = score_ladder(Results.read(tmp_path), None, "grpo")
    assert {(rung.solved, rung.needed) for rung in score.rows[0].rungs} == {(10, 8)}
    for cell in suite.cells:
        if cell.seed >= 5 or (cell.column == "Rare-5" and cell.seed >= 2):
            layout.cell_file(cell).unlink()
    (score,) = score_ladder(Results.read(tmp_path), None, "grpo")
    found = [(rung.size, rung.solved, rung.needed) for rung in score.rows[0].rungs]
    assert found == [(3, 5, 4), (4, 5, 4), (5, 2, 4)]
    assert score.rows[0].largest == 4


def test_a_failed_seed_was_run_and_solves_nothing(tmp_path: Path) -> None:
    """Seven of eight seeds solved a size that seven of ten had solved, and no page said why."""
    suite = small_ladder("Rare", rows=("grpo", "treegrpo"), seeds=10)
    layout = fill_ladder(tmp_path, suite, lambda row, column: (0.5, 0.9))
    for seed in range(3):
        cell = Cell(recipe="treegrpo", column="Rare-4", seed=seed)
        make_result(suite, cell, "failed", "diverged").write(layout.cell_file(cell))
    row = score_ladder(Results.read(tmp_path), None, "grpo")[0].row("treegrpo")
    assert row is not None
    rung = row.rung(4)
    assert rung is not None
    assert (rung.solved, rung.seeds, rung.needed, rung.passed) == (7, 10, 8, False)
    _, page = write_ladder([tmp_path])
    assert "not decided: 3 of 10 seeds of treegrpo failed" in page.read_text(encoding="utf-8")


def test_verdicts_are_over_seeds_and_the_control_is_equivalent(scores: list[FamilyScore]) -> None:
    rows = {row.label: row for row in scores[0].rows}
    verdicts = {label: row.middle and row.middle.verdict for label, row in rows.items()}
    assert verdicts["treegrpo"] == "above"
    assert verdicts["spo"] == "below"
    assert verdicts["arpo"] == "equivalent"
    assert verdicts["grpo again"] == "equivalent"
    assert verdicts["grpo"] is None
    equal = {label: row.equal and row.equal.verdict for label, row in rows.items()}
    assert {v for v in equal.values() if v} == {"equivalent"}
    tree = rows["treegrpo"].middle
    assert tree is not None
    assert tree.test is not None
    assert tree.adjusted is not None
    assert (tree.seeds, tree.test.paired) == (5, True)
    assert tree.adjusted > tree.test.p_value  # Holm over the family's rows
    again = rows["grpo again"].middle
    assert again is not None
    assert again.test is not None
    assert not again.test.paired
    assert again.adjusted == again.test.p_value  # it is no part of the family


def test_two_seeds_decide_nothing(tmp_path: Path) -> None:
    fill_ladder(tmp_path, small_ladder("Rare", rows=("grpo", "treegrpo"), seeds=2), wanted)
    row = score_ladder(Results.read(tmp_path), None, "grpo")[0].row("treegrpo")
    assert row is not None
    assert row.middle is not None
    assert row.middle.verdict == "not decided"


def test_a_row_with_another_ones_gradient_has_its_score(scores: list[FamilyScore]) -> None:
    lottery, rare = scores
    assert lottery.stands_in("dapo")
    assert lottery.row("dapo") is lottery.row("grpo")
    assert not rare.stands_in("dapo")
    assert lottery.row("nobody") is None
    radar = next(r for r in draw_radars(scores, ["grpo", "dapo"], "grpo") if r.row == "dapo")
    assert [corner.hollow for corner in radar.corners] == [True, False]
    assert radar.note == "run on 1 of 2 families"
    assert radar.shape.endswith("Z")


def test_a_family_that_was_not_run_breaks_the_shape(scores: list[FamilyScore]) -> None:
    """It was drawn at 0, as if the row had failed there."""
    lottery, rare = scores
    without = replace(rare, rows=tuple(row for row in rare.rows if row.label != "treegrpo"))
    (radar,) = draw_radars([lottery, without, rare], ["treegrpo"], "grpo")
    assert radar.left_out == ["Rare"]
    assert len(radar.corners) == 2
    assert "Z" not in radar.shape
    assert radar.shape.count("M") == 1  # from the third family to the first, round the gap
    assert f"{radar.width / 2:.1f} {radar.height / 2:.1f}" not in radar.shape
    assert radar.reference.endswith("Z")


@pytest.mark.parametrize(
    ("tables", "networks", "says"),
    [
        (0.1, 0.7, "agrees: above"),
        (0.0, 0.7, "contradicts: above, though tables show nothing"),
        (-0.1, 0.7, "contradicts: tables show it below"),
        (0.1, 0.5, "contradicts: tables show it above"),
        (0.0, 0.5, "agrees: equal"),
    ],
)
def test_networks_are_held_against_tables(
    tmp_path: Path, tables: float, networks: float, says: str
) -> None:
    fill_ladder(
        tmp_path,
        small_ladder("Lottery", rows=("grpo", "treegrpo")),
        lambda row, _: (networks if row == "treegrpo" else 0.5, 0.9),
    )
    oracle = made_oracle(tables)
    row = score_ladder(Results.read(tmp_path), oracle, "grpo")[0].row("treegrpo")
    assert row is not None
    assert row.meets == says
    assert row.contradicts == says.startswith("contradicts")
    assert weigh(None, row.middle) == ""


@pytest.mark.parametrize(("seeds", "lost"), [(2, ()), (6, (5,))])
def test_tables_that_show_nothing_do_not_agree_with_what_was_not_tested(
    tmp_path: Path, seeds: int, lost: tuple[int, ...]
) -> None:
    """Two seeds, or a row that diverged 40 points ahead, were said to agree with equal tables."""
    suite = small_ladder("Lottery", rows=("grpo", "treegrpo"))
    suite = suite.model_copy(update={"seeds": tuple(range(seeds))})
    fill_ladder(tmp_path, suite, lambda row, _: (0.9 if row == "treegrpo" else 0.5, 0.9))
    for seed in lost:
        cell = Cell(recipe="treegrpo", column="Lottery-0.8", seed=seed)
        made = make_result(suite, cell, "failed", "diverged")
        made.write(Layout(tmp_path).cell_file(cell))
    row = score_ladder(Results.read(tmp_path), made_oracle(0.0), "grpo")[0].row("treegrpo")
    assert row is not None
    assert row.middle is not None
    assert row.middle.verdict == "not decided"
    assert row.meets == f"not compared: {row.middle.why}"


def test_tables_against_another_baseline_are_not_held_against_networks(folder: Path) -> None:
    """Trees minus SPO was said to agree with what the tables show of trees minus GRPO."""
    made = made_oracle(0.1)
    found = score_ladder(Results.read(folder), made, "spo")[0].row("treegrpo")
    assert found is not None
    assert found.middle is not None
    assert found.middle.other == "spo"
    assert found.meets == ""
    made.write(folder / ORACLE_FILE)
    html, md = (p.read_text(encoding="utf-8") for p in write_ladder([folder], baseline="spo"))
    for text in (html, md):
        assert "The tables are compared with grpo, the networks here with spo" in text
        assert "agrees: above" not in text
    assert "differs from grpo's by" in html
    assert "<b>–</b><span>contradictions" in html


def test_an_a_a_row_is_compared_with_its_twin_whatever_the_baseline(folder: Path) -> None:
    """Against SPO, GRPO again was called above: of rows that chance alone tells apart."""
    found = score_ladder(Results.read(folder), None, "spo")[0].row("grpo again")
    assert found is not None
    assert found.middle is not None
    assert found.equal is not None
    assert (found.middle.other, found.equal.other) == ("grpo", "grpo")
    assert found.middle.verdict == "equivalent"
    for page in write_ladder([folder], baseline="spo"):
        assert "A/A of grpo" in page.read_text(encoding="utf-8")


def test_curves_have_the_sizes_as_marks(scores: list[FamilyScore]) -> None:
    made = size_curves(scores[0], {"grpo": 1})
    assert made is not None
    assert [tick.label for tick in made.x_ticks] == ["0.5", "0.8", "0.9"]
    assert made.x_ticks[0].at == pytest.approx(made.left)
    assert made.x_ticks[-1].at == pytest.approx(made.right)
    assert len(made.lines) == len(scores[0].rows)


def test_areas_stand_over_their_sizes_where_the_largest_were_not_run(
    scores: list[FamilyScore],
) -> None:
    """The axis was that of the part that was run, its marks those of all sizes."""

    def first(count: int) -> FamilyScore:
        empty = replace(scores[0].rows[0].rungs[-1], area=None)
        rows = tuple(
            replace(row, rungs=(*row.rungs[:count], *[empty] * (len(row.rungs) - count)))
            for row in scores[0].rows
        )
        return replace(scores[0], rows=rows, sizes=scores[0].sizes)

    of_three = size_curves(scores[0], {"grpo": 1})
    for count in (1, 2):
        made = size_curves(first(count), {"grpo": 1})
        assert made is not None
        assert of_three is not None
        assert made.x_ticks == of_three.x_ticks
        assert made.lines[0].end[0] == pytest.approx(made.x_ticks[count - 1].at)
        assert made.lines[0].path.count("L") == 1  # a single point is seen, too


def test_the_pages_say_it_all_and_load_nothing(folder: Path) -> None:
    made_oracle(-0.1).write(folder / ORACLE_FILE)
    html, md = (path.read_text(encoding="utf-8") for path in write_ladder([folder]))
    for text in (html, md):
        assert "contradicts: tables show it below" in text
        assert "equivalent" in text
        assert "grpo again" in text
        assert "5/5 ✓" in text
        assert "one update a batch" in text
        assert "80 % of the seeds that were run (of at least 5)" in text
        for heading in ("detect", "sampled /", "optimiser"):
            assert heading in text
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert "<script" not in html
    targets = set(re.findall(r'id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= targets
    rows = [line for line in md.splitlines() if line.startswith("|")]
    table = [line.count("|") for line in rows if line.startswith(("| treegrpo |", "| dapo |"))]
    assert table == [4, 4, 15, 15, 15]  # the summary's rows, then the families'
    (folder / ORACLE_FILE).unlink()
    md = write_ladder([folder])[1].read_text(encoding="utf-8")
    assert "No oracle.json" in md
    assert "`turngym bench --suite ladder --oracle" in md


def test_a_suite_of_a_file_is_named_by_its_file(tmp_path: Path) -> None:
    mine = small_ladder("Rare").model_copy(update={"name": "mine"})
    fill_ladder(tmp_path, mine, wanted)
    md = write_ladder([tmp_path])[1].read_text(encoding="utf-8")
    assert "`turngym bench --suite SUITE.json --oracle" in md


def test_the_command_prints_the_oracle_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    canned = made_oracle(0.1).families[0]
    monkeypatch.setattr(forecasts, "forecast", lambda *_, **__: canned)
    suite = small_ladder("Lottery", rows=("grpo", "treegrpo"))
    suite.write(tmp_path / "mine.json")
    words = ["--suite", str(tmp_path / "mine.json"), "--oracle", "--out", str(tmp_path / "out")]
    assert main(["bench", *words]) == 0
    assert "can show +0.100" in capsys.readouterr().out
    assert Oracle.read(tmp_path / "out" / ORACLE_FILE).find("Lottery") == canned
    fill_ladder(tmp_path / "out", suite, lambda *_: (0.5, 1.0))
    assert main(["bench", "--report", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "ladder.html").exists()
    for refused, reason in (
        (["--suite", "quick", "--oracle"], "no size"),
        (["--oracle"], "one of"),
    ):
        assert main(["bench", *refused]) == 2
        assert reason in capsys.readouterr().err


def test_the_oracle_is_asked_beside_a_matrix_and_claims_no_folder_that_another_process_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(forecasts, "forecast", lambda *_, **__: made_oracle(0.1).families[0])
    suite = small_ladder("Lottery", rows=("grpo", "treegrpo"))
    suite.write(tmp_path / "mine.json")
    words = ["--suite", str(tmp_path / "mine.json"), "--oracle", "--out", str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    with lock_folder(tmp_path / "out" / "lock"):
        assert main(["bench", *words]) == 2
        assert "is being filled by process" in capsys.readouterr().err
        assert not (tmp_path / "out" / "suite.json").exists()
        Layout(tmp_path / "out").claim(suite)
        assert main(["bench", *words]) == 0
    assert (tmp_path / "out" / ORACLE_FILE).exists()


def test_other_suites_have_no_ladder_page(tmp_path: Path) -> None:
    from helpers.tiny_matrix import filled, tiny

    filled(tmp_path, tiny(), lambda _: [[1.0, 0.0, 0.0, 0.0]])
    with pytest.raises(BadValueError, match="no size of a family"):
        write_ladder([tmp_path])
