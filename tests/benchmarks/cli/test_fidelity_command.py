"""`turngym fidelity`: agreement with transcripts, differences, files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.fidelity.science_world import measure_science_world, normal
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.science_world.engine.step import step
from turngym.envs.science_world.tasks.build import start_episode
from turngym.envs.science_world.tasks.catalogue import find_kind
from turngym.envs.science_world.tasks.checker import TaskState
from turngym.envs.science_world.tasks.solvers.solve import next_intent
from turngym.envs.science_world.tasks.solvers.words import write


def recorded(task: str, variation: int) -> dict[str, Any]:
    """A transcript of the house itself, in the form of those of the original."""
    kind = find_kind(task)
    house = start_episode(kind, variation)
    goals = house.goals
    assert isinstance(goals, TaskState)
    first = step(house, "look around").text
    steps: list[dict[str, Any]] = []
    while not goals.completed:
        action = write(house, next_intent(house))
        said = step(house, action).text
        steps.append(
            {
                "action": action,
                "observation": said,
                "score": goals.points,
                "done": goals.completed,
            }
        )
    return {
        "task_name": kind.name,
        "variation": variation,
        "simplifications_used": "",
        "raw_replay": {"first_look": first, "steps": steps},
        "final_score": goals.points,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for task, variation in (("find-animal", 0), ("lifespan-longest-lived", 3)):
        (tmp_path / f"{task}.json").write_text(json.dumps(recorded(task, variation)))
    return tmp_path


def test_a_world_agrees_with_its_own_transcripts(folder: Path) -> None:
    found = measure_science_world(str(folder))
    assert list(found) == ["4-4", "7-1"]
    for agreement in found.values():
        assert agreement.observations == agreement.scores == agreement.dones == agreement.steps
        assert (agreement.solved, agreement.solved_here, agreement.first) == (1, 1, None)


def test_differences_are_counted_and_the_first_one_is_kept(folder: Path) -> None:
    path = folder / "find-animal.json"
    changed = json.loads(path.read_text())
    steps = changed["raw_replay"]["steps"]
    steps[1]["observation"], steps[2]["score"], steps[-1]["done"] = "Nothing.", 77, False
    path.write_text(json.dumps(changed))
    agreement = measure_science_world(str(folder), ["4-4"])["4-4"]
    count = len(steps)
    assert agreement.steps == count
    assert (agreement.observations, agreement.scores, agreement.dones) == (count - 1,) * 3
    assert agreement.first is not None
    assert (agreement.first.step, agreement.first.what) == (2, "observation")


def test_the_command_prints_and_writes_figures(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "figures" / "agreement.json"
    out.parent.mkdir()
    assert main(["fidelity", "scienceworld", str(folder), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "find-animal" in printed
    assert "100.0 %" in printed
    assert json.loads(out.read_text())["7-1"]["runs"] == 1


def test_what_is_no_transcript_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValueError, match="not a folder"):
        measure_science_world(str(tmp_path / "none"))
    with pytest.raises(BadValueError, match="no transcript"):
        measure_science_world(str(tmp_path))
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(DataError, match="task_name"):
        measure_science_world(str(tmp_path))
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        measure_science_world(str(tmp_path))
    with pytest.raises(UnknownNameError, match="unknown task"):
        measure_science_world(str(tmp_path), ["boyl"])


def test_an_unknown_world_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fidelity", "chess", str(folder)]) == 2
    assert "scienceworld" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "none" / "figures.json"
    assert main(["fidelity", "scienceworld", str(folder), "--json", str(out)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_blanks_do_not_count() -> None:
    assert normal("  a  b \n\tc  \n") == "a b\n\tc"
