"""Filling a matrix with pretended results: order, resuming, failures, stops."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from helpers.tiny_matrix import Pretender, Quiet, column, filled, tiny

from turngym.algos.runs.run_dir import RunLockedError
from turngym.benchmarks.matrix.jobs import Job
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.run import run_matrix
from turngym.benchmarks.matrix.suite import RateSearch
from turngym.envs.core.errors import BadValueError, DataError


def test_columns_come_first_and_every_cell_once(tmp_path: Path) -> None:
    suite = tiny(envs=("Bandit-v0", "Password-v0"), seeds=(0, 1))
    view = Quiet()
    worker = Pretender(suite, Layout(tmp_path), lambda job: None)
    board = run_matrix(suite, tmp_path, worker, view)
    assert worker.asked[:2] == ["start of Bandit-v0", "start of Password-v0"]
    assert sorted(worker.asked[2:]) == sorted(str(cell) for cell in suite.cells)
    assert board.counts() == {"finished": 8}
    assert sorted(view.told) == sorted(f"{cell.key} finished" for cell in suite.cells)
    assert worker.stopped == 1


def test_a_learning_rate_is_searched_once_per_row_and_column(tmp_path: Path) -> None:
    plan = RateSearch(scales=(1, 10), seeds=(50,), share=0.5)
    suite = tiny(("grpo", "ppo"), seeds=(0, 1), lr_search=plan)
    suite = suite.model_copy(update={"recipes": (*suite.recipes, suite.recipes[0].again())})
    worker = Pretender(suite, Layout(tmp_path), lambda job: None)
    board = run_matrix(suite, tmp_path, worker, Quiet())
    searches = [asked for asked in worker.asked if asked.startswith("learning rate")]
    # the A/A row takes its twin's
    assert searches == [f"learning rate of {row} on Bandit-v0" for row in ("grpo", "ppo")]
    assert worker.asked.index(searches[1]) < worker.asked.index("ppo on Bandit-v0, seed 0")
    assert board.counts() == {"finished": 6}
    gone = Layout(tmp_path).cell_file(suite.cells[1])
    gone.unlink()
    again = Pretender(suite, Layout(tmp_path), lambda job: None)
    run_matrix(suite, tmp_path, again, Quiet())
    assert again.asked == [str(suite.cells[1])]


def test_without_a_learning_rate_a_row_fails_alone(tmp_path: Path) -> None:
    plan = RateSearch(scales=(1, 10), seeds=(50,), share=0.5)
    suite = tiny(lr_search=plan)

    def act(job: Job) -> str | None:
        return "no memory" if job.recipe == "ppo" else None

    worker = Pretender(suite, Layout(tmp_path), act)
    board = run_matrix(suite, tmp_path, worker, Quiet())
    assert board.counts() == {"finished": 1, "failed": 1}
    assert board.results["ppo--Bandit-v0--s0"].reason == "no learning rate: no memory"


def test_what_is_finished_is_kept(tmp_path: Path) -> None:
    suite = tiny(seeds=(0, 1))
    run_matrix(suite, tmp_path, Pretender(suite, Layout(tmp_path), lambda job: None), Quiet())
    gone = Layout(tmp_path).cell_file(suite.cells[1])
    gone.unlink()
    again = Pretender(suite, Layout(tmp_path), lambda job: None)
    board = run_matrix(suite, tmp_path, again, Quiet())
    assert again.asked == [str(suite.cells[1])]
    assert board.reused == 3


def test_a_dead_worker_fails_its_cell_alone(tmp_path: Path) -> None:
    suite = tiny()

    def act(job: Job) -> str | None:
        return "the worker was killed" if job.cell and job.cell.recipe == "ppo" else None

    board = run_matrix(suite, tmp_path, Pretender(suite, Layout(tmp_path), act), Quiet())
    assert board.counts() == {"finished": 1, "failed": 1}
    result = Layout(tmp_path).cell(suite, suite.cells[1])
    assert result is not None
    assert (result.state, result.reason) == ("failed", "the worker was killed")
    # the next call tries it again
    again = Pretender(suite, Layout(tmp_path), lambda job: None)
    assert run_matrix(suite, tmp_path, again, Quiet()).counts() == {"finished": 2}
    assert again.asked == [str(suite.cells[1])]


def test_a_column_without_a_start_fails_its_cells_alone(tmp_path: Path) -> None:
    suite = tiny(envs=("Bandit-v0", "Password-v0"))

    def act(job: Job) -> str | None:
        return "no memory" if job.cell is None and job.column == "Password-v0" else None

    worker = Pretender(suite, Layout(tmp_path), act)
    board = run_matrix(suite, tmp_path, worker, Quiet())
    assert board.counts() == {"finished": 2, "failed": 2}
    assert not any("on Password" in asked for asked in worker.asked)
    lost = board.results["ppo--Password-v0--s0"]
    assert lost.reason == "no start: no memory"


def test_a_refused_column_tells_why(tmp_path: Path) -> None:
    suite = tiny()
    layout = Layout(tmp_path)

    def act(job: Job) -> str | None:
        refused = column(suite, job.column).model_copy(
            update={"state": "refused", "reason": "no expert"}
        )
        refused.write(layout.column_file(job.column))
        return ""

    board = run_matrix(suite, tmp_path, Pretender(suite, layout, act), Quiet())
    assert {r.state for r in board.results.values()} == {"refused"}
    assert {r.reason for r in board.results.values()} == {"no start: no expert"}


def test_a_stop_marks_what_ran_and_the_next_call_goes_on(tmp_path: Path) -> None:
    suite = tiny(seeds=(0, 1))
    seen: list[str] = []

    def act(job: Job) -> str | None:
        if job.cell is not None:
            seen.append(str(job))
        return None

    worker = Pretender(suite, Layout(tmp_path), act)
    taken = worker.wait

    def interrupted(seconds: float) -> list[object]:
        if len(seen) >= 3:
            raise KeyboardInterrupt
        return taken(seconds)  # type: ignore[return-value]

    worker.wait = interrupted  # type: ignore[method-assign]
    worker.submit = lambda job, give=worker.submit: (  # type: ignore[method-assign]
        give(job) if len(seen) < 2 else seen.append(str(job))
    )
    with pytest.raises(KeyboardInterrupt):
        run_matrix(suite, tmp_path, worker, Quiet())
    assert worker.stopped == 1
    states = [r.state for c in suite.cells if (r := Layout(tmp_path).cell(suite, c)) is not None]
    assert states.count("interrupted") == 1
    again = Pretender(suite, Layout(tmp_path), lambda job: None)
    assert run_matrix(suite, tmp_path, again, Quiet()).counts() == {"finished": 4}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    suite = tiny()
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        worker = Pretender(suite, Layout(tmp_path), lambda job: None)
        with pytest.raises(RunLockedError, match="another process"):
            run_matrix(suite, tmp_path, worker, Quiet())
    assert worker.asked == []


def test_another_suite_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, tiny(), lambda cell: None)
    edits = {"seeds: 1, not 2. Give --seeds 1": tiny(seeds=(0, 1)), "version 1": tiny(trials=1)}
    for difference, other in edits.items():
        with pytest.raises(BadValueError, match=f"contains suite 'tiny' .*{difference}") as edited:
            run_matrix(
                other, tmp_path, Pretender(other, Layout(tmp_path), lambda job: None), Quiet()
            )
        assert f"--reuse {tmp_path} takes over" in str(edited.value)
    stranger = tiny().model_copy(update={"name": "another"})
    with pytest.raises(BadValueError, match=r"Choose another folder\.$"):
        run_matrix(
            stranger, tmp_path, Pretender(stranger, Layout(tmp_path), lambda job: None), Quiet()
        )


def test_a_strange_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    suite = tiny()
    with pytest.raises(BadValueError, match=r"thesis\.tex"):
        run_matrix(suite, tmp_path, Pretender(suite, Layout(tmp_path), lambda job: None), Quiet())


def test_a_damaged_result_names_its_file(tmp_path: Path) -> None:
    suite = tiny()
    layout = filled(tmp_path, suite, lambda cell: [[1.0] * 4])
    path = layout.cell_file(suite.cells[0])
    path.write_text(path.read_text()[:50])
    with pytest.raises(DataError, match=r"grpo--Bandit-v0--s0\.json"):
        run_matrix(suite, tmp_path, Pretender(suite, layout, lambda job: None), Quiet())
