"""The packed results of the repository: listed, readable, from a commit without changes."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from turngym.benchmarks.claims.catalogue import CLAIMS
from turngym.benchmarks.claims.packing import is_packed, read_outcomes
from turngym.benchmarks.claims.report import collect_repetitions
from turngym.benchmarks.claims.verdicts import decide, judge_claim
from turngym.benchmarks.ladder.families import WIDE_RATES
from turngym.benchmarks.ladder.rates import at_chosen_rates, format_rates
from turngym.benchmarks.ladder.scoring import compare_rows, score_ladder
from turngym.benchmarks.ladder.stale_suites import (
    CHOOSING,
    COMPARING,
    GRID_RATES,
    grid_label,
)
from turngym.benchmarks.matrix.matrix_files import read_packed
from turngym.benchmarks.matrix.results import Results
from turngym.envs.utils.seed_tests import compare_seeds

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "benchmarks" / "results"
PACKED = sorted(path for path in FOLDER.iterdir() if ".jsonl" in path.name)

MATRICES = [path for path in PACKED if not is_packed(path)]


def test_every_file_is_listed_and_every_listed_file_is_there() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert sorted(listed) == [path.name for path in PACKED]
    names = [path.name.split(".")[0] for path in PACKED]
    known = {name + kind for name in names for kind in ("-oracle.json", "-credit.json")}
    known |= {"README.md"}
    assert {path.name for path in FOLDER.iterdir()} - {path.name for path in PACKED} <= known


def test_outcomes_of_claims_name_the_commit_of_their_source() -> None:
    outcomes = read_outcomes(FOLDER / "claims.jsonl.gz")
    commits = {one.machine.versions.get("git", "") for one in outcomes if one.machine}
    assert all(re.fullmatch(r"[0-9a-f]{12}", commit) for commit in commits), commits


def test_outcomes_of_claims_are_what_the_rule_says_of_their_values_now() -> None:
    """A change of the rule or of a claim has to judge the packed values again."""
    for one in read_outcomes(FOLDER / "claims.jsonl.gz"):
        findings = decide(one.claim.comparisons, {arm.name: arm for arm in one.arms})
        assert [(f.verdict, f.why) for f in findings] == [(f.verdict, f.why) for f in one.findings]
        assert judge_claim(findings) == (one.verdict, one.why), one.claim.name
        assert CLAIMS[one.claim.name].digest == one.digest, one.claim.name


def test_the_number_of_repetitions_is_that_of_the_report() -> None:
    found = collect_repetitions(read_outcomes(FOLDER / "claims.jsonl.gz"))
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert f"A/A: {found.count} comparisons of an arm with itself on other seeds" in text
    assert found.significant == 2


@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.name)
def test_results_name_the_commit_of_their_source(path: Path) -> None:
    finished = [cell for cell in read_packed(path).cells.values() if cell.state == "finished"]
    assert finished
    commits = {cell.machine.versions.get("git", "") for cell in finished if cell.machine}
    assert all(re.fullmatch(r"[0-9a-f]{12}", commit) for commit in commits), commits


def page_table(head: str, name: str = "losses-of-2026") -> list[list[str]]:
    """Rows of a table of a page, by the beginning of its head."""
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    table = re.search(rf"^{re.escape(head)}.*\n\|-.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[1].splitlines()]


LOSSES = {
    "`grpo`": "grpo",
    "`grpo`, no clip": "no clip",
    "`cispo`": "cispo",
    "`cispo` with masked turns": "cispo masked",
    "`sapo`": "sapo",
    "`sapo` with masked turns": "sapo masked",
    "`dppo`": "dppo",
    "`reinforcepp`": "reinforcepp",
    "`ppo`": "ppo",
    "`gspo`": "gspo",
    "`gspo`, ratios of turns": "gspo turn",
    "`sampo`": "sampo",
}
"""The rows of the tables on the page of 2026's losses, by what the suite calls them."""
LOST = 0.7
"""Share of right letters under which a run of Stale has one of its three doors wrong."""


@pytest.fixture(scope="module")
def grid() -> Results:
    return Results.read(FOLDER / "ladder-stale-grid.jsonl.gz")


def areas_at(grid: Results, name: str, rate: float) -> dict[int, float]:
    """Areas of a loss at a rate of the grid, by seed."""
    runs = grid.runs(grid_label(LOSSES[name], rate), "Stale-16")
    return {run.cell.seed: run.area for run in runs if run.area is not None}


def test_the_page_on_losses_says_what_they_reach_at_each_rate(grid: Results) -> None:
    rows = page_table("| loss | 3e-4 |")
    assert [row[0] for row in rows] == list(LOSSES)
    for name, *cells in rows:
        for rate, cell in zip(GRID_RATES, cells, strict=True):
            found = areas_at(grid, name, rate)
            assert tuple(sorted(found)) == grid.suite.seeds
            runs = grid.runs(grid_label(LOSSES[name], rate), "Stale-16")
            assert all(run.training is not None for run in runs)
            lost = sum(run.training.values[-1] < LOST for run in runs if run.training)
            values = [100 * area for area in found.values()]
            assert cell == f"{mean(values):.1f} ({stdev(values):.1f}; {lost})", (name, rate)


def test_the_page_on_losses_says_how_they_compare_at_chosen_rates(grid: Results) -> None:
    at_best = at_chosen_rates(grid)
    decided = compare_rows(at_best, "Stale-16", at_best.recipes, "grpo")
    rows = page_table("| loss | rate |")
    assert [row[0] for row in rows] == list(LOSSES)
    for name, rate, area, difference, p, verdict in rows:
        found = {rate: areas_at(grid, name, rate) for rate in GRID_RATES}
        means = {rate: mean(of[seed] for seed in CHOOSING) for rate, of in found.items()}
        best = max(means, key=means.__getitem__)
        assert float(rate) == best, name
        compared = {seed: found[best][seed] for seed in COMPARING}
        assert at_best.areas(LOSSES[name], "Stale-16").keys() == compared.keys()
        assert area == f"{100 * mean(compared.values()):.1f}"
        if name == "`grpo`":
            continue
        one = decided[LOSSES[name]]
        assert one.test is not None
        assert one.adjusted is not None
        ends = (one.test.difference, one.test.low95, one.test.high95)
        assert difference == "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * end for end in ends))
        said = f"{one.adjusted:.3f}"[1:] if one.adjusted < 1 else "1"
        assert one.adjusted < 0.001 if p == "< .001" else p == said, name
        assert verdict.replace("*", "") == one.verdict, name


def test_the_page_on_losses_says_how_they_compare_at_equal_rates(grid: Results) -> None:
    rows = page_table("| at the same rate |")
    assert [row[0] for row in rows] == list(LOSSES)[1:]
    for name, *cells in rows:
        for rate, cell in zip(GRID_RATES, cells, strict=True):
            pair = [areas_at(grid, one, rate) for one in (name, "`grpo`")]
            test = compare_seeds(*([areas[seed] for seed in grid.suite.seeds] for areas in pair))
            ends = (test.difference, test.low95, test.high95)
            assert cell == "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * end for end in ends))


def test_the_page_on_the_ladder_says_what_a_wider_grid_of_rates_changes() -> None:
    found = [Results.read(FOLDER / f"ladder-{part}.jsonl.gz") for part in ("full", "wide-rates")]
    scored = [{s.family.name: s for s in score_ladder(one, None, "grpo")} for one in found]
    rows = page_table("| family | row | in the ladder |", "ladder")
    named = {(family, row) for family, rates in WIDE_RATES.items() for row in rates}
    assert len(rows) == len(named)
    assert {(family, row) for family, row, *_ in rows} == named
    for family, row, *cells in rows:
        for cell, results, scores in zip(cells, found, scored, strict=True):
            score = scores[family]
            (decided,) = [one.middle for one in score.rows if one.label == row]
            assert decided is not None
            assert decided.test is not None
            assert decided.seeds == 10
            rate = format_rates(results, row, score.family.column(score.middle)).lstrip("0")
            ends = (decided.test.difference, decided.test.low95, decided.test.high95)
            text = "{:+.1f} ({:.1f} to {:.1f})".format(*(100 * end for end in ends))
            said = cell.replace("*", "")
            assert said == f"{rate}: {text}, {decided.verdict}", (family, row)


STATE_ROWS = {
    "`g2po`": "g2po",
    "`gigpo`": "gigpo",
    "`graphgpo`": "graphgpo",
    "`hgpo`": "hgpo",
    "`gigpo`, identity `history`": "gigpo history",
    "`grpo` on other seeds (A/A)": "grpo again",
}
"""The rows of the table on the page of credit by state, by what the suite calls them."""


def test_the_page_on_credit_by_state_says_what_its_file_holds() -> None:
    results = Results.read(FOLDER / "ladder-state.jsonl.gz")
    columns = ("Keys-4", "Keys-control")
    found = [compare_rows(results, column, results.recipes, "grpo") for column in columns]
    rows = page_table("| row | Keys-4 |", "credit-by-state")
    assert [row[0] for row in rows] == list(STATE_ROWS)
    for name, lead, p, verdict, _, control, p_there, verdict_there in rows:
        said = ((lead, p, verdict), (control, p_there, verdict_there))
        for one, (difference, adjusted, word) in zip(found, said, strict=True):
            decided = one[STATE_ROWS[name]]
            assert decided.test is not None
            assert decided.seeds == len(results.suite.seeds)
            ends = (decided.test.difference, decided.test.low95, decided.test.high95)
            text = "{:+.3f} ({:+.3f} to {:+.3f})".format(*ends)
            assert difference == (f"**{text}**" if decided.apart else text), name
            assert adjusted == f"{decided.adjusted:.3f}"[1:], name
            assert word == decided.verdict, name
