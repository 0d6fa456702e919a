"""Compute arms in this process with one file per seed, so that a second call resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..matrix.cell import Used
from .experiments import Crawling, Planning, Playing
from .outcome import ArmRuns, SeedRun

Values = Mapping[str, Mapping[str, float]]
OnProgress = Callable[[str], None]


def run_arms(
    experiment: Playing | Crawling | Planning,
    seeds: Sequence[int],
    folder: Path,
    on_progress: OnProgress,
    measure: Callable[[Any, int], Values],
) -> tuple[ArmRuns, ...]:
    """Compute every arm with every seed; stored seeds are read.

    Args:
        experiment: The arms.
        seeds: The seeds.
        folder: Parent of the arms' folders.
        on_progress: Called with a line when a seed is done.
        measure: Computes the metrics of an arm with a seed.

    Raises:
        DataError: A file is damaged.
    """
    arms = []
    for arm in experiment.arms:
        home = folder / experiment.key(arm)
        runs = tuple(_run_seed(arm, seed, home, on_progress, measure) for seed in seeds)
        arms.append(ArmRuns(name=arm.name, folder=home.name, runs=runs))
    return tuple(arms)


def _run_seed(
    arm: Any, seed: int, home: Path, on_progress: OnProgress, measure: Callable[[Any, int], Values]
) -> SeedRun:
    path = home / f"seed-{seed}.json"
    if path.exists():
        return SeedRun.read(path)
    began = time.monotonic()
    values = measure(arm, seed)
    used = Used(seconds=time.monotonic() - began)
    run = SeedRun(seed=seed, values=values, used=used)
    run.write(path)
    means = ", ".join(
        f"{name} {sum(units.values()) / len(units):.3g}" for name, units in values.items() if units
    )
    on_progress(f"{arm.name}, seed {seed}: {means} ({used.seconds:.0f} s)")
    return run
