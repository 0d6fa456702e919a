"""Options of `turngym claims`; reading them imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class ClaimsCommand:
    """Run the papers' headline statements in small, and say which are reproduced.

    The same command again keeps what is finished and goes on with what was interrupted.

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
