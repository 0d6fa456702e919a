"""`turngym fidelity --live`: transcripts made on the spot, with a stand-in for the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.science_stand_in import Server, StandIn

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.fidelity import science_live as fidelity_live
from turngym.benchmarks.fidelity.live import LiveSettings
from turngym.benchmarks.fidelity.science_live import house_by_arrival, live_transcripts
from turngym.benchmarks.fidelity.science_world import measure_science_world
from turngym.envs.core.errors import BadValueError
from turngym.envs.science_world.engine.step import step
from turngym.envs.science_world.house.build import build_house
from turngym.envs.science_world.tasks.build import start_episode
from turngym.envs.science_world.tasks.catalogue import find_kind

ENGINES: list[StandIn] = []


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> StandIn:
        ENGINES.append(StandIn(envStepLimit=1))
        return ENGINES[-1]

    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "")
    monkeypatch.setattr(fidelity_live, "version", lambda _: "1.3.0")
    monkeypatch.setattr(fidelity_live, "check_java", lambda: None)
    monkeypatch.setattr(fidelity_live, "start_engine", start)


def test_our_world_agrees_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, keep = tmp_path / "figures.json", tmp_path / "kept"
    words = ["--task", "7-1", "--task", "4-2", "--runs", "1", "--steps", "15"]
    files = ["--json", str(out), "--keep", str(keep)]
    assert main(["fidelity", "scienceworld", "--live", *words, *files]) == 0
    figures = json.loads(out.read_text())
    for task in ("7-1", "4-2"):
        row = figures[task]
        assert row["runs"] == 2
        assert row["steps"] > 15
        assert row["observations"] == row["scores"] == row["steps"]
        assert row["first_difference"] is None
    assert "original engine" not in capsys.readouterr().out
    assert ENGINES[-1].closed
    again = measure_science_world(str(keep))["7-1"].as_row()
    assert again == figures["7-1"]


def test_a_difference_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Server.step
    monkeypatch.setattr(Server, "step", lambda self, text: right(self, text).replace("the", "a"))
    words = ["--task", "7-1", "--runs", "1", "--steps", "5"]
    assert main(["fidelity", "scienceworld", "--live", *words]) == 0
    assert "first difference" in capsys.readouterr().out


def test_runs_are_of_the_seed_and_of_few_known_variations() -> None:
    kind = find_kind("7-2")

    def made(seed: int) -> list[tuple[str, Any]]:
        return list(live_transcripts([kind], LiveSettings(runs=2, steps=8, seed=seed)))

    assert made(1) == made(1)
    assert made(1) != made(2)
    known = {kind.split(split)[0] for split in ("train", "dev", "test")}
    assert not known & {transcript["variation"] for _, transcript in made(1)}
    simple = [transcript["simplifications_used"] for _, transcript in made(1)]
    assert simple[:2] == ["", ""]
    assert "openDoors" in simple[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--live", "--runs", "0"], "runs is 0"),
        (["--live", "--steps", "-1"], "steps is -1"),
        (["folder", "--live"], "leave the FOLDER out"),
        ([], "name a FOLDER"),
    ],
)
def test_bad_options(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fidelity", "scienceworld", *words]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = LiveSettings(runs=1, steps=2, keep=str(tmp_path / "file" / "below"))
    with pytest.raises(BadValueError, match="cannot write"):
        next(live_transcripts([find_kind("7-1")], settings))


def test_transcripts_of_older_engines_are_replayed_in_order_of_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list(live_transcripts([find_kind("7-1")], LiveSettings(runs=1, steps=2)))
    assert {transcript["order"] for _, transcript in made} == {"creation"}
    monkeypatch.setattr(fidelity_live, "version", lambda _: "1.2.3")
    made = list(live_transcripts([find_kind("7-1")], LiveSettings(runs=1, steps=2)))
    assert {transcript["order"] for _, transcript in made} == {"arrival"}
    kind = find_kind("boil")
    said = []
    for house in (build_house, house_by_arrival):
        state = start_episode(kind, 0, ("openDoors",), house)
        state.put(state.agent, state.places["kitchen"])
        for name in ("stopwatch", "thermometer"):
            step(state, f"put {name} in stove")
        twin = state.fork()
        stove = next(o for o, name in enumerate(twin.name) if name == "stove")
        said.append([twin.name[o] for o in twin.kids[stove]])
    assert said == [["thermometer", "stopwatch"], ["stopwatch", "thermometer"]]
