"""Laws of the store of compiled loops: who loads one computes the same, without the compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOP = """
import numpy as np
from turngym.agents.models.loops.parts import compiled, exp_of_negative

@compiled
def total(rows, out):
    for i in range(len(rows)):
        held = np.zeros(3, np.float32)  # memory of numba's own runtime
        for j in range(rows.shape[1]):
            held[j % 3] += exp_of_negative(rows[i, j])
        out[i] = held[0] + held[1] + held[2]
"""
MAIN = """
import sys
import numpy as np
from one_loop import total

rows = -np.arange(70, dtype=np.float32).reshape(7, 10) / 9
out = np.zeros(7, np.float32)
total(rows, out)
assert np.allclose(out, np.exp(rows).sum(1), rtol=1e-5), out
print(out.tobytes().hex(), sum(total.stats.cache_hits.values()))
print("numba.np.arraymath" in sys.modules, "scipy.linalg" in sys.modules)
"""


def run(folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def test_a_kept_loop_is_read_without_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "one_loop.py").write_text(LOOP)
    (tmp_path / "main.py").write_text(MAIN)
    numbers, hits, compiler, algebra = run(tmp_path)
    assert (hits, compiler, algebra) == ("0", "True", "False")
    again, hits, compiler, algebra = run(tmp_path)
    assert again == numbers
    assert (hits, compiler, algebra) == ("1", "False", "False")
