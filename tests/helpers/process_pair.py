"""Two processes, started once: what they train, and what they see of weights that are cut up.

Started as torchrun starts them, by its agent; but forked from a process that has imported
everything, which takes longer than what they do.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
IMPORTED = (
    "helpers.rank_run",
    "helpers.shard_run",
    "matplotlib.backends.backend_agg",
    "numba",
    "scipy.stats",
    "torch.utils.tensorboard",
)
"""What both would import, before they part."""


LONG = ("Extension modules: ", "torch/distributed/elastic/")
"""What hides why a process died."""


def run_pair(folder: Path, jobs: Sequence[Mapping[str, Any]]) -> None:
    """Run the jobs of ``rank_run`` in two processes, then all of ``shard_run``.

    Args:
        folder: Gets what the latter saw, as ``found.json``.
        jobs: Trainings.
    """
    launch(["-m", "helpers.process_pair", str(folder), json.dumps(list(jobs))])


def launch(words: Sequence[str]) -> None:
    """Run Python with these arguments, in one thread; what it printed is in the error.

    Its beginning, too: a process that is aborted says there where each of its threads was.
    """
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    lines = (done.stdout + done.stderr).splitlines()
    said = "\n".join(line for line in lines if not any(word in line for word in LONG))
    shown = said if len(said) < 8_000 else f"{said[:5_000]}\n[…]\n{said[-3_000:]}"
    assert done.returncode == 0, shown


def _work(folder: str, jobs: list[dict[str, Any]]) -> None:
    from helpers import rank_run, shard_run

    rank_run.work(jobs)
    shard_run.work(Path(folder))


if __name__ == "__main__":
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for both in IMPORTED:
        importlib.import_module(both)

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id="pair",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        start_method="fork",
    )
    elastic_launch(config, _work)(sys.argv[1], json.loads(sys.argv[2]))
