"""Arms that are computed in this process: a file per seed, so that a second call goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..matrix.cell import Used
from .outcome import ArmRuns, SeedRun

Values = Mapping[str, Mapping[str, float]]
Tell = Callable[[str], None]


def run_kept(
    name: str, folder: Path, seeds: Sequence[int], compute: Callable[[int], Values], tell: Tell
) -> ArmRuns:
    """The seeds of an arm; those with a file are read.

    Args:
        name: Of the arm.
        folder: Its folder.
        seeds: The seeds.
        compute: What a seed measures.
        tell: Told when a seed is done.

    Raises:
        DataError: A file is damaged.
    """
    runs = []
    for seed in seeds:
        path = folder / f"seed-{seed}.json"
        if path.exists():
            runs.append(SeedRun.read(path))
            continue
        began = time.monotonic()
        values = compute(seed)
        used = Used(seconds=time.monotonic() - began)
        run = SeedRun(seed=seed, values=values, used=used)
        run.write(path)
        means = ", ".join(
            f"{measure} {sum(units.values()) / len(units):.3g}"
            for measure, units in values.items()
            if units
        )
        tell(f"{name}, seed {seed}: {means} ({used.seconds:.0f} s)")
        runs.append(run)
    return ArmRuns(name=name, folder=folder.name, runs=tuple(runs))
