"""docs/file-formats.md names every file, and every key of it, in its section; and no other."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.training_runs import config, run
from helpers.viewer_runs import write_run
from pydantic import BaseModel

from turngym.agents.drrn.policy import WEIGHTS
from turngym.agents.drrn.settings import DRRN_FILE, DrrnTraining
from turngym.agents.paper_selector.settings import SELECTOR_FILE
from turngym.agents.planning.pair_scores import pair_scores
from turngym.agents.planning.records import Pair, record
from turngym.agents.planning.reward_model import HEAD
from turngym.agents.planning.settings import REWARD_FILE
from turngym.agents.planning.trajectory import Move, Trajectory
from turngym.algos.core.forest import Group, Turn
from turngym.algos.evaluation.result import RunResult, SetScore
from turngym.algos.evaluation.score_rows import ScoreRow, TaskOutcome
from turngym.algos.recipes.spo import spo
from turngym.algos.recipes.tigpo import tigpo
from turngym.algos.training.checkpoint import AHEAD, CRITIC, MEMORY, SHARDS, STATE, RunCounters
from turngym.algos.training.rollout_dump import SUFFIX
from turngym.algos.training.supervised.epochs import BatchMetrics, run_epochs
from turngym.algos.training.supervised.selector import TrainingSettings
from turngym.benchmarks.claims.claim import Comparison
from turngym.benchmarks.claims.outcome import Finding, Outcome, Verdict
from turngym.benchmarks.claims.packing import RESULTS
from turngym.benchmarks.claims.report import PAGES as CLAIM_PAGES
from turngym.benchmarks.claims.run import ARMS
from turngym.benchmarks.ladder.oracle.forecast import ArmForecast, FamilyForecast, Oracle
from turngym.benchmarks.ladder.report import ORACLE_FILE
from turngym.benchmarks.matrix.cell import (
    Cell,
    CellResult,
    ColumnResult,
    Machine,
    SearchResult,
    Tries,
)
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.report import PAGES
from turngym.benchmarks.matrix.suite import Suite, SuiteEnv
from turngym.benchmarks.microscope import against, report
from turngym.benchmarks.microscope.metrics import TURN_MEASURES
from turngym.envs.utils.seed_tests import SeedTest
from turngym.envs.utils.statistics import Estimate
from turngym.envs.wrappers.record import RecordedStep, Transcript
from turngym.leaderboard.suites.sealed import PUBLIC, REVEALED, SEALED, SECRET, Season, Secret

PAGE = (Path(__file__).parents[2] / "docs" / "file-formats.md").read_text(encoding="utf-8")
SECTIONS = {
    part.partition("\n")[0]: part for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)[1:]
}
TABLED = {
    Cell,
    Tries,
    TaskOutcome,
    SuiteEnv,
    report.Row,
    report.MatrixPlace,
    against.CreditCell,
    against.Order,
    Comparison,
    Finding,
    Machine,
    RecordedStep,
    SeedTest,
    SetScore,
}
"""Records inside others that have a table of their own, or are told elsewhere."""


def spans(text: str) -> set[str]:
    """What stands in the text as code."""
    return set(re.findall(r"`([^`\n]+)`", text))


def table(section: str, head: str) -> dict[str, str]:
    """The rows of a section's table by the names in their first cell."""
    lines = SECTIONS[section].split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {head} |"))
    rows: dict[str, str] = {}
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        names = spans(line.split("|")[1])
        assert names, line
        assert not names & rows.keys(), line
        rows |= dict.fromkeys(names, line)
    return rows


def keys(kind: type[BaseModel]) -> set[str]:
    """Names of a record's fields in files."""
    return {field.alias or name for name, field in kind.model_fields.items()}


def records(annotation: Any) -> Iterable[type[BaseModel]]:
    """Records that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from records(part)


def check(section: str, head: str, kind: type[BaseModel], elsewhere: str = "") -> None:
    """A table has a record's fields, and its rows those of the records inside.

    Args:
        section: Heading of the section.
        head: First cell of the table's head.
        kind: The record.
        elsewhere: Beginning of a line of the section that names fields too.
    """
    rows = table(section, head)
    more = ""
    if elsewhere:
        (more,) = [line for line in SECTIONS[section].split("\n") if line.startswith(elsewhere)]
    assert rows.keys() | spans(more) == keys(kind)
    said = spans("".join(rows.values()))
    for name in kind.model_fields.keys() & rows.keys():
        for inner in records(kind.model_fields[name].annotation):
            assert inner in TABLED or keys(inner) <= said, (section, name)


def names_of(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A run that plays ahead, in one process."""
    folder = tmp_path_factory.mktemp("formats") / "run"
    run(config(tiny_model, max_lag=1), folder)
    return folder


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_directory(made: Path) -> None:
    section = "A run directory"
    files = table(section, "file")
    there = {path.name + "/" * path.is_dir() for path in made.iterdir()}
    assert files.keys() - {"earlier-1/"} == there
    (start,) = read(made / "versions.json")["starts"]
    assert table(section, "field of an entry").keys() == start.keys()
    check(section, "field of a result", RunResult)
    for path in (made / "trajectories").iterdir():
        named = re.sub(r"\d{6}", "NNNNNN", path.name).replace("dev", "SET")
        assert named in spans(files["trajectories/"])


def test_a_checkpoint(made: Path) -> None:
    section = "A checkpoint"
    files = table(section, "file")
    there = {f"trainer/{path.name}" for path in made.glob("checkpoints/*/trainer/*")}
    assert files.keys() == there | {CRITIC, MEMORY, SHARDS}
    state = read(made / "checkpoints" / "step-000004" / STATE)
    assert state.keys() <= spans(files[STATE])
    for recipe in (spo(), tigpo()):
        assert recipe.tracker is not None
        memory = recipe.tracker.start(0, "train", 8, (0.0, 1.0))
        assert (memory.state() or {}).keys() <= spans(files[MEMORY])
    counters = table(section, "field of `progress`").keys()
    assert counters == state["progress"].keys() == names_of(RunCounters)
    (ahead,) = made.glob(f"checkpoints/step-000002/{AHEAD}/*.json")
    rows = table(section, "field of `step-NNNNNN.json`")
    about = read(ahead)
    assert rows.keys() == about.keys()
    for name in ("stats", "seconds"):
        assert about[name].keys() <= spans(rows[name])


def test_forests_and_numbers_per_token(tmp_path: Path) -> None:
    assert table("Forests", "field of a group").keys() == names_of(Group)
    assert table("Forests", "field of a turn").keys() == names_of(Turn)
    write_run(tmp_path)
    file = next((tmp_path / "trajectories").glob(f"*{SUFFIX}"))
    head, group, *_ = (json.loads(line) for line in file.read_bytes().split(b"\n") if line)
    rows = table("Numbers per token", "field")
    path = group["paths"][0]
    assert rows.keys() == (head | group | path).keys() - names_of(Group)
    assert {"advantages", "new_logprobs"} <= spans(rows["streams"])


def test_scores_of_an_evaluation() -> None:
    rows = table("Scores of an evaluation", "field")
    row_keys = keys(ScoreRow) - {"score", "greedy_episodes"}
    assert rows.keys() == row_keys | keys(SetScore)
    assert keys(TaskOutcome) <= spans(rows["episodes"])
    assert keys(Estimate) <= spans(rows["success"])


def test_transcripts() -> None:
    assert table("Transcripts", "field").keys() == names_of(Transcript)
    assert table("Transcripts", "field of a step").keys() == names_of(RecordedStep)


def test_a_matrix_folder(tmp_path: Path) -> None:
    section, layout = "A matrix folder", Layout(tmp_path)
    cell = Cell(recipe="ROW", column="COLUMN", seed=0)
    paths = [
        layout.suite_file,
        layout.only_file,
        layout.root / "lock",
        layout.column_file("COLUMN"),
        layout.search_file("ROW", "COLUMN"),
        layout.cell_file(cell),
        *(layout.root / name for name in PAGES),
    ]
    folders = [layout.logs, layout.run_dir(cell), layout.search_dir(cell, 1.0)]
    names = [str(path.relative_to(tmp_path)) for path in paths]
    names += [f"{path.relative_to(tmp_path)}/" for path in folders]
    shown = {name.replace("--s0", "--sSEED").replace("--lr1", "--lrRATE") for name in names}
    assert table(section, "file").keys() == shown
    layout.choose(["row=grpo"])
    layout.choose([])
    assert json.dumps(read(layout.only_file)) in spans(table(section, "file")["only.json"])
    check(section, "field", CellResult)
    assert keys(Cell) <= spans(table(section, "field")["cell"])
    assert table(section, "field of trials").keys() == keys(Tries)
    check(section, "field of a column", ColumnResult, "A column has ")
    check(section, "field of a search", SearchResult, "A search has ")
    check(section, "field of a suite", Suite)
    check(section, "field of a suite's column", SuiteEnv)


def test_a_ladders_forecast() -> None:
    section = "A ladder's forecast"
    said = spans(SECTIONS[section].partition("| field")[0])
    assert {ORACLE_FILE} | keys(Oracle) | keys(FamilyForecast) <= said
    check(section, "field of a row", ArmForecast)
    says = set(typing.get_args(ArmForecast.model_fields["says"].annotation))
    assert says <= spans(table(section, "field of a row")["says"])


def test_a_claims_folder() -> None:
    section = "A claims folder"
    files = table(section, "file")
    assert files.keys() == {f"{RESULTS}/CLAIM.json", f"{ARMS}/", *CLAIM_PAGES, "lock"}
    check(section, "field", Outcome)
    check(section, "field of a finding", Finding)
    check(section, "field of a test over seeds", SeedTest)
    assert set(typing.get_args(Verdict)) <= spans(table(section, "field")["verdict"])


def test_sealed_seasons() -> None:
    section = "Sealed seasons"
    said = spans(SECTIONS[section].partition("| field")[0])
    assert {PUBLIC, SECRET, f"{SEALED}/", f"{REVEALED}/"} | keys(Secret) <= said
    check(section, f"field of `{PUBLIC}`", Season)


def test_a_credit_folder() -> None:
    section = "A credit folder"
    pages = {*report.PAGES, against.AGAINST, "against.md"}
    files = table(section, "file")
    assert files.keys() == {report.FILE, *pages, "lock", f"NAME{SUFFIX}"}
    check(section, "field", report.CreditReport)
    check(section, "field of a row", report.Row)
    check(section, "field of `place`", report.MatrixPlace)
    measures = {column.key for column in (*report.TURNS, *report.GRADIENTS)}
    measures |= {column.ceiling for column in (*report.TURNS, *report.GRADIENTS)} - {""}
    measures |= {*TURN_MEASURES, *against.MEASURES, "reference_reliability"}
    assert table(section, "measure").keys() == measures
    section = "Against a matrix"
    check(section, "field", against.Comparison)
    check(section, "field of a cell", against.CreditCell)
    check(section, "field of an order", against.Order)


def trained(accuracy: float) -> set[str]:
    """What a supervised training notes about itself."""
    rng, metrics = np.random.default_rng(0), BatchMetrics(0.0, accuracy)
    return set(run_epochs([0], 1, 1, rng, lambda _: metrics))


def test_pairs_and_reward_models() -> None:
    section = "Pairs and reward models"
    better, worse = (Trajectory("do", (Move(word, "seen"),)) for word in "ab")
    row = record(Pair("id", better, worse))
    assert table(section, "field").keys() == {*row, *row["output_1"][0]}
    assert table(section, "file").keys() == {HEAD, REWARD_FILE.name}
    assert REWARD_FILE.key == "reading"
    assert table(section, "field of `reading`").keys() == names_of(REWARD_FILE.kind)
    training = table(section, "field of `training`")
    assert training.keys() == {"pairs", *trained(1.0), "held_out"}
    assert pair_scores([1.0], [0.0]).figures().keys() <= spans(training["held_out"])


@pytest.mark.parametrize(
    ("section", "file", "training"),
    [
        ("Paper selectors", SELECTOR_FILE, {*names_of(TrainingSettings), "rows", *trained(np.nan)}),
        ("DRRN", DRRN_FILE, {*names_of(DrrnTraining), "env", "env_settings", "split"}),
    ],
)
def test_selectors_and_drrns(section: str, file: Any, training: set[str]) -> None:
    assert {file.name, file.key, "training"} <= spans(SECTIONS[section])
    assert table(section, "field of `settings`").keys() == names_of(file.kind)
    assert table(section, "field of `training`").keys() == training
    assert section != "DRRN" or WEIGHTS in spans(SECTIONS[section])


def test_examples_of_the_page_are_json() -> None:
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            row: Mapping[str, Any] = json.loads(line)
            TaskOutcome.model_validate(row)
