"""Columns of a matrix: rows as their cells had them, at the start and half way, kept."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.forests import single_turns, tree, turn
from helpers.tiny_matrix import filled

from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.training.config import model_digest
from turngym.benchmarks.cli.main import main
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.matrix_files import read_folder
from turngym.benchmarks.matrix.references import make_start_model
from turngym.benchmarks.matrix.suite import BlankStart, Limits, Suite, SuiteEnv, SuiteRecipe
from turngym.benchmarks.matrix.train_cell import make_train_config
from turngym.benchmarks.microscope.against import compare_reports, write_comparison
from turngym.benchmarks.microscope.columns import (
    POLICY,
    ColumnJob,
    ColumnSettings,
    found_start,
    plan_columns,
    row_configs,
)
from turngym.benchmarks.microscope.metrics import reference_measures
from turngym.benchmarks.microscope.report import CreditReport
from turngym.benchmarks.microscope.study import StudySettings, compared_returns
from turngym.benchmarks.microscope.sweep import kept_report, report_or_reason, run_sweep
from turngym.envs.core.errors import BadValueError, DataError

HOW = {"batches": 2, "batch_tokens": 8, "compared": 2, "reference": 2}
SETTINGS = ColumnSettings(batches=2, compared=3, reference=2, continuations=4, samples=100)
TOKENS = 24


@pytest.fixture(scope="module")
def suite() -> Suite:
    rows = (
        SuiteRecipe(name="grpo", settings={"rollout.n": 3, "optim.lr": 0.002}),
        SuiteRecipe(name="grpo", settings={"rollout.n": 3, "optim.lr": 0.002}).again(),
        SuiteRecipe(name="ppo"),
        SuiteRecipe(name="sft"),
    )
    column = SuiteEnv(
        id="Password-v0",
        name="doors",
        settings={"size": "micro"},
        start=BlankStart(settings={"hidden": 16, "layers": 1, "inner": 16, "episodes": 10}),
        limits=Limits(tokens=4 * TOKENS, calls=400),
        max_tokens=1,
        eval_tasks=4,
        eval_every=0,
        tokens_per_step=TOKENS,
    )
    return Suite(
        name="doors", version=1, about="for tests", recipes=rows, envs=(column,), seeds=(0, 1)
    )


@pytest.fixture(scope="module")
def matrix(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix whose start is real and whose cells are made by hand."""
    folder = tmp_path_factory.mktemp("matrix")
    filled(folder, suite, lambda cell: [[float(cell.recipe == "ppo")] * 4] * suite.trials)
    start, about = make_start_model(suite.envs[0])
    layout = Layout(folder)
    column = layout.column(suite, "doors")
    assert column is not None
    changes: dict[str, Any] = {
        "start": start,
        "start_digest": model_digest(start),
        "settings": {"size": "micro"},
        "about": about,
    }
    column.model_copy(update=changes).write(layout.column_file("doors"))
    return folder


def jobs(matrix: Path, folder: Path, *ats: Any, only: tuple[str, ...] = ()) -> list[ColumnJob]:
    return plan_columns(read_folder(matrix), only, ats or ("start",), folder, SETTINGS)


@pytest.fixture(scope="module")
def swept(matrix: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    out, told = tmp_path_factory.mktemp("credit"), []
    sweep = run_sweep(jobs(matrix, out, "start", "halfway"), 1, told.append)
    assert sweep.failed == {}
    return out, told


def test_rows_have_the_recipes_of_their_cells(matrix: Path, suite: Suite, tmp_path: Path) -> None:
    (job,) = jobs(matrix, tmp_path)
    configs, refused = row_configs(job, job.start)
    assert list(configs) == ["grpo", "ppo"]
    assert "not sampled by the policy" in refused["sft"]
    assert job.refused == {"grpo again": "repeats grpo with other seeds: one credit"}
    cell = suite.cells[0]
    theirs = make_train_config(suite, cell, job.start, cell.seed, suite.envs[0].limits)
    assert configs["grpo"].recipe == theirs.recipe
    assert configs["grpo"].recipe.optim.lr == 0.002
    (one,) = jobs(matrix, tmp_path, only=("row=ppo",))
    assert one.rows == ("ppo",)


def test_rows_have_equal_tokens_and_one_reference(swept: tuple[Path, list[str]]) -> None:
    report = CreditReport.read(swept[0] / "start" / "doors" / "credit.json")
    rows = {row.name: row for row in report.rows if row.role == "recipe"}
    assert list(rows) == ["grpo", "ppo"]
    for row in rows.values():  # batches end with the group that reaches the multiple
        assert TOKENS <= row.tokens < TOKENS + 3 * 6
        assert {"cosine_batch", "cosine_reference", "cosine_summed"} <= row.measures.keys()
    same = {row.measures["reference_reliability"].value for row in rows.values()}
    assert len(same) == 1
    assert rows["ppo"].groups > rows["grpo"].groups
    assert report.place is not None
    assert set(report.place.refused) == {"grpo again", "sft"}


def test_half_way_is_a_policy_that_learned(swept: tuple[Path, list[str]]) -> None:
    start, half = (
        CreditReport.read(swept[0] / at / "doors" / "credit.json") for at in ("start", "halfway")
    )
    assert half.model_digest != start.model_digest
    assert half.model_digest == model_digest(str(swept[0] / "halfway" / "doors" / POLICY))
    assert half.place is not None
    assert half.place.policy == "grpo, seed 0, after half of its budget"
    assert half.rows[0].measures != start.rows[0].measures


def test_finished_columns_are_kept(
    matrix: Path, swept: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(job: ColumnJob) -> None:
        raise AssertionError(job.name)

    monkeypatch.setattr("turngym.benchmarks.microscope.sweep.measure_column", never)
    (job,) = jobs(matrix, swept[0])
    assert len(run_sweep([job], 1, lambda _: None).kept) == 1
    other = replace(job, settings=replace(SETTINGS, compared=4))
    assert kept_report(other) is None  # of other settings: measured again
    assert kept_report(replace(job, rows=("dapo",))) is None


@pytest.mark.parametrize("at", ["start", "halfway"])
def test_a_report_of_another_start_is_not_kept(
    matrix: Path, swept: tuple[Path, list[str]], tmp_path: Path, at: str
) -> None:
    """One of half way was kept beside the figures of the new start, without a word."""
    (job,) = jobs(matrix, swept[0], at)
    report = kept_report(job)
    assert report is not None
    start = job.start.model_copy(update={"start_digest": "sha256:of-another-start"})
    assert kept_report(replace(job, start=start)) is None
    shutil.copytree(matrix, tmp_path / "matrix")
    start.write(Layout(tmp_path / "matrix").column_file("doors"))
    (doubt,) = compare_reports(str(tmp_path / "matrix"), [str(job.file)]).doubts
    assert "but of another start than doors has now" in doubt
    assert compare_reports(str(matrix), [str(job.file)]).doubts == []


def test_a_report_that_does_not_know_its_start_is_kept(
    matrix: Path, swept: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """Those of before do not say which it was, and half way takes long."""
    (job,) = jobs(matrix, swept[0], "halfway")
    report = kept_report(job)
    assert report is not None
    assert report.place is not None
    place = report.place.model_copy(update={"start_digest": ""})
    (again,) = jobs(matrix, tmp_path, "halfway")
    report.model_copy(update={"place": place}).write(again.file)
    assert kept_report(again) is not None


def test_rows_asked_for_later_join_those_of_the_report(
    matrix: Path, swept: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows asked for one after the other took the place of each other's figures."""
    (first,) = jobs(matrix, tmp_path, only=("row=ppo",))
    whole = CreditReport.read(swept[0] / "start" / "doors" / "credit.json")
    assert whole.place is not None
    part = {
        "rows": [row for row in whole.rows if row.name != "grpo"],
        "place": whole.place.model_copy(update={"refused": {}}),
    }
    whole.model_copy(update=part).write(first.file)
    asked: list[ColumnJob] = []

    def measure(job: ColumnJob) -> CreditReport:
        asked.append(job)
        return whole

    monkeypatch.setattr("turngym.benchmarks.microscope.sweep.measure_column", measure)
    run_sweep(jobs(matrix, tmp_path, only=("row=grpo",)), 1, lambda _: None)
    assert [job.rows for job in asked] == [("grpo", "ppo")]
    run_sweep(jobs(matrix, tmp_path, only=("row=ppo",)), 1, lambda _: None)
    assert len(asked) == 1


def test_a_column_that_breaks_leaves_the_others_their_reports(
    matrix: Path,
    swept: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An error of a user's environment ended the sweep of all columns in its traceback."""

    def measure(job: ColumnJob) -> CreditReport:
        if job.at == "start":
            raise ZeroDivisionError("a bug")
        return CreditReport.read(swept[0] / job.at / "doors" / "credit.json")

    monkeypatch.setattr("turngym.benchmarks.microscope.sweep.measure_column", measure)
    sweep = run_sweep(jobs(matrix, tmp_path, "start", "halfway"), 1, lambda _: None)
    assert sweep.failed == {"doors (start)": "ZeroDivisionError: a bug"}
    assert [report.place and report.place.at for report in sweep.measured] == ["halfway"]
    assert "in measure" in capsys.readouterr().err
    killed: Future[CreditReport | str] = Future()
    killed.set_exception(BrokenProcessPool("a process was terminated"))
    assert report_or_reason(killed) == "a process was terminated"


def test_the_same_numbers_again(
    matrix: Path, swept: tuple[Path, list[str]], tmp_path: Path
) -> None:
    (job,) = jobs(matrix, tmp_path)
    run_sweep([job], 1, lambda _: None)
    old = CreditReport.read(swept[0] / "start" / "doors" / "credit.json")
    assert CreditReport.read(job.file).rows == old.rows


def test_reports_are_found_below_a_folder_and_set_against_areas(
    matrix: Path, swept: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compare_reports(str(matrix), [str(swept[0])])
    assert {(cell.at, cell.recipe) for cell in found.cells} == {
        (at, row) for at in ("start", "halfway") for row in ("grpo", "ppo")
    }
    assert "doors, start" in found.refused
    assert {order.at for order in found.orders} == {"start", "halfway"}
    _, page = write_comparison(found, tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "4 cells with a measure and an area" in text
    assert "- sft: its actions are not sampled" in text
    given = ["--against", str(matrix), "--reports", str(swept[0]), "--out", str(tmp_path)]
    assert main(["credit", *given]) == 0
    assert "not decided" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["", "/home/elsewhere/starter"])
def test_a_start_that_is_not_here_is_made_again(matrix: Path, tmp_path: Path, place: str) -> None:
    """Packed results hold no model, and a folder that was moved names another machine's."""
    (job,) = jobs(matrix, tmp_path)
    lost = job.start.model_copy(update={"start": place})
    assert found_start(job.suite, lost) == job.start
    assert found_start(job.suite, job.start) is job.start


def test_what_does_not_fit_is_refused(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadValueError, match="once, not per seed"):
        jobs(matrix, tmp_path, only=("seed=0",))
    (job,) = jobs(matrix, tmp_path)
    elsewhere = job.start.model_copy(update={"start_digest": "sha256:other"})
    sweep = run_sweep([replace(job, start=elsewhere)], 1, lambda _: None)
    assert "another one" in sweep.failed["doors (start)"]
    with pytest.raises(DataError, match=r"no credit\.json"):
        compare_reports(str(matrix), [str(tmp_path)])
    for words, says in (
        (["--only", "row=grpo"], "--only needs --matrix."),
        (["--at", "start", "--batches", "2"], "--at and --batches need --matrix."),
        (["--anchors", "5"], "--anchors needs --resample."),
        (["--matrix", str(matrix), "--recipe", "ppo"], "--recipe does not go with credit --matrix"),
        (
            ["--matrix", str(matrix), "--groups", "3", "--max-batch", "8"],
            "--max-batch and --groups",
        ),
    ):
        assert main(["credit", *words]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "change", [{"batches": 0}, {"batch_tokens": 0}, {"compared": 0}, {"reference": 1}]
)
def test_batches_that_do_not_fit_are_refused(change: dict[str, int]) -> None:
    StudySettings(**HOW)  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match="StudySettings"):
        StudySettings(**{**HOW, **change})  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match="resampled"):
        StudySettings(**HOW, resample=8)  # type: ignore[arg-type]


def test_cosines_with_the_reference_are_exact_without_noise() -> None:
    one = np.ones((1, 4))
    toward = np.tile([3.0, 4.0, 0.0], (3, 1))
    credit = np.tile([1.0, 0.0, 0.0], (4, 1))
    found = reference_measures(credit, toward, np.full(4, 10.0), one)
    for name in ("cosine_reference", "cosine_summed", "cosine_expected"):
        assert found[name] == pytest.approx(0.6)
    assert found["reference_reliability"] == pytest.approx(1.0)
    # .36 of the squared length lies along it, .64 beside it, and a batch has 10 tokens
    assert found["reference_per_1k"] == pytest.approx(1000 * 0.36 / 0.64 / 10)


def test_noise_of_batches_lowers_one_cosine_and_not_the_expected_one() -> None:
    noise = np.array([[1.0, 1, 0], [1, -1, 0], [1, 0, 1], [1, 0, -1]])
    toward = np.tile([2.0, 0.0, 0.0], (2, 1))
    found = reference_measures(noise, toward, np.full(4, 10.0), np.ones((1, 4)))
    assert found["cosine_reference"] == pytest.approx(np.sqrt(0.5))
    assert found["cosine_summed"] == pytest.approx(1.0)
    opposed = np.array([[1.0, 0, 0], [-1, 0, 0]])  # no direction in common: no measure
    assert reference_measures(noise, opposed, np.full(4, 10.0), np.ones((1, 4))) == {}


def test_a_reference_episode_is_compared_with_the_others_of_its_group() -> None:
    found = [float(row[0]) for row in compared_returns(single_turns([1.0, 0.0, 0.0]))]
    assert found == pytest.approx([1 / 3, -0.5 / 3, -0.5 / 3])
    assert [float(row[0]) for row in compared_returns(single_turns([1.0]))] == [0.0]


def test_a_reference_episode_counts_once_however_many_sessions_it_has() -> None:
    # as paths, an action that asks for a session would weigh the others' returns anew: a bias
    asks = tree(turn(), turn(1.0, parent=0, edge=Edge.SPAWN, status="solved"))
    both = tree(turn(1.0, status="solved")), tree(turn(0.0, status="failed"))
    found = compared_returns(Forest.of([Group("1/0", "task", [asks, *both])]))
    assert [float(row[0]) for row in found] == pytest.approx([0.5 / 4, 0.5 / 4, 0.5 / 4, -1 / 4])
