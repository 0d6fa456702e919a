"""The page "which algorithm for which environment" from made results: findings, yardsticks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.made_claims import above, tiny_claim
from helpers.made_ladder import Wanted, fill_ladder, made_oracle, small_ladder, write_cell
from helpers.tiny_matrix import filled, finished, tiny

from turngym.benchmarks.claims.outcome import Outcome
from turngym.benchmarks.claims.packing import write_outcomes
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.ladder.families import FAMILIES
from turngym.benchmarks.ladder.guide import write_guide
from turngym.benchmarks.ladder.pairs import compare_pairs
from turngym.benchmarks.ladder.report import ORACLE_FILE
from turngym.benchmarks.ladder.scoring import score_ladder
from turngym.benchmarks.ladder.suites import RATE_SEARCH
from turngym.benchmarks.ladder.traits import TRAITS
from turngym.benchmarks.ladder.yardsticks import compare_with_itself
from turngym.benchmarks.matrix.cell import Cell, CellResult
from turngym.benchmarks.matrix.matrix_files import read_parts, write_packed
from turngym.benchmarks.matrix.results import Place, Results
from turngym.benchmarks.matrix.suite import RateSearch, Suite
from turngym.envs.core.errors import BadValueError
from turngym.envs.utils.seed_tests import compare_seeds

FEW = ("grpo", "grpo again", "treegrpo", "spo")
AREAS = {"treegrpo": 0.7, "spo": 0.3}
DOCS = Path(__file__).resolve().parents[3] / "docs"
PACKED = DOCS.parent / "benchmarks" / "results"


def wanted(row: str, column: str) -> tuple[float, float]:
    """Trees lead and SPO lags on the lottery; everything else is equal."""
    lottery = column.startswith("Lottery") and not column.endswith("control")
    return AREAS.get(row, 0.5) if lottery else 0.5, 0.9


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide") / "ladder"
    fill_ladder(folder, small_ladder("Lottery", "Rare"), wanted)
    return folder


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With seeds enough for a family of all pairs."""
    folder = tmp_path_factory.mktemp("six") / "ladder"
    fill_ladder(folder, small_ladder("Lottery", "Rare", seeds=6), wanted)
    return folder


def page(*parts: Path, out: Path) -> str:
    return write_guide(parts, out / "which-algorithm.md").read_text(encoding="utf-8")


def made(folder: Path, want: Wanted, *families: str, **changes: Any) -> str:
    fill_ladder(folder / "m", small_ladder(*(families or ("Lottery", "Rare")), **changes), want)
    return page(folder / "m", out=folder)


def row_of(text: str, start: str) -> list[str]:
    """The fields of the first table row that starts so."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {start} |"))
    return [field.strip() for field in line.strip("|").split("|")]


def ends(place: Place) -> str:
    means = [spread.mean for spread in (place.sampled, place.greedy) if spread is not None]
    assert len(means) == 2
    return " / ".join(f"{100 * mean:.1f}" for mean in means)


def advice(text: str) -> str:
    return text.partition("## If your environment has")[2].partition("## What it is made from")[0]


def test_every_family_has_a_trait() -> None:
    assert set(TRAITS) == set(FAMILIES)


def test_findings_are_told_with_their_numbers(ladder: Path, tmp_path: Path) -> None:
    text = page(ladder, out=tmp_path)
    results = Results.read(ladder)
    areas = [results.areas(row, "Lottery-0.8") for row in ("treegrpo", "grpo")]
    test = compare_seeds(*([a[s] for s in range(5)] for a in areas))
    low, high = 100 * test.low95, 100 * test.high95
    size = f"{100 * test.difference:+.1f}"
    span = f"{size} ({low:+.1f} to {high:+.1f})"
    assert row_of(text, "treegrpo")[1] == f"▲ {size}"
    assert row_of(text, "spo")[1].startswith("▼ -")
    assert row_of(text, "arpo")[1].startswith("= ")
    assert row_of(text, "dapo")[1] == "as grpo"
    assert row_of(text, "treegrpo")[2].startswith("= ")
    detail = row_of(text.partition("### Lottery")[2], "treegrpo")
    assert detail[1:4] == ["grpo", "above", span]
    assert detail[5] == "5"
    assert detail[7] == "equivalent"
    assert detail[9] == f"{100 * test.detectable:.1f}"
    place, base = (results.place(row, "Lottery-0.8") for row in ("treegrpo", "grpo"))
    assert detail[10] == ends(place)
    assert detail[11] == f"{place.mean_used('optimizer_steps'):.0f}"
    steps = f"{base.mean_used('optimizer_steps'):.0f} optimiser steps"
    assert f"- grpo: success after training {ends(base).replace(' / ', ' % sampled, ')}" in text
    assert f" % greedy; {steps}." in text.partition("### Lottery")[2].partition("###")[0]
    assert "Its yardsticks hold" in text
    assert f"use treegrpo ({span}, 5 seeds) rather than grpo" in advice(text)
    assert f"has **{TRAITS['Lottery'].has}**" in advice(text)
    assert re.search(r"Avoid spo \(-\d", advice(text))
    assert "these are as good as grpo" in advice(text)  # on Rare nothing differs
    assert row_of(text, "ladder")[2] == "5 of 5"
    assert "Suites without a file here: separating, standard." in text
    assert "no forecast lies beside" in text


def test_a_packed_file_gives_the_same_page_and_its_links_lead_somewhere(
    ladder: Path, tmp_path: Path
) -> None:
    packed = write_packed(read_parts([ladder]), tmp_path / "ladder.jsonl.gz")
    text = page(packed, out=tmp_path)
    assert text == page(ladder, out=tmp_path).replace("`ladder`", "`ladder.jsonl.gz`")
    assert str(tmp_path) not in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (DOCS / target.partition("#")[0]).exists()
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.replace(r"\|", "").count("|") for line in block.splitlines()}) == 1
    assert "None" not in text


def test_all_pairs_are_tested_with_one_correction(six: Path) -> None:
    results = Results.read(six)
    scores = score_ladder(results, None, "grpo")
    labels = [r.label for r in results.suite.recipes if r.label not in results.suite.yardsticks]
    pairs = {(p.first, p.second): p for p in compare_pairs(results.suite, scores, labels)}
    assert len(pairs) == len(labels) * (len(labels) - 1) // 2
    apart = {pair for pair, found in pairs.items() if found.separated}
    # the winner and the loser differ from each other and from everybody else
    assert apart == {pair for pair in pairs if {"treegrpo", "spo"} & set(pair)}
    assert pairs["treegrpo", "spo"].separated == ["Lottery"]
    assert pairs["treegrpo", "spo"].families["Lottery"].difference == pytest.approx(0.4, abs=0.1)
    # DAPO is GRPO on the lottery, so there is nothing to compare; its other pairs have GRPO's tests
    assert list(pairs["grpo", "dapo"].families) == ["Rare"]
    ours, theirs = (
        pairs[p].families["Lottery"] for p in (("treegrpo", "dapo"), ("grpo", "treegrpo"))
    )
    assert theirs.test is not None
    assert ours.test == theirs.test.reverse()
    assert (ours.verdict, ours.why, ours.other) == ("above", "the interval lies above 0", "grpo")
    assert (theirs.verdict, theirs.why) == ("below", "the interval lies below 0")
    assert ours.adjusted == theirs.adjusted
    tests = 21 + 28  # seven rows on the lottery, eight on Rare
    found = [f for pair in pairs.values() for f in pair.families.values()]
    least = min(f.test.p_value for f in found if f.test is not None)
    assert min(f.adjusted for f in found if f.adjusted is not None) == pytest.approx(tests * least)


def test_the_share_of_separated_pairs_is_counted(six: Path, ladder: Path, tmp_path: Path) -> None:
    text = page(six, out=tmp_path)
    assert "13 of 28 pairs of distinct rows (46 %; the aim is 50 %)" in text
    assert "too few seeds" not in text
    assert "other learning rates" not in text.partition("## Pairs of recipes")[2]
    five = page(ladder, out=tmp_path)  # 49 comparisons
    assert "0 of 28 pairs of distinct rows (0 %; the aim is 50 %)" in five
    assert "13 more differ as clearly, with [too few seeds](comparisons.md#is-the" in five


def test_pairs_that_only_differing_rates_set_apart_are_counted(six: Path, tmp_path: Path) -> None:
    """Trees, with a rate of their own, are set apart from all seven other rows."""
    results = Results.read(six)
    layout = fill_ladder(tmp_path / "m", results.suite, wanted)
    for cell in results.suite.cells:
        if cell.recipe == "treegrpo":
            file = layout.cell_file(cell)
            CellResult.read(file).model_copy(update={"rate": 0.002}).write(file)
    assert "7 of them only where the two have other learning rates" in page(
        tmp_path / "m", out=tmp_path
    )


def test_one_seed_decides_nothing_and_the_page_says_so(tmp_path: Path) -> None:
    text = made(tmp_path, wanted, seeds=1)
    assert "Nothing on this page is decided: no row has more than 1 seed in a column" in text
    assert "No advice: nothing is decided." in text
    assert "None of the 28 pairs has 5 seeds" in text
    assert re.fullmatch(r"\? [+-]\d+\.\d", row_of(text, "treegrpo")[1])
    assert not re.search(r"[▲▼] [+-]", text)
    assert "use treegrpo" not in text


def test_yardsticks_out_of_bounds_take_back_everything(tmp_path: Path) -> None:
    text = made(tmp_path, lambda r, c: (0.9, 0.9) if r == "grpo again" else wanted(r, c), rows=FEW)
    assert "nothing else on this page can be trusted:** A/A: grpo again (ladder) called" in text
    assert "different in 8 of 8" in text
    assert "No advice: the yardsticks are out of bounds." in text
    assert "use treegrpo" not in text


def test_a_yardstick_is_judged_on_the_scale_of_the_rows_beside_it() -> None:
    """On a ladder areas are compared as they are: +1.1 points that are +1.5 between the players."""
    results = Results.read(PACKED / "ladder-wide-rates.jsonl.gz")
    rows = [score.row("grpo again") for score in score_ladder(results, None, "grpo")]
    verdicts = [
        compared.verdict
        for row in rows
        if row is not None
        for compared in (row.middle, row.equal)
        if compared is not None
    ]
    (yardstick,) = compare_with_itself(results, "grpo")
    assert (yardstick.tests, yardstick.called, yardstick.small) == (12, 0, 0)
    assert yardstick.equivalent == verdicts.count("equivalent") == 6


def test_equality_at_the_floor_is_none_and_no_yardstick(tmp_path: Path) -> None:
    """In Lottery all rows guess, the control included; in Rare they learn and are equal."""
    text = made(tmp_path, lambda r, c: (0.33 if "Lottery" in c else 0.5, 0.0), rows=FEW)
    assert row_of(text, "A/A: grpo again")[2:7] == ["4", "0", "0", "4", "4"]
    assert row_of(text, "controls: all rows")[2:7] == ["2", "0", "–", "2", "2"]
    assert row_of(text, "treegrpo")[1:3] == ["∅ +0.3", "= -0.0"]
    words = "not decided: both arms are at the floor (0.333, of a policy that has learned nothing)"
    assert row_of(text.partition("### Lottery")[2], "treegrpo")[2] == words
    assert "Nothing is decided on Lottery" in text
    (score, _) = score_ladder(Results.read(tmp_path / "m"), None, "grpo")
    assert all(row.equal is None or row.equal.edge for row in score.rows)


def test_a_row_that_differs_in_the_control_gives_no_advice(tmp_path: Path) -> None:
    def want_control(area: float) -> Wanted:
        def want(row: str, column: str) -> tuple[float, float]:
            own = (row, column) == ("treegrpo", "Lottery-control")
            return (area, 0.9) if own else wanted(row, column)

        return want

    text = made(tmp_path, want_control(0.8), "Lottery", rows=FEW)
    assert "Rows differ where the difficulty is absent:** treegrpo in Lottery" in text
    assert row_of(text, "controls: all rows")[3] == "1"  # the names stand above the table
    assert "use treegrpo" not in text
    assert "No advice on treegrpo (+" in advice(text)
    assert "Avoid spo" in advice(text)  # the others' findings stand
    # what is a part of the difference alone, or of the other sign, takes nothing back
    for number, area in enumerate((0.55, 0.3)):
        text = made(tmp_path / str(number), want_control(area), "Lottery", rows=FEW[:3])
        assert "treegrpo in Lottery" in text
        assert "use treegrpo" in advice(text)


def test_what_is_not_decided_says_how_many_seeds_it_would_take(tmp_path: Path) -> None:
    suite = small_ladder("Rare", rows=("grpo", "grpo again", "treegrpo"))
    fill_ladder(tmp_path / "m", suite, lambda *_: (0.5, 0.9), spread=0.1)
    text = page(tmp_path / "m", out=tmp_path)
    fields = row_of(text.partition("### Rare")[2], "treegrpo")
    assert fields[2] == "not decided"
    assert re.fullmatch(r"[\d,]+ seeds", fields[6])
    assert "Nothing is decided on Rare" in advice(text)
    assert "- Families without a result: Lottery, Corridor" in text


def test_missing_and_failed_cells_are_listed(ladder: Path, tmp_path: Path) -> None:
    from turngym.benchmarks.matrix.train_cell import make_result

    suite = small_ladder("Rare", rows=("grpo", "treegrpo"))
    layout = fill_ladder(tmp_path / "m", suite, wanted)
    first, second = suite.cells[1], suite.cells[3]
    layout.cell_file(first).unlink()
    broken = make_result(suite, second, "failed", "no | memory")
    broken.write(layout.cell_file(second))
    text = page(tmp_path / "m", out=tmp_path)
    assert "ladder: 1 cell not computed." in text
    assert rf"{second.recipe} in {second.column} failed (1 seed): no \| memory" in text
    assert "There is no yardstick of two comparisons or more with 5 seeds" in text


def other_suite(folder: Path) -> None:
    """A suite of one column, in which PPO is better, and GRPO again as good as GRPO."""
    rows = tiny(("grpo", "ppo")).recipes
    suite = tiny(seeds=range(5)).model_copy(
        update={"name": "standard", "recipes": (*rows, rows[0].again()), "min_effect": 0.02}
    )

    def result(cell: Cell) -> object:
        best = cell.recipe == "ppo"
        area = 0.8 + 0.002 * cell.seed if best else 0.4 + 0.001 * (cell.seed**2 % 3)
        return finished(suite, cell, [[1.0] * 4]).model_copy(update={"area": area})

    filled(folder, Suite.model_validate_json(suite.model_dump_json()), result)


def test_other_suites_and_claims_stand_beside(ladder: Path, tmp_path: Path) -> None:
    other_suite(tmp_path / "standard")
    claim = tiny_claim("mine", above())
    outcome = Outcome(
        claim=claim,
        digest="",
        seeds=5,
        verdict="not decided",
        why="too | few",
        findings=(),
        arms=(),
    )
    outcome.write(tmp_path / "mine.json")
    text = page(ladder, tmp_path / "standard", tmp_path / "mine.json", out=tmp_path)
    packed = write_outcomes([outcome], tmp_path / "claims.jsonl.gz")
    assert page(ladder, tmp_path / "standard", packed, out=tmp_path) == text
    section = text.partition("### standard: Bandit-v0")[2]
    assert row_of(section, "ppo")[1:3] == ["grpo", "above"]
    assert row_of(section, "ppo")[3].startswith("+40.3 (+40.")
    assert row_of(section, "grpo again (A/A)")[2] == "equivalent"
    seen = text.partition("Seen on single settings")[2].partition("Points in brackets")[0]
    assert "- Bandit-v0 (standard): above grpo: ppo (+40.3" in seen
    assert "Seen on single settings" not in page(ladder, out=tmp_path)
    assert "Suites without a file here: separating." in text
    assert ", with outcomes of claims; every number comes from these files" in text
    assert r"| mine | not decided | Ours is above \<theirs\>. | too \| few | 5 |" in text


@pytest.mark.parametrize(
    ("parts", "out", "says"),
    [
        (lambda ladder, other: [other], "a.md", "results of a ladder; got none"),
        (lambda ladder, other: [ladder], "a.html", "expected a Markdown file"),
    ],
)
def test_what_makes_no_page_is_refused(
    ladder: Path, tmp_path: Path, parts: Callable[[Path, Path], list[Path]], out: str, says: str
) -> None:
    other_suite(tmp_path / "standard")
    with pytest.raises(BadValueError, match=says):
        write_guide(parts(ladder, tmp_path / "standard"), tmp_path / out)


def test_the_families_of_a_second_ladder_stand_below_the_first(
    ladder: Path, tmp_path: Path
) -> None:
    suite = small_ladder("Lottery", rows=FEW).model_copy(update={"name": "mine"})

    def other_way(row: str, column: str) -> tuple[float, float]:
        area, last = wanted(row, column)
        return 1 - area, last

    fill_ladder(tmp_path / "m", suite, other_way)
    text = page(tmp_path / "m", ladder, out=tmp_path)
    first, below = text.split("## mine")
    assert row_of(first, "treegrpo")[1].startswith("▲")
    assert [line for line in first.splitlines() if line.startswith("| mine | Lottery (mine) |")]
    detail = row_of(below.partition("### Lottery (mine)")[2], "treegrpo")
    assert detail[2] == "below"
    assert detail[7] == "equivalent"  # its control
    advised = r"- Lottery \(mine\): use spo .* rather than grpo\. Avoid treegrpo "
    assert re.search(advised, advice(text))
    assert text.count(f"has **{TRAITS['Lottery'].has}**") == 1, "once, with what each suite says"
    assert first.count("| controls: all rows | mine |") == 1


def test_the_command_writes_the_page(
    ladder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "docs" / "page.md"
    assert main(["bench", "--guide", str(ladder), "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("# Which algorithm for which environment")
    words = ["--guide", str(ladder), "--out", str(out), "--only", "seed=0"]
    assert main(["bench", *words]) == REFUSED
    assert "--only does not go with bench --guide" in capsys.readouterr().err


def test_the_oracle_travels_with_packed_results(tmp_path: Path) -> None:
    suite = small_ladder("Lottery", rows=("grpo", "grpo again", "treegrpo"))
    fill_ladder(tmp_path / "m", suite, wanted)
    made_oracle(-0.1).write(tmp_path / "m" / ORACLE_FILE)
    packed = tmp_path / "results" / "mine.jsonl"
    assert main(["bench", "--pack", str(tmp_path / "m"), "--out", str(packed)]) == 0
    text = page(packed, out=tmp_path)
    foreseen = row_of(text.partition("### Lottery")[2], "treegrpo")[8]
    assert foreseen == "contradicts: tables show it below"
    assert "no forecast lies beside" not in text
    assert ", with the oracle's forecast beside the ladder's file; every number" in text
    assert main(["bench", "--report", str(packed), "--out", str(tmp_path / "report")]) == 0
    assert foreseen in (tmp_path / "report" / "ladder.md").read_text(encoding="utf-8")


def test_a_control_that_decides_nothing_is_no_proof_of_equality(tmp_path: Path) -> None:
    """Trees lead by as much without the difficulty, on seeds too few or too noisy to say so."""

    def want(row: str, column: str) -> tuple[float, float]:
        lead = row == "treegrpo" and column in ("Lottery-0.8", "Lottery-control")
        return (0.6 if lead else 0.5), 0.9

    suite = small_ladder("Lottery", rows=FEW)
    layout = fill_ladder(tmp_path / "m", suite, want)
    for seed, area in enumerate((0.4, 0.9, 0.45, 0.85, 0.4)):
        cell = Cell(recipe="treegrpo", column="Lottery-control", seed=seed)
        write_cell(layout, suite, cell, area, 0.9)
    text = page(tmp_path / "m", out=tmp_path)
    detail = row_of(text.partition("### Lottery")[2], "treegrpo")
    assert (detail[2], detail[7]) == ("above", "not decided")
    assert "use treegrpo" not in advice(text)
    assert re.search(r"No advice on treegrpo .*: it is not shown that they differ by more", text)


def test_advice_names_a_missing_control_and_other_rates(ladder: Path, tmp_path: Path) -> None:
    results = Results.read(ladder)
    layout = fill_ladder(tmp_path / "m", results.suite, wanted)
    for cell in results.suite.cells:
        file = layout.cell_file(cell)
        if cell.column == "Lottery-control" and cell.recipe == "spo":
            file.unlink()
        elif cell.column == "Lottery-0.8" and cell.recipe in ("treegrpo", "grpo"):
            rate = 0.002 if cell.recipe == "treegrpo" else 0.001
            CellResult.read(file).model_copy(update={"rate": rate}).write(file)
    text = page(tmp_path / "m", out=tmp_path)
    assert re.search(r"use treegrpo \(.*, 5 seeds, at rate 0\.002, grpo at 0\.001\)", advice(text))
    assert re.search(r"Avoid spo \(.*, 5 seeds, no control, at rate", advice(text))
    tables = text.partition("### Lottery")[2]
    assert row_of(tables, "treegrpo")[12] == "0.002 ≠"
    assert row_of(tables, "grpo again (A/A)")[12].endswith("≠")


@pytest.mark.parametrize("search", [None, RATE_SEARCH.model_copy(update={"margin": 0.01})])
def test_what_a_search_for_rates_lets_pass_gives_no_advice(
    tmp_path: Path, search: RateSearch | None
) -> None:
    """Trees lead by 4 points, SPO lags by 20, and both have another rate than GRPO.

    A suite's own search counts; one without any has the ladder's, which lets 5 points pass.
    """

    def want(row: str, column: str) -> tuple[float, float]:
        here = {"treegrpo": 0.54, "spo": 0.3} if column == "Lottery-0.8" else {}
        return here.get(row, 0.5), 0.9

    suite = small_ladder("Lottery", rows=FEW).model_copy(update={"lr_search": search})
    layout = fill_ladder(tmp_path / "m", suite, want, spread=0.001)
    for cell in suite.cells:
        if cell.recipe in ("treegrpo", "spo"):
            file = layout.cell_file(cell)
            CellResult.read(file).model_copy(update={"rate": 0.002}).write(file)
    text = advice(page(tmp_path / "m", out=tmp_path))
    withheld = (
        r"No advice on treegrpo \(.*\): the rates differ, and the interval reaches into the 5"
    )
    assert bool(re.search(withheld, text)) == (search is None)
    assert ("use treegrpo" in text) == (search is not None)
    assert re.search(r"Avoid spo \(-", text)


def test_advice_withheld_for_rates_does_not_say_that_the_control_was_exceeded(
    tmp_path: Path,
) -> None:
    """Trees lead by 4 points with another rate, and by as much in a control of noisy seeds."""

    def want(row: str, column: str) -> tuple[float, float]:
        return (0.54 if (row, column) == ("treegrpo", "Lottery-0.8") else 0.5), 0.9

    suite = small_ladder("Lottery", rows=FEW)
    layout = fill_ladder(tmp_path / "m", suite, want, spread=0.001)
    for seed, area in enumerate((0.4, 0.7, 0.45, 0.65, 0.5)):
        cell = Cell(recipe="treegrpo", column="Lottery-control", seed=seed)
        write_cell(layout, suite, cell, area, 0.9)
        file = layout.cell_file(cell.model_copy(update={"column": "Lottery-0.8"}))
        CellResult.read(file).model_copy(update={"rate": 0.002}).write(file)
    text = advice(page(tmp_path / "m", out=tmp_path))
    assert re.search(
        r"No advice on treegrpo \(.*, 5 seeds, not shown to be more than in the control, at rate "
        r"0\.002, grpo at [^)]*\): the rates differ, and the interval reaches",
        text,
    )


@pytest.mark.parametrize(("area", "rate"), [(0.5, 0.004), (0.7, 0.004), (0.5, None)])
def test_another_verdict_at_other_rates_gives_no_advice(
    ladder: Path, tmp_path: Path, area: float, rate: float | None
) -> None:
    """Trees lead by 20 points; in a further ladder they have other rates, and do so or do not."""
    suite = small_ladder("Lottery", rows=FEW).model_copy(update={"name": "wide"})

    def want(row: str, column: str) -> tuple[float, float]:
        return (area if row == "treegrpo" else wanted(row, column)[0]), 0.9

    layout = fill_ladder(tmp_path / "wide", suite, want, spread=0.001)
    for cell in suite.cells:
        if cell.recipe == "treegrpo" and rate is not None:
            file = layout.cell_file(cell)
            CellResult.read(file).model_copy(update={"rate": rate}).write(file)
    text = advice(page(ladder, tmp_path / "wide", out=tmp_path))
    first = next(line for line in text.splitlines() if line.startswith("    - Lottery: "))
    disputed = area == 0.5 and rate is not None
    assert ("use treegrpo" in first) != disputed
    withheld = r"No advice on treegrpo \(.*\): the verdict is another one at other rates \(wide\)"
    assert bool(re.search(withheld, first)) == disputed
    assert re.search(r"(Avoid|stay with grpo\. Avoid) spo \(-", first)


def test_the_side_is_that_of_all_seeds_where_the_control_has_a_part(tmp_path: Path) -> None:
    """Trees lag over twelve seeds, and lead in the five that the control has."""

    def want(row: str, column: str) -> tuple[float, float]:
        return (0.4 if (row, column) == ("treegrpo", "Lottery-control") else 0.5), 0.9

    suite = small_ladder("Lottery", rows=FEW, seeds=12)
    layout = fill_ladder(tmp_path / "m", suite, want, spread=0.001)
    for cell in suite.cells:
        if cell.column == "Lottery-control" and cell.seed >= 5:
            layout.cell_file(cell).unlink()
        elif (cell.recipe, cell.column) == ("treegrpo", "Lottery-0.8"):
            write_cell(layout, suite, cell, 0.505 if cell.seed < 5 else 0.1, 0.9)
    text = page(tmp_path / "m", out=tmp_path)
    assert row_of(text.partition("### Lottery")[2], "treegrpo")[2] == "below"
    assert "Avoid treegrpo" not in advice(text)
    assert "No advice on treegrpo" in advice(text)


def test_a_ladder_of_one_column_has_no_yardstick_that_can_fail(tmp_path: Path) -> None:
    suite = small_ladder("Lottery", rows=FEW)
    suite = suite.model_copy(update={"envs": suite.envs[:1]})
    fill_ladder(tmp_path / "m", suite, wanted)
    text = page(tmp_path / "m", out=tmp_path)
    assert row_of(text, "treegrpo")[1].startswith("▲ ")
    assert "There is no yardstick of two comparisons or more with 5 seeds" in text
    assert "No advice: there is no yardstick for what is decided." in text


def test_a_yardstick_of_one_comparison_says_nothing(tmp_path: Path) -> None:
    """Of one comparison a false call has a chance of 5 %, so that it can never be out of bounds."""
    parts = [PACKED / f"{name}.jsonl.gz" for name in ("ladder-full", "ladder", "household")]
    text = page(*parts, out=tmp_path)
    last = {
        line.split(" | ")[1]: line.split(" | ")[-1].strip(" |")
        for line in text.splitlines()
        if line.startswith("| A/A: grpo again |")
    }
    assert last == {
        "ladder-full": "holds",
        "ladder": "taken over",
        "household": "too few to tell",
    }
    assert "The A/A runs of ladder were taken over from ladder-full" in text
    assert "the least difference that matters: 2 points in every suite here. It is not" in text
    assert "one comparison at 0.05: Holm's correction asks for about 1.6 times the seeds" in text


def test_the_grid_of_rates_alone_has_each_loss_at_its_rate(tmp_path: Path) -> None:
    """Its table named the rows of all rates, and none of the losses that were compared."""
    text = page(PACKED / "ladder-stale-grid.jsonl.gz", out=tmp_path)
    assert "\n| sapo | ▲ +10.9 |\n" in text
    assert "33 more differ as clearly, with [too few seeds](comparisons.md#is-the" in text
    assert re.search(r"\n\| sapo \| grpo .* \| 100.0 / 100.0 \| 128 \| 0.001 ≠ \|\n", text)
    assert " at .001 |" not in text


def test_pairs_that_another_row_lent_its_runs_are_counted(six: Path, tmp_path: Path) -> None:
    results = Results.read(six)
    labels = [r.label for r in results.suite.recipes if r.label not in results.suite.yardsticks]
    pairs = compare_pairs(results.suite, score_ladder(results, None, "grpo"), labels)
    lent = {(pair.first, pair.second) for pair in pairs if pair.lent}
    assert ("treegrpo", "dapo") in lent  # by GRPO's runs on the lottery
    assert ("grpo", "treegrpo") not in lent
    assert f"{len(lent)} of them only where the runs of a row" in page(six, out=tmp_path)
