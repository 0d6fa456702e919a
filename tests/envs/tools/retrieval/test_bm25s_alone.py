"""bm25s is imported without JAX, which would reserve most of a graphics card."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_JAX = """
def top_k(values, k):
    raise AssertionError("JAX was used, and has reserved the card")
"""


@pytest.fixture
def with_jax(tmp_path: Path) -> Path:
    """Return a folder with a JAX whose use is an error."""
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "lax.py").write_text(_JAX, encoding="utf-8")
    return tmp_path


def run(folder: Path, code: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    alone = {**os.environ, "TURNGYM_CACHE": str(folder / "cache")}
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_jax_of_this_test_is_what_bm25s_would_use(with_jax: Path) -> None:
    code = "try:\n    import bm25s\nexcept AssertionError as fault:\n    print(fault)"
    assert "reserved the card" in run(with_jax, code)


@pytest.mark.parametrize("before", ["", "import jax.lax"])
def test_an_index_is_built_without_jax(with_jax: Path, before: str) -> None:
    code = f"""
{before}
from turngym.envs.tools.retrieval.base import Corpus
from turngym.envs.tools.retrieval.bm25 import Bm25
corpus = Corpus(ids=("1", "2"), titles=("Ada", "Bo"), texts=("a river", "a hill"))
found = Bm25(corpus, name="test-without-jax").search(["river"], 1)[0]
import bm25s.selection
print(found[0].title, bm25s.selection.JAX_IS_AVAILABLE)
print("jax.lax" in sys.modules)
import jax.lax
print(jax.lax is sys.modules["jax.lax"], jax.lax.top_k.__name__)
"""
    lines = run(with_jax, code).splitlines()
    assert lines[0] == "Ada False"
    assert lines[1] == str(bool(before))
    assert lines[2] == "True top_k"


def test_threads_wait_for_one_that_imports_it(with_jax: Path) -> None:
    code = """
import sys
import threading
import time
from turngym.envs.tools.retrieval.bm25s_alone import import_bm25s
found, faults = [], []

def ask(after):
    time.sleep(after)
    try:
        found.append(import_bm25s().BM25)
    except Exception as fault:
        faults.append(fault)

threads = [threading.Thread(target=ask, args=(i * 0.02,)) for i in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(found), len(set(found)), faults, "jax" in sys.modules)
"""
    assert run(with_jax, code) == "16 1 [] False"
