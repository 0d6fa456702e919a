"""`turngym fidelity household`: a sample of the original's transcripts replays exactly.

The whole of them is replayed by the command; see docs/household.md.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from helpers.household import DATA

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.fidelity.household import measure_household
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.household.engine.game import LIGHT, TASK_TYPES


def test_every_step_of_the_sample_agrees_in_both_editions() -> None:
    found = measure_household(str(DATA))
    assert tuple(found) == TASK_TYPES
    assert sum(agreement.steps for agreement in found.values()) == 2008
    for agreement in found.values():
        assert agreement.first is None
        assert agreement.openings == agreement.runs >= 7
        counts = (agreement.observations, agreement.admissible, agreement.won, agreement.scores)
        assert counts == (agreement.steps,) * 4


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A transcript with three differences."""
    shutil.copytree(DATA / "games", tmp_path / "games")
    lines = gzip.decompress((DATA / "transcripts" / "transcripts.jsonl.gz").read_bytes())
    row = next(r for r in map(json.loads, lines.splitlines()) if r["task_type"] == LIGHT)
    row["steps"] = row["steps"][:9]
    row["opening"] += "!"
    row["steps"][3]["observation"] = "Nothing."
    row["steps"][5]["admissible"].pop()
    row["steps"][7]["score"] = 5
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "a.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def test_differences_are_counted_and_shown(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = changed / "figures.json"
    assert main(["fidelity", "household", str(changed), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "first difference" in printed
    assert "step 0" in printed
    row = json.loads(out.read_text())[LIGHT]
    counts = [row[name] for name in ("openings", "observations", "admissible", "won", "scores")]
    assert counts == [0, 8, 8, 9, 8]
    assert row["first_difference"]["what"] == "opening"


def test_what_cannot_be_replayed_is_refused(changed: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="task type"):
        measure_household(str(changed), ["cook"])
    with pytest.raises(BadValueError, match="has no transcript of"):
        measure_household(str(changed), [TASK_TYPES[0]])
    path = changed / "transcripts" / "a.jsonl"
    row = json.loads(path.read_text())
    for key, value, error, match in (
        ("edition", "9", UnknownNameError, "edition"),
        ("game", "none", DataError, "not among"),
        ("steps", None, DataError, "'steps'"),
    ):
        wrong = {k: v for k, v in (row | {key: value}).items() if v is not None}
        path.write_text(json.dumps(wrong))
        with pytest.raises(error, match=match):
            measure_household(str(changed))
    path.write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        measure_household(str(changed))
    path.unlink()
    with pytest.raises(BadValueError, match="no transcripts"):
        measure_household(str(changed))


def test_the_command_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fidelity", "household"]) == 2
    assert "FOLDER" in capsys.readouterr().err
    assert main(["fidelity", "household", "--live"]) == 2
    assert "name their FOLDER" in " ".join(capsys.readouterr().err.split())
