"""`turngym bench`: the benchmark matrix, its report, and the speed table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...algos.runs.console import PlainConsole
from ...envs.core.errors import BadValueError, UnknownNameError, check_package
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import check_writable
from ...envs.utils.system import count_cores
from .arguments import Repeated, check_workers, output_file, refuse_others
from .tables import plain_table, say, table_console

if TYPE_CHECKING:
    from rich.table import Table

    from ..ladder.families import Family
    from ..ladder.oracle.forecast import Oracle
    from ..matrix.board import Board
    from ..matrix.executors import Executor
    from ..matrix.matrix_files import MatrixFiles
    from ..matrix.results import Results
    from ..matrix.suite import Suite


SPEED_FILE = "benchmarks/RESULTS-speed.md"
GUIDE_FILE = "docs/which-algorithm.md"
_RAY = ("executor", "ray_address", "gpus_per_worker")
MODES: Mapping[str, tuple[str, ...]] = {
    "oracle": ("oracle", "suite", "seeds", "only", "out"),
    "suite": ("suite", "seeds", "out", "workers", *_RAY, "reuse", "only", "baseline"),
    "report": ("report", "out", "baseline"),
    "pack": ("pack", "out"),
    "guide": ("guide", "out", "baseline"),
    "speed": ("speed", "only", "out"),
}
"""What the command can do, by the option that asks for it, and the options that each takes."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Fill the benchmark matrix, report or pack it, write its guide, or measure speed.

    The same command again keeps what is finished, resumes what was interrupted and tries again what
    failed; it ends with status 1 where a cell failed, a column has no start, or every cell was
    refused. A matrix may be filled in parts, on several machines: --report and --pack merge parts
    of one suite.

    Attributes:
        suite: quick (everything, micro size, minutes), standard (small models that learn), lm
            (SmolLM2-135M on full environments, after imitation), full (a model of the papers' size,
            on GPUs), ladder (diagnostic families, two hours), ladder-full (a night), ladder-state
            (credit by state where states come again), ladder-stale-grid (ratios and losses for
            many updates on a batch, each at five rates), separating (real environments that tell
            recipes apart), household (credit by state in rooms), household-critics and
            science-turns (what led in two of these, on other seeds), retail-scale (why TARL is
            behind in a third), turns (what a turn found out, where all answers fail), ladder-rates
            (the search for learning rates), ladder-edge-rates (that search beyond its grid),
            ladder-equal-rates (what of two families was the rate's), ladder-wide-rates (what of
            six was the grid's), or a suite file (.json).
        seeds: With --suite: as many training seeds in place of the suite's own number, counted from
            its first one; in a folder of its own (left out: runs/bench-SUITE-N-seeds), into which
            --reuse takes what is finished.
        oracle: With a ladder: say beforehand, by tables instead of networks, which mechanism can
            show where; written beside the results, nothing is trained.
        report: Folder of a matrix, or packed results, whose report is written anew; repeatable for
            parts of one suite.
        pack: Folder of a matrix whose results become one file, repeatable likewise.
        guide: Packed results, or folders, of a ladder and of other suites, and outcomes of claims
            (.json): the page "which algorithm for which environment" is written from them;
            repeatable.
        speed: Run the speed files and write one table.
        out: Folder of the matrix (left out: runs/bench-SUITE); of --report the report's folder
            (left out: the matrix, or beside a packed file); of --pack the file, compressed if it
            ends in .gz; of --guide the page (left out: docs/which-algorithm.md); of --speed the
            file (left out: benchmarks/RESULTS-speed.md).
        workers: Cells at a time; left out: one per GPU, or per core of those that this process, its
            container or its job may use. Several on one GPU share its memory evenly.
        executor: Where cells run: processes here, or Ray.
        ray_address: Cluster to join (auto, or ray://...); left out: Ray is started here.
        gpus_per_worker: GPUs, or the share of one, of a Ray worker.
        reuse: With --suite: folder or packed results, repeatable, also of an older version of the
            suite: finished cells that depend on nothing that has changed are taken over first.
        only: recipe=NAME, row=LABEL, env=ID, column=NAME, seed=N or, with --speed, file=NAME,
            repeatable: of one kind any fits.
        baseline: Row that the report compares the others with.
    """

    suite: str | None = None
    seeds: int | None = None
    oracle: bool = False
    report: Repeated = ()
    pack: Repeated = ()
    guide: Repeated = ()
    speed: bool = False
    out: str | None = None
    workers: int | None = None
    executor: Literal["process", "ray"] = "process"
    ray_address: str | None = None
    gpus_per_worker: float = 0.0
    reuse: Repeated = ()
    only: Repeated = ()
    baseline: str = "grpo"


def run(command: Command) -> None:
    """Do what the options ask for.

    Raises:
        BadValueError: Not exactly one thing, or options of another.
    """
    asked = [
        command.suite is not None,
        command.report,
        command.pack,
        command.guide,
        command.speed,
    ]
    if sum(map(bool, asked)) != 1:
        raise BadValueError(
            "bench: give one of --suite NAME, --report PATH, --pack PATH, --guide PATH and --speed."
        )
    if command.oracle and command.suite is None:
        raise BadValueError("bench: --oracle goes with --suite ladder or ladder-full.")
    mode = next(name for name in MODES if getattr(command, name))
    refuse_others(command, f"bench --{mode}", MODES[mode])
    if command.oracle:
        ask_oracle(command, _asked_suite(command))
    elif command.suite is not None:
        fill(command, _asked_suite(command))
    elif command.report:
        parts = [Path(part) for part in command.report]
        report(parts, report_folder(parts[0], command.out), command.baseline)
    elif command.pack:
        pack([Path(part) for part in command.pack], command.out)
    elif command.guide:
        from ..ladder.guide import write_guide

        files = [Path(file) for file in command.guide]
        page = write_guide(files, _out_file(command, GUIDE_FILE), command.baseline)
        say(f"page        {page}")
    else:
        from ..speed.table import write_speed

        write_speed(_out_file(command, SPEED_FILE), command.only, PlainConsole())


def _out_file(command: Command, usual: str) -> Path:
    """Return a file that can be written; folders above it are made with it, not for a refusal."""
    path = Path(command.out or usual).expanduser()
    check_writable(path)
    return path


def _asked_suite(command: Command) -> Suite:
    suite = find_suite(command.suite or "")
    return suite if command.seeds is None else suite.with_seeds(command.seeds)


def _matrix_folder(command: Command, suite: Suite) -> Path:
    """Return the folder that was asked for, or one by the suite's name and number of seeds."""
    usual = find_suite(command.suite or "").seeds == suite.seeds
    own = "" if usual else f"-{len(suite.seeds)}-seeds"
    return Path(command.out or Path("runs") / f"bench-{suite.name}{own}").expanduser()


def fill(command: Command, suite: Suite) -> None:
    """Fill the cells that are wanted, and write the report.

    Raises:
        BadValueError: The machine, or the folder, does not fit the suite.
        UnknownNameError: A recipe or an environment that is not registered.
        MissingExtraError: What writes the report is not installed.
        SystemExit: With status 1, when a cell failed, a column has no start, or no cell finished.
    """
    from ...algos.recipes.registry import find_recipe
    from ...envs.core.registration import find_environment
    from ..matrix.machine_info import check_gpus, other_plugins, visible_gpus
    from ..matrix.progress_view import view
    from ..matrix.reuse import reuse_results
    from ..matrix.run import run_matrix

    check_package("the report", "jinja2", "train")  # now, not after hours
    suite.check_baseline(command.baseline)
    cells = suite.some(command.only)
    for cell in cells:  # before anything is written: a plugin is easily forgotten
        find_environment(suite.column(cell.column).id)
        find_recipe(suite.recipe(cell.recipe).name)
    gpus = [] if suite.device == "cpu" else visible_gpus()
    if command.executor == "process" or command.ray_address is None:
        check_gpus(suite, gpus, command.workers if command.executor == "process" else None)
    out = _matrix_folder(command, suite)
    say(f"suite {suite.name} version {suite.version}: {len(cells)} cells in {out}")
    if command.reuse:
        for source in reuse_results(suite, out, [Path(one) for one in command.reuse]):
            say(f"reused      {source}")
    board = run_matrix(suite, out, executor(command, out, gpus), view(), cells, only=command.only)
    found = board.counts()
    counts = ", ".join(f"{n} {state}" for state, n in sorted(found.items()))
    say(f"{counts}; {board.reused} were there before")
    for line in other_plugins(board.results.values()):
        say(line)
    report([out], out, command.baseline)
    if problems := say_problems(board):
        for line in problems:
            say(line)
        raise SystemExit(1)


def say_problems(board: Board) -> list[str]:
    """Return what is wrong with a matrix that was filled: nothing where single cells are refused.

    A recipe that does not go with an environment is refused, which belongs to a matrix; a column
    without a start, or a matrix without a score, does not.
    """
    found, lines = board.counts(), []
    if found["failed"]:
        lines.append(
            "failed cells have their reasons in the report; the same command tries them again"
        )
    for name, stopped in board.no_start.items():
        cells = f"{stopped} cell{'s' * (stopped != 1)}"
        lines.append(f"column {name} has no start, which stopped {cells}; why is in the report")
    if not lines and found["refused"] == len(board.cells):
        lines.append(
            f"no cell ran: every one was refused ({len(board.cells)} in all), for the reasons in "
            "the report; correct the suite, or choose other cells with --only"
        )
    return lines


def ask_oracle(command: Command, suite: Suite) -> None:
    """Print what the oracle says of the wanted families, and write it beside the results.

    Raises:
        BadValueError: The suite is no ladder, or the folder is another suite's.
        RunLockedError: Another process has begun a matrix there that has no suite yet.
    """
    from ..ladder.oracle.forecast import consult
    from ..ladder.report import ORACLE_FILE, refuse_other
    from ..ladder.suites import families_of, sizes_of
    from ..matrix.layout import Layout
    from ..matrix.run import lock_folder

    refuse_other(suite, f"--suite {suite.name}")
    columns = {cell.column for cell in suite.some(command.only)}
    wanted = [f for f in families_of(suite) if columns & set(f.columns(quick=False))]
    quick = all(set(sizes_of(suite, family)) <= set(family.quick) for family in wanted)
    out = _matrix_folder(command, suite)
    layout = Layout(make_folder(out))
    # beside a matrix that is being filled, whose process holds the lock, there is nothing to claim
    new = not layout.suite_file.exists()
    with lock_folder(out / "lock") if new else nullcontext():
        layout.claim(suite)
    path = out / ORACLE_FILE
    for family in wanted:
        oracle = consult([family], quick=quick, path=path)
        table_console().print(forecast_table(oracle, family))
    say(f"oracle      {path}")


def forecast_table(oracle: Oracle, family: Family) -> Table:
    """Return what the oracle says of each arm by column, and its difference from the baseline."""
    forecast = oracle.find(family.name)
    rows = forecast.rows if forecast else ()
    columns = list(dict.fromkeys(row.column for row in rows))
    table = plain_table(family.name, right=columns, title=family.asks, title_justify="left")
    for arm in dict.fromkeys(row.arm for row in rows):
        cells = []
        for row in (row for row in rows if row.arm == arm):
            if row.against is None:
                half = (row.area.high95 - row.area.low95) / 2
                cells.append(f"area {row.area.mean:.3f} ±{half:.3f}")
                continue
            half = (row.against.high95 - row.against.low95) / 2
            strong = "bold" if row.says in ("can show", "differs") else "dim"
            cells.append(f"[{strong}]{row.says}[/] {row.against.difference:+.3f} ±{half:.3f}")
        table.add_row(f"[bold]{arm}[/]", *cells)
    return table


def executor(command: Command, out: Path, gpus: list[str]) -> Executor:
    """Return where the cells run.

    Raises:
        BadValueError: Less than one worker.
        MissingExtraError: Ray is not installed.
    """
    from ..matrix.executors import ProcessExecutor, cards_take_turns
    from ..matrix.layout import Layout

    cores = count_cores()
    asked = command.workers if command.workers is not None else (len(gpus) or cores)
    workers = check_workers(asked)
    if command.executor == "ray":
        from ..matrix.ray_executor import RayExecutor

        return RayExecutor(workers, command.gpus_per_worker, command.ray_address)
    if command.ray_address is not None or command.gpus_per_worker:
        raise BadValueError("--ray-address and --gpus-per-worker go with --executor ray.")
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // workers)))}
    if cards_take_turns(workers, gpus):
        say(
            f"{workers} workers take turns on {len(gpus)} GPU{'s' * (len(gpus) > 1)}; where CUDA's "
            "multi-process service runs (nvidia-cuda-mps-control -d), they compute at the same time"
        )
    return ProcessExecutor(workers, Layout(out).logs, gpus, threads)


def find_suite(name: str) -> Suite:
    """Return a suite of the package, or one from a file.

    Raises:
        UnknownNameError: Neither.
        DataError: A file ``.json`` that does not exist, or holds no suite.
    """
    from ..ladder.catalogue import SUITES as LADDERS
    from ..matrix.suite import Suite
    from ..matrix.suites import SUITES

    suites = {**SUITES, **LADDERS}
    if name in suites:
        return suites[name]
    path = Path(name)
    if path.suffix == ".json":
        return Suite.read(path)
    raise UnknownNameError("suite", name, suites)


def report_folder(part: Path, out: str | None) -> Path:
    """Return where the report of a matrix goes: as asked, its folder, or beside a packed file."""
    if out is not None:
        return Path(out)
    return part.with_name(part.name.split(".")[0] + "-report") if part.is_file() else part


def report(parts: Sequence[Path], folder: Path, baseline: str) -> None:
    """Write the report and print where it lies.

    Raises:
        DataError: No matrix, no result, or parts that contradict each other.
        UnknownNameError: The suite has no such baseline.
    """
    from ..ladder.families import column_edges
    from ..ladder.rates import tries_rates
    from ..ladder.report import write_ladder
    from ..ladder.suites import is_ladder
    from ..matrix.report import write_report
    from ..matrix.results import Results

    check_writable(folder)
    results = Results.read(*parts)
    results.suite.check_baseline(baseline)
    declared = column_edges() if is_ladder(results.suite) else None
    pages = write_report(parts, folder, baseline, declared)
    say_left_out(results.files)
    if is_ladder(results.suite):
        pages += write_ladder(parts, folder, baseline)
    for path in pages:
        say(f"report      {path}")
    if tries_rates(results.suite):
        print_rates(results)


def print_rates(results: Results) -> None:
    """Print the learning rate of every row on every family, what was tried, and the cost."""
    from ..ladder.rates import choose_rates, search_cost
    from ..ladder.suites import RATE_SEARCH

    chosen = choose_rates(results)
    scales = sorted({scale for one in chosen for scale in one.areas})
    heads = [f"x {scale:g}" for scale in scales]
    title = "learning rates, with the areas at multiples of the family's"
    table = plain_table("family", "row", right=["rate", "end", *heads], title=title)
    for one in chosen:
        tried = [one.areas.get(scale, ()) for scale in scales]
        areas = [" ".join(f"{area:.3f}" for area in found) or "–" for found in tried]
        strong = "bold" if one.changed else "dim"
        table.add_row(one.family, one.row, f"[{strong}]{one.rate:g}[/]", one.end or "–", *areas)
    table_console().print(table)
    cost = search_cost(results)
    say(
        f"{len(chosen)} rows on families; another rate than the family's needs a lead of "
        f"{RATE_SEARCH.margin:g} in area, with every seed; the largest area is at an end of the "
        f"tried rates in {sum(bool(one.end) for one in chosen)}; {cost.tokens:,} tokens, "
        f"{cost.optimizer_steps:,} optimiser steps, "
        f"{cost.seconds / 60:.0f} minutes of one core"
    )


def say_left_out(results: MatrixFiles) -> None:
    """Print how many cells of older versions of the suite are not the same in the newest."""
    if results.left_out:
        suite = results.suite
        say(
            f"left out    {results.left_out} cells of older versions that are not the same in "
            f"{suite.name} version {suite.version}"
        )


def pack(parts: Sequence[Path], out: str | None) -> None:
    """Write the results of a matrix as one file.

    Raises:
        BadValueError: No file was given, or one that is a folder.
        DataError: No matrix, no result, or parts that contradict each other.
    """
    from ..ladder.report import find_oracle, packed_oracle
    from ..ladder.suites import is_ladder
    from ..matrix.matrix_files import read_parts, write_packed

    if out is None:
        raise BadValueError("bench: --pack needs --out FILE, such as results/mine.jsonl.gz.")
    results = read_parts(parts)
    say_left_out(results)
    path = write_packed(results, output_file(out))
    say(f"results     {path} ({path.stat().st_size:,} bytes)")
    oracle = find_oracle(parts) if is_ladder(results.suite) else None
    if oracle is not None:
        oracle.write(packed_oracle(path))
        say(f"oracle      {packed_oracle(path)}")
