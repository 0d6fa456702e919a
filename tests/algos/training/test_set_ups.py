"""One script of three lines in four set-ups: their learning curves agree within seed noise.

Three seeds each, about a minute and a half of one core per run (twice that for two processes and
for vLLM on a CPU): ``pytest -m slow tests/algos/training/test_set_ups.py -s``. A set-up whose
package is not
installed is skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
import ast, sys
from turngym.algos import train_on
train_on("SearchQA-v0", "grpo", settings={"size": "micro", "hops": 1}, steps=40, max_tokens=16,
         eval_temperature=1.0, **ast.literal_eval(sys.argv[1]))
"""
SEEDS = (0, 1, 2)
ALONE = (sys.executable,)
TWO = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
SET_UPS: dict[str, tuple[tuple[str, ...], dict[str, object]]] = {
    "vllm": (ALONE, {"engine": "vllm"}),
    "fsdp": (TWO, {"device": "cpu"}),
    "ray": (ALONE, {"actors": 2}),
}
LEAST_NOISE = 0.03
"""Of an area under the curve: 200 questions leave that much even where seeds agree."""


def curves(folder: Path, command: tuple[str, ...], options: dict[str, object]) -> list[list[float]]:
    """Success on the dev questions at steps 0, 10, ... 40, for each seed."""
    script = folder / "three_lines.py"
    script.write_text(SCRIPT, encoding="utf-8")
    found = []
    for seed in SEEDS:
        run_dir = folder / f"seed{seed}"
        given = {**options, "seed": seed, "run_dir": str(run_dir)}
        done = subprocess.run(
            [*command, str(script), repr(given)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        rows = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        key = "eval/dev/success_frac"
        found.append([row[key] for row in map(json.loads, rows) if key in row])
        print(f"{folder.name} seed {seed}:", *(f"{value:.3f}" for value in found[-1]))
    return found


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[list[float]]:
    return curves(tmp_path_factory.mktemp("transformers"), ALONE, {})


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SET_UPS)
def test_curves_agree(name: str, usual: list[list[float]], tmp_path: Path) -> None:
    if name in ("vllm", "ray") and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    folder = tmp_path / name
    folder.mkdir()
    found = curves(folder, *SET_UPS[name])
    area, other = np.mean(usual, axis=1), np.mean(found, axis=1)
    noise = max(LEAST_NOISE, 2 * float(np.ptp(area)))
    print(f"area {other.mean():.3f}, transformers {area.mean():.3f}, noise {noise:.3f}")
    assert all(curve[-1] > curve[0] + 0.3 for curve in found)
    assert abs(other.mean() - area.mean()) <= noise
