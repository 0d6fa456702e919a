"""`turngym claims`: the papers' headline statements in small, and their report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import track

from ...algos.runs.console import PlainConsole
from ...envs.core.errors import BadValueError, check_package
from ...envs.utils.system import count_cores
from .arguments import Repeated, check_workers, output_file, refuse_others
from .tables import plain_table, say

if TYPE_CHECKING:
    from ..claims.claim import Claim

MODES: Mapping[str, tuple[str, ...]] = {
    "list": ("list", "only"),
    "report": ("report", "packed", "out"),
    "pack": ("pack", "out"),
    "null": ("null",),
}
"""What the command does instead of running claims, and the options that each takes."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Test the papers' headline statements at small scale, and report which are reproduced.

    The same command again keeps what is finished and resumes what was interrupted. The exit status
    is 1 where a run failed, and with --null when a rate is out of bounds.

    Attributes:
        only: Name of a claim, repeatable; left out: all.
        seeds: Seeds of every arm; fewer than five decide nothing. A claim that was judged over more
            keeps them.
        workers: Training runs at a time; left out: one per core. What only plays or plans runs in
            this process.
        out: Folder.
        list: Print the claims and what each takes; run nothing.
        report: Write the report of the folder anew; run nothing.
        packed: With --report: a file of --pack to report instead of what the folder has.
        pack: File to write the outcomes of the folder to, such as claims.jsonl.gz; run nothing.
        null: Judge simulated arms without a difference by the same rule and print its false
            positives; run nothing.
    """

    only: Repeated = ()
    seeds: int = 5
    workers: int | None = None
    out: str = "runs/claims"
    list: bool = False
    report: bool = False
    packed: str | None = None
    pack: str | None = None
    null: bool = False


def run(command: Command) -> None:
    """Do what the options ask for.

    Raises:
        BadValueError: Options that exclude each other, or a number out of range.
        UnknownNameError: No such claim.
        SystemExit: With status 1, when a run failed or a rate of --null is out of bounds.
    """
    from ..claims.catalogue import find_claims

    for mode, takes in MODES.items():
        if getattr(command, mode):
            refuse_others(command, f"claims --{mode}", takes)
    claims = find_claims(command.only)
    if command.null:
        if not show_nulls():
            raise SystemExit(1)
    elif command.list:
        list_claims(claims)
    elif command.report:
        report(
            Path(command.out).expanduser(),
            None if command.packed is None else Path(command.packed).expanduser(),
        )
    elif command.packed is not None:
        raise BadValueError("--packed is read by claims --report.")
    elif command.pack is not None:
        pack(Path(command.out).expanduser(), output_file(command.pack))
    else:
        run_all(command, claims)


def run_all(command: Command, claims: list[Claim]) -> None:
    """Run the claims and write the report.

    Raises:
        BadValueError: Less than one worker, or no seeds.
        MissingExtraError: What writes the report is not installed.
        SystemExit: With status 1, when a run failed.
    """
    from ..claims.run import run_claims
    from ..matrix.executors import ProcessExecutor
    from ..matrix.progress_view import view

    check_package("the report", "jinja2", "train")  # now, not after hours
    cores = count_cores()
    workers = check_workers(cores if command.workers is None else command.workers)
    out = Path(command.out).expanduser()
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // workers)))}

    executor = ProcessExecutor(workers, out / "logs", (), threads)
    outcomes = run_claims(claims, out, command.seeds, executor, view, say)
    report(out)
    failed = [
        outcome.claim.name
        for outcome in outcomes
        if not outcome.arms or any(arm.problem for arm in outcome.arms)
    ]
    if failed:
        say(
            f"runs of {', '.join(failed)} failed, for the reasons in the report; the same command "
            "tries them again"
        )
        raise SystemExit(1)


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
    PlainConsole().print(table)


def show_nulls() -> bool:
    """Print the rule's false positives on simulated nulls; return whether they are in bounds."""
    from ..claims import nulls

    steps = track(
        nulls.simulate_nulls(),
        "simulating",
        total=len(nulls.NULLS) * len(nulls.SEEDS),
        transient=True,
    )
    found = list(steps)
    single = [(rates, rates.broken(nulls.ERRORS)) for _, rates in found]
    shapes = [(rates, rates.broken()) for rates in nulls.pool_by_shape(found)]
    for rows in (single, shapes):
        table = plain_table("null", "seeds", "claims", "reproduced", "p <= .05", "covered", "")
        for rates, broken in rows:
            table.add_row(
                rates.name,
                str(rates.seeds or "all"),
                f"{rates.claims:,}",
                f"{rates.reproduced:.1%}",
                f"{rates.significant:.1%}",
                f"{rates.covered:.1%}",
                f"[bold red]{', '.join(broken)}[/]",
            )
        PlainConsole().print(table)
    count = sum(bool(broken) for _, broken in (*single, *shapes))
    say(
        f"Bounds: reproduced at most {nulls.MAX_REPRODUCED:.1%}, p <= .05 in at most "
        f"{nulls.MAX_SIGNIFICANT:.0%}, covered at least {nulls.MIN_COVERAGE:.0%}; for a single "
        f"null {nulls.ERRORS:g} standard errors of its simulation are allowed for, for a shape "
        "none. "
        f"{count or 'None'} out of bounds."
    )
    return not count


def pack(folder: Path, file: Path) -> None:
    """Write the outcomes of a folder to one file and print its size."""
    from ..claims.packing import read_outcomes, write_outcomes

    outcomes = read_outcomes(folder)
    path = write_outcomes(outcomes, file)
    say(f"outcomes    {path} ({len(outcomes)} claims, {path.stat().st_size:,} bytes)")


def report(folder: Path, source: Path | None = None) -> None:
    """Write the report and print where it lies."""
    from ..claims.report import write_report

    for path in write_report(folder, source):
        say(f"report      {path}")
