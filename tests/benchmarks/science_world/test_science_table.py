"""`turngym eval --per-task`: published scores, sets per task, the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turngym.algos.training.config import EnvConfig
from turngym.benchmarks.cli.main import main
from turngym.benchmarks.science_world.table import published, task_sets
from turngym.envs.core.errors import BadValueError
from turngym.envs.science_world.tasks.catalogue import TASKS


def test_published_scores_are_complete_and_have_sources() -> None:
    columns, lengths = published()
    ids = [kind.id for kind in TASKS]
    assert list(lengths) == ids
    assert [column.group for column in columns] == ["paper"] * 6 + ["gpt-4"] * 5 + ["gpt-3.5"] * 5
    for column in columns:
        assert list(column.scores) == ids
        assert all(0 <= score <= 100 for score in column.scores.values())
        assert "arXiv" in column.source


@pytest.mark.parametrize(
    ("group", "name", "mean"),
    [
        ("paper", "DRRN", 17),
        ("paper", "KG-A2C", 11),
        ("gpt-4", "SayCan", 33.82),
        ("gpt-4", "ReAct", 36.43),
        ("gpt-4", "Reflexion", 45.34),
        ("gpt-4", "SwiftSage", 84.68),
        ("gpt-3.5", "SwiftSage", 62.22),
    ],
)
def test_means_are_the_published_ones(group: str, name: str, mean: float) -> None:
    (column,) = [c for c in published()[0] if (c.group, c.name) == (group, name)]
    found = sum(column.scores.values()) / len(column.scores)
    assert found == pytest.approx(mean, abs=0.5 if group == "paper" else 0.01)


def test_sets_are_the_tasks() -> None:
    whole = task_sets(EnvConfig(id="ScienceWorld-v0", settings={}), "test", 10)
    assert [made.name for made in whole] == [kind.id for kind in TASKS]
    some = EnvConfig(id="ScienceWorld-v0", settings={"tasks": "Forces", "max_turns": 20})
    made = task_sets(some, "test", 10)
    assert [one.env.settings["tasks"] for one in made] == ["9-1", "9-2", "9-3"]
    assert made[0].env.settings["max_turns"] == 20
    micro = task_sets(EnvConfig(id="ScienceWorld-v0", settings={"size": "micro"}), "dev", 1)
    assert [one.name for one in micro] == ["6-1", "7-1", "7-2", "7-3"]
    with pytest.raises(BadValueError, match="ScienceWorld-v0"):
        task_sets(EnvConfig(id="Game24-v0", settings={}), "test", 10)


def test_the_command_shows_measured_beside_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.json"
    words = ["--env", "ScienceWorld-v0", "--per-task", "--split", "test", "--n", "2"]
    tasks = ["--env.tasks", "7-1", "--published", "gpt-4", "--out", str(out)]
    assert main(["eval", "--agent", "expert", "random", *words, *tasks]) == 0
    printed = capsys.readouterr().out
    assert "SwiftSage" in printed
    assert "less" not in printed  # two variations a task tell no agents apart
    assert "KG-A2C" not in printed
    assert "arXiv 2305.17390" in printed
    line = next(line for line in printed.splitlines() if line.startswith("7-1"))
    assert line.split()[2:4] == ["7", "100"]
    rows = {row["agent"]: row for row in json.loads(out.read_text())}
    assert rows["expert"]["metrics"]["reached"] == 100
    assert 0 <= rows["random"]["metrics"]["reached"] <= 100


def test_bad_use_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["eval", "--agent", "expert", "--env", "Game24-v0", "--per-task"]) == 2
    assert "--per-task" in capsys.readouterr().err
    words = ["eval", "--agent", f"drrn:{tmp_path}", "--env", "ScienceWorld-v0", "--per-task"]
    assert main(words) == 2
    assert "drrn.json is missing" in " ".join(capsys.readouterr().err.split())
