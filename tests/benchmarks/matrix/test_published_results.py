"""The packed results of the repository: listed, readable, from a commit without changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turngym.benchmarks.claims.catalogue import CLAIMS
from turngym.benchmarks.claims.packing import is_packed, read_outcomes
from turngym.benchmarks.claims.verdicts import decide, judge_claim
from turngym.benchmarks.matrix.matrix_files import read_packed

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
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


@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.name)
def test_results_name_the_commit_of_their_source(path: Path) -> None:
    finished = [cell for cell in read_packed(path).cells.values() if cell.state == "finished"]
    assert finished
    commits = {cell.machine.versions.get("git", "") for cell in finished if cell.machine}
    assert all(re.fullmatch(r"[0-9a-f]{12}", commit) for commit in commits), commits
