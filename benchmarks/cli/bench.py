"""`turngym bench`: the matrix, its report, and the speed table."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from ...envs.core.errors import BadValueError, UnknownNameError
from ..matrix.executors import Executor, ProcessExecutor
from ..matrix.layout import Layout
from ..matrix.machine_info import check_gpus, visible_gpus
from ..matrix.progress_view import view
from ..matrix.report import write_report
from ..matrix.run import run_matrix
from ..matrix.suite import Suite
from ..matrix.suites import SUITES
from .bench_options import BenchCommand

SPEED_FILE = "benchmarks/RESULTS-speed.md"


def run(command: BenchCommand) -> None:
    """Do what the options ask for.

    Raises:
        BadValueError: Not exactly one thing, or options of another.
    """
    asked = [command.suite is not None, command.report is not None, command.speed]
    if sum(asked) != 1:
        raise BadValueError("bench: give one of --suite NAME, --report FOLDER and --speed.")
    if command.suite is not None:
        fill(command, find_suite(command.suite))
    elif command.report is not None:
        _refuse_extra(command, ("out", "only", "workers"), "--report")
        tell_report(Path(command.report), command.baseline)
    else:
        from ..speed.table import write_speed

        _refuse_extra(command, ("workers",), "--speed")
        write_speed(Path(command.out or SPEED_FILE), command.only, Console())


def fill(command: BenchCommand, suite: Suite) -> None:
    """Fill the cells that are wanted, and write the report.

    Raises:
        BadValueError: The machine, or the folder, does not fit the suite.
    """
    suite.recipe(command.baseline)
    cells = suite.only(command.only)
    gpus = [] if suite.device == "cpu" else visible_gpus()
    if command.executor == "process" or command.ray_address is None:
        check_gpus(suite, gpus)
    out = Path(command.out or Path("runs") / f"bench-{suite.name}")
    console = Console()
    console.print(
        f"suite {suite.name} version {suite.version}: {len(cells)} cells in {out}", highlight=False
    )
    board = run_matrix(suite, out, executor(command, out, gpus), view(), cells)
    counts = ", ".join(f"{n} {state}" for state, n in sorted(board.counts().items()))
    console.print(f"{counts}; {board.reused} were there before", highlight=False)
    tell_report(out, command.baseline)


def executor(command: BenchCommand, out: Path, gpus: list[str]) -> Executor:
    """Where the cells run.

    Raises:
        BadValueError: Less than one worker.
        MissingExtraError: Ray is not installed.
    """
    cores = len(os.sched_getaffinity(0))
    workers = command.workers if command.workers is not None else (len(gpus) or cores)
    if workers < 1:
        raise BadValueError(f"--workers {workers}: expected at least 1.")
    if command.executor == "ray":
        from ..matrix.ray_executor import RayExecutor

        return RayExecutor(workers, command.gpus_per_worker, command.ray_address)
    if command.ray_address is not None or command.gpus_per_worker:
        raise BadValueError("--ray-address and --gpus-per-worker go with --executor ray.")
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // workers)))}
    return ProcessExecutor(workers, Layout(out).logs, gpus, threads)


def find_suite(name: str) -> Suite:
    """A suite of the package, or one from a file.

    Raises:
        UnknownNameError: Neither.
        DataError: A file that holds no suite.
    """
    if name in SUITES:
        return SUITES[name]
    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        return Suite.read(path)
    raise UnknownNameError("suite", name, [*SUITES, "a suite file (.json)"])


def tell_report(folder: Path, baseline: str) -> None:
    """Write the report and say where it lies."""
    console = Console()
    for path in write_report(folder, baseline):
        console.print(f"report      {path}", highlight=False, soft_wrap=True)


def _refuse_extra(command: BenchCommand, names: tuple[str, ...], mode: str) -> None:
    for name in names:
        if getattr(command, name):
            raise BadValueError(f"bench: --{name.replace('_', '-')} does not go with {mode}.")
