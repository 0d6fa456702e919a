"""`turngym claims`: run the papers' statements in small, and their report."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...envs.core.errors import BadValueError
from ..claims.catalogue import find_claims
from ..claims.claim import Claim
from .claims_options import ClaimsCommand


def run(command: ClaimsCommand) -> None:
    """Do what the options ask for.

    Raises:
        BadValueError: Options that exclude each other, or a number out of range.
        UnknownNameError: No such claim.
    """
    claims = find_claims(command.only)
    if command.list and command.report:
        raise BadValueError("claims: --list and --report exclude each other.")
    if command.list:
        show(claims)
    elif command.report:
        tell_report(Path(command.out), Console())
    else:
        run_all(command, claims)


def run_all(command: ClaimsCommand, claims: list[Claim]) -> None:
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
    out, console = Path(command.out), Console()
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // workers)))}

    def on_progress(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    executor = ProcessExecutor(workers, out / "logs", (), threads)
    run_claims(claims, out, command.seeds, executor, view, on_progress)
    tell_report(out, console)


def show(claims: list[Claim]) -> None:
    """Print the claims."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("claim", "paper", "arms", "CPU min", "statement"):
        table.add_column(head, no_wrap=head == "claim")
    for claim in claims:
        table.add_row(
            f"[bold]{claim.name}[/]",
            claim.source.paper.partition(",")[0],
            str(len(claim.experiment.arms)),
            f"{claim.minutes:g}",
            claim.statement,
        )
    Console().print(table)


def tell_report(folder: Path, console: Console) -> None:
    """Write the report and say where it lies."""
    from ..claims.report import write_report

    for path in write_report(folder):
        console.print(f"report      {path}", highlight=False, soft_wrap=True)
