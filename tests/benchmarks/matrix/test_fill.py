"""Real cells: trained by workers, resumed, killed and refused."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import time
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from helpers.tiny_matrix import Quiet, finished, tiny

from turngym.algos.recipes import make_recipe
from turngym.algos.runs.run_dir import read_json, read_metrics
from turngym.algos.training.config import model_digest
from turngym.algos.training.supervised.warm_start import MANIFEST
from turngym.algos.training.trainer import Trainer
from turngym.benchmarks.matrix import executors, rate_search, worker
from turngym.benchmarks.matrix.board import Board
from turngym.benchmarks.matrix.cell import CellResult
from turngym.benchmarks.matrix.executors import ProcessExecutor, cards_take_turns
from turngym.benchmarks.matrix.jobs import Job, format_trace, perform, unfinished_result
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.matrix_files import read_parts, write_packed
from turngym.benchmarks.matrix.report import write_report
from turngym.benchmarks.matrix.run import run_matrix
from turngym.benchmarks.matrix.suite import NamedStart, RateSearch, Suite, SuiteRecipe, TaughtStart

ONE = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def started(folder: Path, suite: Suite) -> Layout:
    """A folder whose column has its start."""
    layout = Layout(folder)
    folder.mkdir()
    layout.claim(suite)
    assert perform(Job(out=str(folder), column=suite.envs[0].name)) == "finished"
    return layout


def filled_cell(layout: Layout, suite: Suite) -> CellResult:
    """The suite's first cell, computed in this process."""
    cell = suite.cells[0]
    perform(Job(out=str(layout.root), column=cell.column, cell=cell))
    result = layout.cell(suite, cell)
    assert result is not None
    return result


def test_workers_fill_a_matrix(tmp_path: Path) -> None:
    suite = tiny().model_copy(
        update={
            "recipes": (
                *tiny().recipes,
                SuiteRecipe(name="sft", settings={"groups_per_step": 4, "optim.lr": -1.0}),
            )
        }
    )
    workers = ProcessExecutor(1, tmp_path / "logs", environment=ONE)
    board = run_matrix(suite, tmp_path, workers, Quiet())
    assert board.counts() == {"finished": 2, "refused": 1}, board.results
    limits = suite.envs[0].limits
    for cell in suite.cells[:2]:
        result = board.results[cell.key]
        assert result.tries is not None
        assert result.machine is not None
        used = result.used
        assert used.tokens >= limits.tokens or used.calls >= limits.calls
        rows = read_metrics(board.layout.run_dir(cell) / "metrics.jsonl")
        before = [row for row in rows if row["step"] == used.steps - 1 and "budget/turns" in row]
        assert before[-1]["budget/tokens"] < limits.tokens
        assert before[-1]["budget/turns"] < limits.calls
        assert result.curve[0].step == 0
        assert result.curve[-1].step == used.steps
        assert (result.curve[-1].tokens, result.curve[-1].calls) == (used.tokens, used.calls)
        assert [len(row) for row in result.tries.solved] == [4, 4]
        assert result.greedy_tries is not None
        assert [len(row) for row in result.greedy_tries.solved] == [4]
        assert used.optimizer_steps >= used.steps
        played = [row for row in rows if "rollout/success_frac" in row]
        assert result.training.values == tuple(row["rollout/success_frac"] for row in played)
        assert result.area is not None
    refused = board.results["sft--Bandit-v0--s0"]
    assert "Optim.lr is -1.0" in refused.reason
    column = board.columns["Bandit-v0"]
    assert column.reference["expert"].mean("solved") == 1.0
    first = board.results[suite.cells[0].key]
    assert column.start_digest == first.start_digest
    assert column.tasks_digest
    assert column.tasks_digest == first.tasks_digest


def test_a_cell_is_not_computed_on_other_tasks_than_its_column(tmp_path: Path) -> None:
    suite = tiny(("grpo",))
    layout = started(tmp_path / "m", suite)
    start = layout.column(suite, "Bandit-v0")
    assert start is not None
    changed = start.model_copy(update={"tasks_digest": "0" * 32})
    changed.write(layout.column_file("Bandit-v0"))
    result = filled_cell(layout, suite)
    assert result.state == "failed"
    assert f"({start.tasks_digest[:12]}) are not those that it began with (000000" in result.reason
    assert result.used.tokens == 0
    start.model_copy(update={"tasks_digest": ""}).write(layout.column_file("Bandit-v0"))
    first = filled_cell(layout, suite)
    assert first.state == "finished"  # of a folder from before there was one


def test_a_folder_from_before_keeps_the_tasks_of_its_first_new_cell(tmp_path: Path) -> None:
    """Its column has no hash of tasks, so that a change in between was seen by the report alone."""
    suite = tiny(("grpo",), seeds=(0, 1))
    layout = started(tmp_path / "m", suite)
    start = layout.column(suite, "Bandit-v0")
    assert start is not None
    start.model_copy(update={"tasks_digest": ""}).write(layout.column_file("Bandit-v0"))
    first, second = suite.cells
    old = finished(suite, first, [[1.0] * 4] * 2).model_copy(update={"tasks_digest": "0" * 32})
    old.write(layout.cell_file(first))
    job = Job(out=str(layout.root), column="Bandit-v0", cell=second)
    assert perform(job) == "failed"
    result = layout.cell(suite, second)
    assert result is not None
    assert "are not those that it began with (000000" in result.reason


def test_an_interrupted_cell_ends_in_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tiny(("grpo",))
    whole = filled_cell(started(tmp_path / "whole", suite), suite)
    layout = started(tmp_path / "cut", suite)
    real, steps = Trainer.train_step, []

    def cut(self: Trainer) -> dict[str, float]:
        if len(steps) == 2:
            raise KeyboardInterrupt
        steps.append(1)
        return real(self)

    monkeypatch.setattr(Trainer, "train_step", cut)
    with pytest.raises(KeyboardInterrupt):
        filled_cell(layout, suite)
    half = layout.cell(suite, suite.cells[0])
    assert half is not None
    assert (half.state, half.used.steps) == ("interrupted", 2)
    monkeypatch.setattr(Trainer, "train_step", real)
    resumed = filled_cell(layout, suite)
    assert resumed.state == "finished"
    assert resumed.curve == whole.curve
    assert resumed.tries == whole.tries
    assert resumed.used.tokens == whole.used.tokens


def test_an_interrupted_retry_leaves_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Called interrupted, a seed that had diverged no longer stood in the way of a verdict."""
    suite = tiny(("grpo",))
    layout = started(tmp_path / "out", suite)
    (cell,) = suite.cells
    failure = unfinished_result(suite, cell, layout, "failed", "nan")
    failure.write(layout.cell_file(cell))

    def stop(self: Trainer) -> dict[str, float]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train_step", stop)
    with pytest.raises(KeyboardInterrupt):
        filled_cell(layout, suite)
    assert layout.cell(suite, cell) == failure
    board = Board(suite, layout, suite.cells)
    board.start(Job(out=str(layout.root), column=cell.column, cell=cell))
    board.mark_interrupted()  # as after a worker that was killed
    assert layout.cell(suite, cell) == failure
    assert Board(suite, layout, suite.cells).counts() == {"waiting": 1}  # it is tried again


def test_a_learning_rate_is_searched_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = RateSearch(scales=(1, 20), seeds=(50, 51), share=0.5, margin=0.0)
    suite = tiny(("grpo", "sft"), lr_search=plan)
    layout = started(tmp_path / "out", suite)
    real, runs = Trainer.run, []

    def cut(self: Trainer) -> Any:
        if len(runs) == 1:
            raise KeyboardInterrupt
        runs.append(self.config)
        return real(self)

    job = Job(out=str(layout.root), column="Bandit-v0", recipe="grpo")
    monkeypatch.setattr(Trainer, "run", cut)
    with pytest.raises(KeyboardInterrupt):
        perform(job)
    half = layout.search(suite, "grpo", "Bandit-v0")
    assert half is not None
    assert (half.state, half.rate, len(half.tried)) == ("interrupted", None, 1)
    monkeypatch.setattr(Trainer, "run", real)
    assert perform(job) == "finished"
    search = layout.search(suite, "grpo", "Bandit-v0")
    assert search is not None
    assert search.tried[0] == half.tried[0]
    own = make_recipe("grpo", small=True).optim.lr
    rates = [scale * own for scale in plan.scales]
    assert [(t.rate, t.seed) for t in search.tried] == [(r, s) for s in (50, 51) for r in rates]
    assert search.used.tokens <= 4 * 45  # half of 60 each, and a group
    areas = {s: [t.area for t in search.tried if t.rate == s * own] for s in plan.scales}
    assert search.rate == own * plan.choose(areas)
    cell = filled_cell(layout, suite)
    assert (cell.rate, cell.search) == (search.rate, search.used)
    assert runs[0].seed == 50
    # an imitator has no success of its own to choose by
    assert perform(Job(out=str(layout.root), column="Bandit-v0", recipe="sft")) == "finished"
    kept = layout.search(suite, "sft", "Bandit-v0")
    assert kept is not None
    assert (kept.rate, kept.tried) == (None, ())


def test_a_search_keeps_the_models_of_one_trial_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = RateSearch(scales=(1, 2, 3), seeds=(50,), share=0.5)
    suite = tiny(("grpo",), lr_search=plan)
    layout = started(tmp_path / "out", suite)
    real, alive = rate_search.open_trainer, WeakSet[Trainer]()
    most: list[int] = []

    def opened(*given: Any) -> Trainer:
        most.append(len(alive))
        alive.add(trainer := real(*given))
        return trainer

    monkeypatch.setattr(rate_search, "open_trainer", opened)
    perform(Job(out=str(layout.root), column="Bandit-v0", recipe="grpo"))
    assert most == [0, 0, 0]


class DumbError(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing to say")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ZeroDivisionError("a bug"), "ZeroDivisionError: a bug"),
        (OSError("no file caf\udce9.txt"), r"OSError: no file caf\udce9.txt"),
        (DumbError(), "DumbError: <exception str() failed>"),
    ],
)
def test_an_error_becomes_the_cells_result(
    error: Exception, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that no file can hold, or that has no words, ended the worker in its place."""
    suite = tiny(("grpo",))
    layout = started(tmp_path / "out", suite)

    def broken(self: Trainer) -> dict[str, float]:
        raise error

    monkeypatch.setattr(Trainer, "train_step", broken)
    result = filled_cell(layout, suite)
    assert (result.state, result.reason) == ("failed", says)
    assert "in broken" in result.trace
    assert str(Path.home()) not in result.trace


def test_an_error_is_told_where_the_account_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of a user who is a number alone ended, and the cell's reason was its status."""

    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert format_trace(ZeroDivisionError("a bug")) == "ZeroDivisionError: a bug"


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (TaughtStart(settings={"hiden": 3}), "unknown setting 'hiden'"),
        (NamedStart(name="/no/such/model"), "/no/such/model"),
    ],
)
def test_a_start_that_cannot_be_made_tells_why(tmp_path: Path, start: Any, says: str) -> None:
    suite = tiny()
    changed = suite.envs[0].model_copy(update={"start": start})
    suite = suite.model_copy(update={"envs": (changed,)})
    layout = Layout(tmp_path)
    layout.claim(suite)
    assert perform(Job(out=str(tmp_path), column="Bandit-v0")) != "finished"
    column = layout.column(suite, "Bandit-v0")
    assert column is not None
    assert says in column.reason


def test_a_named_model_imitates_before_its_rows_start(tmp_path: Path, tiny_model: Path) -> None:
    suite = tiny(("grpo",))
    start = NamedStart(name=str(tiny_model), warm_start=4, warm_start_batch=2)
    changes = {"start": start, "checkpoint_every": 2}
    suite = suite.model_copy(update={"envs": (suite.envs[0].model_copy(update=changes),)})
    layout = started(tmp_path / "m", suite)
    result = filled_cell(layout, suite)
    column = layout.column(suite, "Bandit-v0")
    assert column is not None
    assert result.state == "finished"
    assert column.about["base"] == str(tiny_model) != column.start
    assert column.about["action_tokens"] > 0
    assert read_json(Path(column.start) / MANIFEST)["steps"] == 2
    assert result.start_digest == column.start_digest == model_digest(column.start)
    assert column.start_digest != model_digest(str(tiny_model))
    assert column.zero_shot_tries is not None
    assert column.zero_shot_greedy_tries is not None
    assert len(column.zero_shot_tries.solved) == 2
    write_report([layout.root])
    text = (layout.root / "report.md").read_text()
    assert "Before its imitation: " in text
    packed = layout.root / "packed.jsonl"
    write_packed(read_parts([layout.root]), packed)
    assert str(tmp_path) not in packed.read_text()


def test_a_killed_worker_is_told_and_replaced(tmp_path: Path) -> None:
    """The worker dies while Python starts; the next job gets a new one, which ends after it."""
    suite = tiny(("grpo",), envs=("Nowhere-v0",))
    layout = Layout(tmp_path)
    layout.claim(suite)
    workers = ProcessExecutor(1, layout.logs, environment=ONE, jobs_per_worker=1)
    job = Job(out=str(tmp_path), column="Nowhere-v0")
    try:
        workers.submit(job)
        child = workers._workers[0]
        assert child is not None
        os.kill(child._process.pid, signal.SIGKILL)
        ended = until_ended(workers)
        assert "was killed (out of memory?)" in ended.death
        workers.submit(job)
        second = workers._workers[0]
        assert second is not None
        assert until_ended(workers).death == ""
        assert second._process.returncode == 0  # it had its one job, and left in peace
        assert workers._workers == [None]
        column = layout.column(suite, "Nowhere-v0")
        assert column is not None
        assert column.state == "refused"
    finally:
        workers.stop()


def test_a_worker_that_dies_between_two_jobs_fails_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "idle").mkdir()
    answers = 'import sys\nfor _ in sys.stdin: print(\'{"done": "it"}\', flush=True)'
    (tmp_path / "idle" / "worker.py").write_text(answers)
    monkeypatch.setattr(executors, "__package__", "idle")
    workers = ProcessExecutor(1, tmp_path / "logs", environment={"PYTHONPATH": str(tmp_path)})
    try:
        for _ in range(2):
            workers.submit(Job(out=str(tmp_path), column="a"))
            assert until_ended(workers).death == ""
            worker = workers._workers[0]
            assert worker is not None
            worker._process.kill()
            worker._process.wait()
    finally:
        workers.stop()


def test_a_second_interrupt_leaves_the_workers_to_the_next_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "idle").mkdir()
    (tmp_path / "idle" / "worker.py").write_text("import sys; sys.stdin.read()")
    monkeypatch.setattr(executors, "__package__", "idle")
    workers = ProcessExecutor(2, tmp_path / "logs", environment={"PYTHONPATH": str(tmp_path)})
    for name in ("a", "b"):
        workers.submit(Job(out=str(tmp_path), column=name))
    processes = [one._process for one in workers._workers if one is not None]
    end, interrupts = executors._Worker.end, [KeyboardInterrupt]

    def cut(self: executors._Worker, seconds: float) -> None:
        if interrupts:
            raise interrupts.pop()
        end(self, seconds)

    monkeypatch.setattr(executors._Worker, "end", cut)
    with pytest.raises(KeyboardInterrupt):
        workers.stop()
    workers.stop()
    assert all(process.poll() is not None for process in processes)


def test_each_worker_sees_its_gpu(tmp_path: Path) -> None:
    workers = ProcessExecutor(3, tmp_path, gpus=("0", "GPU-abc"))
    seen = [environment["CUDA_VISIBLE_DEVICES"] for environment in workers._environments]
    assert seen == ["0", "GPU-abc", "0"]
    # two of them are on one card at the same time: each has its share of the card's memory
    shares = [environment.get("TURNGYM_GPU_SHARE") for environment in workers._environments]
    assert shares == ["0.47", "1.0", "0.47"]
    alone = ProcessExecutor(2, tmp_path)._environments
    assert [environment.get("TURNGYM_GPU_SHARE") for environment in alone] == [None, None]


def test_workers_that_share_a_card_take_turns_without_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.setattr(executors, "MPS_FOLDER", tmp_path / "nvidia-mps")
    assert cards_take_turns(3, ("0", "1"))
    assert not cards_take_turns(2, ("0", "1"))
    assert not cards_take_turns(3, ())
    (tmp_path / "nvidia-mps").mkdir()
    assert cards_take_turns(3, ("0", "1"))
    (tmp_path / "nvidia-mps" / "control").touch()
    assert not cards_take_turns(3, ("0", "1"))
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert cards_take_turns(3, ("0", "1"))
    (tmp_path / "control").touch()
    assert not cards_take_turns(3, ("0", "1"))


@pytest.mark.slow
def test_ray_fills_a_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "200")  # read on import; busy machines
    ray = pytest.importorskip("ray")
    from turngym.benchmarks.matrix.ray_executor import RayExecutor

    suite = tiny(("grpo",))
    try:
        board = run_matrix(suite, tmp_path, RayExecutor(1), Quiet())
    finally:
        assert not ray.is_initialized()
    assert board.counts() == {"finished": 1}


def until_ended(workers: ProcessExecutor) -> Any:
    """The next job that ends."""
    limit = time.monotonic() + 200
    while time.monotonic() < limit:
        if ended := workers.wait(1.0):
            return ended[0]
    raise AssertionError("nothing ended")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_whose_stop_was_swallowed_ends_with_its_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waited for another job until it was killed."""
    done = []

    def swallow(job: str) -> str:
        done.append(job)
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))()
        return "finished"

    monkeypatch.setattr(worker, "_take_stdout", io.StringIO)
    monkeypatch.setattr(worker, "_jobs", lambda busy: iter(("one", "two")))
    monkeypatch.setattr(worker, "perform", swallow)
    for name in ("prepare", "load_inherited", "freeze_for_good", "give_memory_back"):
        monkeypatch.setattr(worker, name, lambda *_, **__: None)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert worker.main() == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["one"]
