"""`turngym claims`: the papers' headline statements in small, and their report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from ...envs.core.errors import BadValueError
from .arguments import Repeated
from .tables import plain_table, say

if TYPE_CHECKING:
    from ..claims.claim import Claim


@dataclass(frozen=True, kw_only=True)
class Command:
    """Test the papers' headline statements at small scale, and report which are reproduced.

    The same command again keeps what is finished and resumes what was interrupted.

    Attributes:
        only: Name of a claim, repeatable; left out: all.
        seeds: Seeds of every arm.
        workers: Training runs at a time; left out: one per core. What only plays or plans runs in
            this process.
        out: Folder.
        list: Print the claims and what each takes; run nothing.
        report: Write the report of the folder anew; run nothing.
    """

    only: Repeated = ()
    seeds: int = 3
    workers: int | None = None
    out: str = "runs/claims"
    list: bool = False
    report: bool = False


def run(command: Command) -> None:
    """Do what the options ask for.

    Raises:
        BadValueError: Options that exclude each other, or a number out of range.
        UnknownNameError: No such claim.
    """
    from ..claims.catalogue import find_claims

    claims = find_claims(command.only)
    if command.list and command.report:
        raise BadValueError("claims: --list and --report exclude each other.")
    if command.list:
        list_claims(claims)
    elif command.report:
        report(Path(command.out))
    else:
        run_all(command, claims)


def run_all(command: Command, claims: list[Claim]) -> None:
    """Run the claims and write the report.

    Raises:
        BadValueError: Less than one worker, or no seeds.
    """
    from ..claims.run import run_claims
    from ..matrix.executors import ProcessExecutor
    from ..matrix.progress_view import view

    cores = len(os.sched_getaffinity(0))
    workers = cores if command.workers is None else command.workers
    if workers < 1:
        raise BadValueError(f"--workers {workers}: expected at least 1.")
    out = Path(command.out)
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // workers)))}

    def show(line: str) -> None:
        say(escape(line))

    executor = ProcessExecutor(workers, out / "logs", (), threads)
    run_claims(claims, out, command.seeds, executor, view, show)
    report(out)


def list_claims(claims: list[Claim]) -> None:
    """Print the claims."""
    table = plain_table("claim", "paper", "arms", "CPU min", "statement")
    table.columns[0].no_wrap = True
    for claim in claims:
        table.add_row(
            f"[bold]{claim.name}[/]",
            claim.source.paper.partition(",")[0],
            str(len(claim.experiment.arms)),
            f"{claim.minutes:g}",
            claim.statement,
        )
    Console().print(table)


def report(folder: Path) -> None:
    """Write the report and print where it lies."""
    from ..claims.report import write_report

    for path in write_report(folder):
        say(f"report      {path}")
