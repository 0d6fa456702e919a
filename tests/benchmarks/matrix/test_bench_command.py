"""`turngym bench`: what it prints, writes and refuses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from helpers.tiny_matrix import Pretender, column, filled, tiny
from rich.console import Console

from turngym.benchmarks.cli.bench import Command, executor
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.matrix.board import Board
from turngym.benchmarks.matrix.executors import ProcessExecutor
from turngym.benchmarks.matrix.jobs import Job
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.progress_view import Lines, footer, name_cells, table
from turngym.benchmarks.matrix.run import run_matrix
from turngym.benchmarks.matrix.suite import Suite
from turngym.benchmarks.matrix.train_cell import make_result
from turngym.benchmarks.speed import table as speed
from turngym.envs.core.errors import DataError, UnknownNameError

FAST = """
def test_fork(benchmark):
    benchmark(lambda: None)
    benchmark.extra_info["steps_per_s"] = 1234.5

def test_reset(benchmark):
    benchmark.pedantic(lambda: None, rounds=2)
    assert False, "too slow"

def test_grpo_step(benchmark):
    import pytest
    pytest.skip("trl is not installed")
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give one of"),
        (["--suite", "quick", "--speed"], "give one of"),
        (["--suite", "qiuck"], "Did you mean 'quick'?"),
        (["--suite", "nowhere.json"], "nowhere.json: there is no such file"),
        (["--suite", "results.jsonl"], "unknown suite 'results.jsonl'. Known: quick"),
        (["--suite", "quick", "--only", "recipe=grp"], "Did you mean 'grpo'?"),
        (["--suite", "quick", "--only", "grpo"], "expected recipe=NAME"),
        (["--suite", "ladder", "--only", "row=tarl", "--only", "env=Fog-v0"], "has no cell that"),
        (["--suite", "ladder", "--oracle", "--only", "row=tarl", "--only", "env=Fog"], "no cell"),
        (["--suite", "quick", "--baseline", "none"], "unknown row 'none'"),
        (["--suite", "quick", "--workers", "0"], "expected at least 1"),
        (["--suite", "quick", "--seeds", "0"], "--seeds 0: expected at least 1"),
        (["--suite", "standard", "--seeds", "101"], "--seeds 101: lr_search: a seed of it is"),
        (["--suite", "ladder", "--seeds", "1001"], "shares a seed with the row that it repeats"),
        (["--report", "nowhere", "--seeds", "7"], "--seeds does not go with bench --report"),
        (["--suite", "quick", "--gpus-per-worker", "1"], "go with --executor ray"),
        (["--report", "nowhere"], "nowhere does not exist"),
        (
            ["--report", "nowhere", "--workers", "2"],
            "--workers does not go with bench --report, which takes --out and --baseline.",
        ),
        (
            ["--report", "nowhere", "--only", "env=x", "--reuse", "y", "--executor", "ray"],
            "--executor, --reuse and --only do not go with bench --report",
        ),
        (["--pack", "nowhere", "--baseline", "ppo"], "takes --out."),
        (["--guide", "nowhere", "--ray-address", "auto"], "--ray-address does not go with"),
        (["--speed", "--baseline", "ppo"], "--baseline does not go with bench --speed"),
        (
            ["--suite", "ladder", "--oracle", "--workers", "2"],
            "takes --suite, --seeds, --out and --only.",
        ),
        (["--suite", "ladder", "--oracle", "--reuse", "x"], "--reuse does not go with"),
        (["--pack", "nowhere", "--report", "nowhere"], "give one of"),
        (["--pack", "nowhere", "--out", "a.jsonl"], "nowhere does not exist"),
        (["--report", "."], "no suite.json"),
        (["--speed", "--only", "file=nothing"], "unknown speed file 'nothing'"),
    ],
)
def test_refusals(
    words: list[str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *words]) == REFUSED
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_full_needs_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["bench", "--suite", "full"]) == REFUSED
    assert "needs GPUs with 70 GB; torch sees none" in capsys.readouterr().err


def test_every_core_has_a_worker_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    workers = executor(Command(suite="quick"), tmp_path, [])
    assert workers.slots == 3
    assert isinstance(workers, ProcessExecutor)
    assert {e["OMP_NUM_THREADS"] for e in workers._environments} == {"1"}


def test_a_full_folder_is_only_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tiny()
    out = tmp_path / "out"
    filled(out, suite, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    suite.write(tmp_path / "own.json")
    assert main(["bench", "--suite", str(tmp_path / "own.json"), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "2 finished; 2 were there before" in said
    assert (out / "report.html").is_file()
    assert not (out / "logs").exists()
    elsewhere = tmp_path / "elsewhere"
    words = ["--report", str(out), "--out", str(elsewhere), "--baseline", "nobody"]
    assert main(["bench", *words]) == REFUSED
    said = capsys.readouterr().err
    assert "unknown row 'nobody'. Known: grpo, ppo." in said
    assert "name another one: --baseline ROW" in said
    assert not elsewhere.exists()


def test_more_seeds_go_into_a_folder_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = tiny(seeds=(5, 6))
    suite.write(tmp_path / "own.json")
    seven = suite.with_seeds(3)
    assert (seven.seeds, seven.digest) == ((5, 6, 7), tiny(seeds=(5, 6, 7)).digest)
    assert tiny(seeds=(7, 3)).with_seeds(4).seeds == (7, 3, 8, 9)
    assert tiny(seeds=(7, 3)).with_seeds(1).seeds == (7,)
    filled(tmp_path / "runs" / f"bench-{suite.name}", suite, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    filled(tmp_path / "others", seven, lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    reuse = ["--reuse", f"runs/bench-{suite.name}", "--reuse", "others"]
    assert main(["bench", "--suite", "own.json", "--seeds", "3", *reuse]) == 0
    told = capsys.readouterr().out
    old, new = len(suite.cells), len(seven.cells)
    assert f"{old} finished cells of runs/bench-{suite.name}" in told
    assert f"{new - old} finished cells of others; {old} were there before" in told
    assert (tmp_path / "runs" / f"bench-{suite.name}-3-seeds" / "report.md").exists()
    assert main(["bench", "--suite", "own.json", "--seeds", "2"]) == 0  # its own number
    assert f"{old} were there before" in capsys.readouterr().out
    words = ["bench", "--suite", "own.json", "--out", "others"]
    assert main(words) == REFUSED
    assert "seeds: 3, not 2. Give --seeds 3" in capsys.readouterr().err.replace("\n", " ")
    parts = [f"--report=runs/bench-{suite.name}", "--report=others"]
    assert main(["bench", *parts, "--out", "both"]) == REFUSED
    assert "number of seeds than another part, 3 and 2" in capsys.readouterr().err.replace(
        "\n", " "
    )


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "run", tiny(), lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    tiny().write(tmp_path / "own.json")
    out = tmp_path / "own.json" / "below"
    for words in (["--suite", str(tmp_path / "own.json")], ["--report", str(tmp_path / "run")]):
        assert main(["bench", *words, "--out", str(out)]) == REFUSED
        assert "cannot be a folder (Not a directory)" in capsys.readouterr().err.replace("\n", " ")


def test_results_are_packed_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder was "FOLDER.part: cannot be used"."""
    filled(tmp_path / "out", tiny(), lambda cell: [[1.0, 0.0, 0.0, 0.0]])
    words = ["bench", "--pack", str(tmp_path / "out"), "--out"]
    assert main([*words, str(tmp_path)]) == REFUSED
    assert f"{tmp_path}: is a folder; expected a file to write" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "new" / "mine.jsonl.gz")]) == 0
    assert (tmp_path / "new" / "mine.jsonl.gz").is_file()


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        (tiny(envs=["Mine-v0"]), "unknown environment 'Mine-v0'"),
        (tiny(recipes=["grpo", "mine"]), "unknown recipe 'mine'"),
    ],
)
def test_a_plugin_that_was_forgotten_is_told_before_anything_is_written(
    suite: Suite, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write(tmp_path / "own.json")
    out = tmp_path / "out"
    assert main(["bench", "--suite", str(tmp_path / "own.json"), "--out", str(out)]) == REFUSED
    said = capsys.readouterr().err.replace("\n", " ")
    assert says in said
    assert "--plugin" in said
    assert not out.exists()


def test_a_failed_cell_is_told_by_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tiny()

    def fail(suite: Suite, out: Path, *_: object, **__: object) -> Board:
        last = suite.cells[1]
        one = make_result(suite, last, "failed", "ZeroDivisionError: mine")
        layout = filled(out, suite, lambda cell: one if cell == last else [[1.0] * 4])
        board = Board(suite, layout, suite.cells)
        board.results[last.key] = one
        return board

    monkeypatch.setattr("turngym.benchmarks.matrix.run.run_matrix", fail)
    suite.write(tmp_path / "own.json")
    with pytest.raises(SystemExit) as ended:
        main(["bench", "--suite", str(tmp_path / "own.json"), "--out", str(tmp_path / "out")])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "1 failed, 1 finished" in said
    assert "tries them again" in said
    assert (tmp_path / "out" / "report.md").is_file()


def refuse_column(layout: Layout, suite: Suite, job: Job) -> str:
    """The start of a column that cannot be made."""
    refused = column(suite, job.column).model_copy(
        update={"state": "refused", "reason": "no expert"}
    )
    refused.write(layout.column_file(job.column))
    return ""


def refuse_cell(layout: Layout, suite: Suite, job: Job) -> str:
    """A recipe that does not go with an environment."""
    assert job.cell is not None
    make_result(suite, job.cell, "refused", "no values").write(layout.cell_file(job.cell))
    return ""


@pytest.mark.parametrize(
    ("refused", "status", "says"),
    [
        (lambda job: job.cell is not None, 1, "no cell ran: every one was refused (4 in all)"),
        (lambda job: job.cell is None and job.column == "Password-v0", 1, "has no start, which"),
        (lambda job: job.cell is not None and job.cell.recipe == "ppo", 0, ""),
    ],
)
def test_a_matrix_that_did_not_run_is_told_by_the_exit_status(
    refused: Callable[[Job], bool],
    status: int,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All cells of a suite were refused, with status 0; single ones belong to a matrix."""
    suite, out = tiny(envs=("Bandit-v0", "Password-v0")), tmp_path / "out"
    layout = Layout(out)

    def act(job: Job) -> str | None:
        if not refused(job):
            return None
        return (refuse_column if job.cell is None else refuse_cell)(layout, suite, job)

    pretend = lambda *_: Pretender(suite, layout, act)  # noqa: E731
    monkeypatch.setattr("turngym.benchmarks.cli.bench.executor", pretend)
    suite.write(tmp_path / "own.json")
    words = ["bench", "--suite", str(tmp_path / "own.json"), "--out", str(out)]
    with pytest.raises(SystemExit) if status else nullcontext() as ended:
        main(words)
    said = capsys.readouterr().out
    if status:
        assert ended is not None
        assert ended.value.code == status
        assert says in said
    assert ("no cell ran" in said, "has no start" in said) == (
        "no cell ran" in says,
        "has no start" in says,
    )
    assert (out / "report.md").is_file()


def test_what_stops_several_cells_is_printed_once(tmp_path: Path) -> None:
    """The error of a column without a start stood there once per cell."""
    suite = tiny(envs=("Bandit-v0", "Password-v0"), seeds=(0, 1))
    layout = Layout(tmp_path / "out")

    def act(job: Job) -> str | None:
        if job.cell is None and job.column == "Password-v0":
            return refuse_column(layout, suite, job)
        return None

    console = Console(width=200, record=True, file=(tmp_path / "said.txt").open("w"))
    worker = Pretender(suite, layout, act)
    board = run_matrix(suite, layout.root, worker, Lines(console))
    said = console.export_text().splitlines()
    assert len(said) == 5
    (once,) = [line for line in said if "no start" in line]
    assert "Password-v0, 4 cells: refused: no start: no expert" in once
    assert board.no_start == {"Password-v0": 4}
    row = [make_result(suite, cell, "failed", "no memory") for cell in suite.cells[::4]]
    assert name_cells(row) == "grpo on Bandit-v0, 2 cells"


def test_the_table_shows_every_state(tmp_path: Path) -> None:
    suite = tiny(("grpo", "ppo", "rloo"), ("Bandit-v0", "Password-v0"))

    def returns(cell: object) -> object:
        key = getattr(cell, "key", "")
        if key.startswith("ppo"):
            return make_result(suite, suite.cells[1], "failed", "x") if "Bandit" in key else None
        return [[1.0, 1.0, 1.0, 0.0]] if key.startswith("grpo") else None

    layout = filled(tmp_path, suite, returns)
    board = Board(suite, layout, suite.cells)
    job = board.next_job()
    assert job is not None
    board.start(job)
    console = Console(width=100, record=True, file=(tmp_path / "said.txt").open("w"))
    console.print(table(board), footer(board, 2))
    said = console.export_text()
    assert "75" in said  # grpo's success
    assert "0% ▸" in said  # ppo on Bandit runs again
    assert "·" in said
    assert "2 finished, 1 running, 3 waiting" in said


# ---------------------------------------------------------------- speed


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "test_speed_tiny.py").write_text(FAST)
    monkeypatch.setattr(speed, "FOLDER", folder)
    return tmp_path


def test_the_speed_files_are_found() -> None:
    found = {path.name for path in speed.speed_files(())}
    assert {"test_speed_step.py", "test_speed_search_qa.py"} <= found
    assert [path.name for path in speed.speed_files(["file=step"])] == ["test_speed_step.py"]
    assert (speed.ROOT / "pyproject.toml").is_file()


def test_speed_files_become_one_table(files: Path) -> None:
    out = files / "speed.md"
    speed.write_speed(out, ["file=tiny"], Console(quiet=True))
    text = out.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert any(
        r.startswith("| forks | tiny | `fork` |") and "steps a second 1,234" in r for r in rows
    )
    assert "Failed:" in text
    assert "test_reset" in text.partition("Failed:")[2]
    assert "trl is not installed" in text.partition("Skipped:")[2]
    assert "cores" in text


def test_a_file_that_cannot_be_run_is_told(files: Path) -> None:
    (files / "benchmarks" / "test_speed_tiny.py").write_text("def broken(:\n")
    with pytest.raises(DataError, match="pytest ended with status"):
        speed.write_speed(files / "speed.md", [], Console(quiet=True))
    assert not (files / "speed.md").exists()


def test_speed_filters(files: Path) -> None:
    assert [p.name for p in speed.speed_files([])] == ["test_speed_tiny.py"]
    with pytest.raises(UnknownNameError, match="unknown filter 'env'"):
        speed.speed_files(["env=x"])


def test_units_and_kinds() -> None:
    assert [speed.duration(s) for s in (2.0, 0.0031, 4.2e-6, 7e-9)] == [
        "2 s",
        "3.1 ms",
        "4.2 µs",
        "7 ns",
    ]
    assert speed.figure("bytes_per_env", 50_000) == "bytes per env 5e+04"
    kinds = {name: speed.kind_of(name) for name in ("fork[a]", "tokens_per_second", "reset")}
    assert kinds == {
        "fork[a]": "forks",
        "tokens_per_second": "engine, learner and training",
        "reset": "resets and building",
    }
