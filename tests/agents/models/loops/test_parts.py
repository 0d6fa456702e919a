"""Laws of the store of compiled loops: who loads one computes the same, without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from turngym.agents.models.loops import parts

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


def run(folder: Path, **more: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "main.py"],
        cwd=folder,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
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


def test_a_loop_is_compiled_anew_for_other_parts(tmp_path: Path) -> None:
    """Another version of the code has other parts, in loops whose own file is the same."""
    loops = Path(parts.__file__).parent
    (tmp_path / "one_loop.py").write_text(LOOP.replace("turngym.agents.models.loops", "pack.a.b"))
    (tmp_path / "main.py").write_text(MAIN.replace("assert", "allclose ="))
    package = tmp_path / "pack" / "a" / "b"
    package.mkdir(parents=True)
    source = (loops / "parts.py").read_text().replace("....envs", "turngym.envs")
    (package / "parts.py").write_text(source)
    numbers, hits, *_ = run(tmp_path)
    assert hits == "0"
    assert run(tmp_path)[:2] == [numbers, "1"]
    (package / "parts.py").write_text(source.replace("(1 / 6)", "(1 / 5)"))
    others, hits, *_ = run(tmp_path)
    assert hits == "0"
    assert others != numbers
    (package / "parts.py").write_text(source)  # the version before has kept its own
    assert run(tmp_path)[:2] == [numbers, "1"]


def test_kept_loops_that_are_damaged_are_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "one_loop.py").write_text(LOOP)
    (tmp_path / "main.py").write_text(MAIN)
    numbers, *_ = run(tmp_path)
    for ending in ("nbc", "nbi"):
        kept = next((tmp_path / "__pycache__").glob(f"*.{ending}"))
        kept.write_bytes(kept.read_bytes()[:-100])
        assert run(tmp_path)[:2] == [numbers, "0"]
    assert run(tmp_path)[:2] == [numbers, "1"]


def test_loops_that_cannot_be_kept_are_compiled_all_the_same(tmp_path: Path) -> None:
    """As of an installation that cannot be written, for an account without a home."""
    (tmp_path / "one_loop.py").write_text(LOOP)
    (tmp_path / "main.py").write_text(MAIN)
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull}
    (tmp_path / "__pycache__").touch()  # no folder can be there
    assert run(tmp_path, **nowhere)[1] == "0"


WITHOUT = """
import torch
from turngym.agents.engines.sampling import compiled_loops
from turngym.agents.models.causal_attention import masked_softmax, softmax_kernels
from turngym.algos.learner.scoring.layer_parts import layer_parts
from turngym.algos.learner.scoring.pack_attention import has_loops

torch.set_num_threads(1)
print(compiled_loops(), softmax_kernels()[0] is masked_softmax, has_loops())
print(layer_parts().__name__.rpartition(".")[2])
"""


def test_where_numba_may_not_compile_torch_computes(tmp_path: Path) -> None:
    """Before, training ended in a NotImplementedError of two numbers."""
    (tmp_path / "main.py").write_text(WITHOUT)
    assert run(tmp_path, NUMBA_DISABLE_JIT="1") == ["None", "True", "False", "layer_parts"]
