"""`turngym fidelity household --live`, with a stand-in for the engine; and beside the real one."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
import time
from pathlib import Path

import pytest
from helpers.household import DATA
from helpers.household_stand_in import SHARED, StandIn, modules

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.fidelity.household import measure_household, measure_live_household
from turngym.benchmarks.fidelity.household_live import Original, read_texts
from turngym.benchmarks.fidelity.live import LiveSettings
from turngym.envs import fork
from turngym.envs.core.errors import BadValueError, DataError, MissingExtraError, UnknownNameError
from turngym.envs.household.engine.game import LIGHT, SIMPLE, TASK_TYPES
from turngym.envs.household.env import Household
from turngym.envs.household.original.files import read_game_files

ONE = LiveSettings(runs=1, steps=12)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    for name, module in modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return StandIn


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Games of the sample and the texts that they share."""
    games = tmp_path / "packed" / "games"
    games.mkdir(parents=True)
    (games / "games.json.gz").write_bytes((DATA / "games" / "games.json.gz").read_bytes())
    (games / "shared.json.gz").write_bytes(gzip.compress(json.dumps(SHARED).encode()))
    return games.parent


@pytest.mark.usefixtures("engine")
def test_our_house_agrees_with_itself(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, keep = tmp_path / "figures.json", tmp_path / "kept"
    words = ["--live", "--task", LIGHT, "--task", SIMPLE, "--runs", "1", "--steps", "15"]
    files = ["--json", str(out), "--keep", str(keep)]
    assert main(["fidelity", "household", str(packed), *words, *files]) == 0
    figures = json.loads(out.read_text())
    assert set(figures) == {LIGHT, SIMPLE}
    for row in figures.values():
        assert row["runs"] == row["openings"] == 4  # a plan and a walk in each edition
        assert row["steps"] > 30
        counters = ("observations", "admissible", "won", "scores")
        assert {row[name] for name in counters} == {row["steps"]}
    assert "first difference" not in capsys.readouterr().out
    again = {kind: row.as_row() for kind, row in measure_household(str(keep)).items()}
    assert again == figures
    lines = (keep / "transcripts" / "live.jsonl").read_text().splitlines()
    kinds = [
        (row["edition"], row["kind"], row["steps"][-1]["won"]) for row in map(json.loads, lines)
    ]
    assert {(edition, won) for edition, kind, won in kinds if kind == "plan"} == {
        ("file", True),
        ("0.4.2", True),
    }
    answers = {step["observation"] for row in map(json.loads, lines) for step in row["steps"]}
    assert "Nothing happens." in answers


def test_a_difference_is_found(
    engine: type[StandIn], packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "flaw", "you see")
    found = measure_live_household(str(packed), ONE, [SIMPLE])[SIMPLE]
    assert found.openings == 0
    assert found.admissible == found.steps > found.observations
    assert found.first is not None
    assert found.first.what == "opening"


@pytest.mark.usefixtures("engine")
def test_runs_are_of_the_seed(packed: Path, tmp_path: Path) -> None:
    texts = []
    for place, seed in (("a", 1), ("b", 1), ("c", 2)):
        settings = LiveSettings(runs=1, steps=8, seed=seed, keep=str(tmp_path / place))
        measure_live_household(str(packed), settings, [SIMPLE])
        texts.append((tmp_path / place / "transcripts" / "live.jsonl").read_text())
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.usefixtures("engine")
def test_games_as_downloaded_speak_their_own_edition(packed: Path, tmp_path: Path) -> None:
    with gzip.open(packed / "games" / "games.json.gz") as file:
        rows = [row for row in json.load(file) if f"/{SIMPLE}-" in row["path"]]
    row = next(row for row in rows if row.get("solvable", True) and row.get("loadable", True))
    game = tmp_path / "json_2.1.1" / row["path"]
    game.parent.mkdir(parents=True)
    for end, edition in (("", "file"), ("_v042", "0.4.2")):
        task = json.dumps(row["task"])[1:-1]
        grammar = SHARED[f"grammar{end}"].replace("@@TASK@@", task)
        own = {"grammar": f'{grammar} "task": [ {{ "rhs": "{task}" }} ]'}
        game.write_text(json.dumps(row | own | {"pddl_domain": SHARED[f"pddl_domain{end}"]}))
        keep = tmp_path / edition
        settings = LiveSettings(runs=1, steps=5, keep=str(keep))
        found = measure_live_household(str(tmp_path / "json_2.1.1"), settings)[SIMPLE]
        assert found.runs == found.openings == 2
        lines = (keep / "transcripts" / "live.jsonl").read_text().splitlines()
        assert {json.loads(line)["edition"] for line in lines} == {edition}


@pytest.mark.usefixtures("engine")
def test_what_cannot_be_played_is_refused(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="task type"):
        measure_live_household(str(packed), ONE, ["cook"])
    (tmp_path / "file").write_text("")
    blocked = LiveSettings(runs=1, steps=2, keep=str(tmp_path / "file" / "below"))
    with pytest.raises(BadValueError, match="cannot write"):
        measure_live_household(str(packed), blocked, [SIMPLE])
    with pytest.raises(BadValueError, match="without their grammar"):
        measure_live_household(str(DATA), ONE)
    (packed / "games" / "shared.json.gz").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot be read"):
        measure_live_household(str(packed), ONE)


def test_the_engine_is_an_extra(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textworld", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[household-original\]"):
        measure_live_household(str(packed), ONE)


@pytest.mark.textworld
@pytest.mark.skipif(
    importlib.util.find_spec("textworld") is None,
    reason="the package textworld is not installed (extra household-original)",
)
def test_beside_the_original() -> None:
    """Whole games with the original's own grammars, played by the original now."""
    found = measure_live_household(str(DATA / "original"), LiveSettings(runs=1, steps=20))
    assert set(found) == set(TASK_TYPES)
    for row in found.values():
        assert row.first is None
        assert row.openings == row.runs == 4
        assert row.observations == row.admissible == row.won == row.scores == row.steps
        assert row.steps > 2 * 20  # a walk and a plan in each edition


@pytest.mark.textworld
@pytest.mark.skipif(
    importlib.util.find_spec("textworld") is None,
    reason="the package textworld is not installed (extra household-original)",
)
def test_speed_beside_the_original() -> None:
    """Steps with lists of admissible commands in one run, by processor time; at least 400 times."""
    place, rounds = DATA / "original", 50
    file = next(file for file in read_game_files(place) if not file.refused)
    texts = read_texts(place, [file])[file.path]
    original = Original(file.problem, next(one for one in texts if one.edition == "0.4.2"))
    env = Household(games=place, admissible=True)
    env.reset(seed=0, options={"split": file.split, "task": 0})
    start = fork(env)
    commands = [command for command in env.legal_actions() if command.startswith("go to")] * 2
    original.reset()
    began = time.process_time()
    for command in commands:
        original.step(command)
    theirs = time.process_time() - began
    began = time.process_time()
    for _ in range(rounds):
        twin = fork(start)
        for command in commands:
            twin.step(command)
    ours = (time.process_time() - began) / rounds
    print(f"beside the original, in one run: {theirs / ours:,.0f} times")
    assert theirs / ours > 400
