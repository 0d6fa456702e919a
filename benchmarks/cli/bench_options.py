"""Options of `turngym bench`; reading them imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class BenchCommand:
    """Fill the benchmark matrix, write its report, or measure speed; one of the three.

    The same command again keeps what is finished and goes on with what was interrupted.

    Attributes:
        suite: quick (everything, micro size, minutes), standard (small models that learn), full
            (a model of the papers' size, on GPUs), or a suite file (.json).
        report: Folder of a matrix whose report is written anew.
        speed: Run the speed files and write one table.
        out: Folder of the matrix (left out: runs/bench-SUITE), or the file of --speed (left out:
            benchmarks/RESULTS-speed.md).
        workers: Cells at a time; left out: one per GPU, or per core.
        executor: Where cells run: processes here, or Ray.
        ray_address: Cluster to join (auto, or ray://...); left out: Ray is started here.
        gpus_per_worker: GPUs, or the share of one, of a Ray worker.
        only: recipe=NAME, env=ID, seed=N or, with --speed, file=NAME, repeatable: of one kind any
            fits.
        baseline: Recipe that the report compares the others with.
    """

    suite: str | None = None
    report: str | None = None
    speed: bool = False
    out: str | None = None
    workers: int | None = None
    executor: Literal["process", "ray"] = "process"
    ray_address: str | None = None
    gpus_per_worker: float = 0.0
    only: Repeated = ()
    baseline: str = "grpo"
