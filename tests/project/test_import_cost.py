"""`import turngym.envs` is light: nobody pays for torch to play an episode."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = (
    "torch",
    "transformers",
    "faiss",
    "vllm",
    "pandas",
    "pyarrow",
    "matplotlib",
    "scipy.stats",
    "httpx",
)

PROBE = """
import json, sys, time
import gymnasium
start = time.process_time()
import turngym.envs
spent = time.process_time() - start
gymnasium.make("SearchQA-v0", size="micro").reset(seed=0)
print(json.dumps({"seconds": spent, "modules": sorted(sys.modules)}))
"""


def probe() -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_envs_import_nothing_heavy_and_stay_quick() -> None:
    seen = [probe() for _ in range(3)]
    loaded = set(seen[0]["modules"])
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))
    # CPU seconds beyond gymnasium's own import; the smallest of three, for busy machines.
    assert min(s["seconds"] for s in seen) < 0.8


FIRST = """
import json, sys
from turngym.benchmarks.cli import main as cli

def tell(self, text, **_):
    print(json.dumps({"text": text, "modules": sorted(sys.modules)}))
    raise SystemExit

cli.PlainConsole.print = tell
cli.main(["train", "--env", "Bandit-v0", "--steps", "1"])
"""
LATE = ("turngym.benchmarks.cli.train", "turngym.algos.training", "turngym.agents.engines")


def test_train_speaks_before_it_loads_anything_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True, timeout=120
    )
    said = json.loads(done.stdout.splitlines()[0])
    assert "loading libraries" in said["text"]
    loaded = set(said["modules"])
    assert loaded.isdisjoint((*HEAVY, *LATE)), sorted(loaded.intersection((*HEAVY, *LATE)))
