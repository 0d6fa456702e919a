"""What becomes of memory that tensors have left."""

import subprocess
import sys

import pytest

from turngym.algos.learner import freed_memory
from turngym.algos.learner.freed_memory import give_memory_back, keep_memory, mapped_apart

AGAIN = """
import resource, sys
import numpy as np
from turngym.algos.learner.freed_memory import give_memory_back, keep_memory, mapped_apart
from contextlib import nullcontext
if sys.argv[1] != "return" and not keep_memory():
    print(-1)
    sys.exit()
with mapped_apart() if sys.argv[1] == "apart" else nullcontext():
    np.ones(2**25, np.uint8)  # 32 MiB
if sys.argv[1] == "after apart":
    with mapped_apart():
        np.ones(2**25, np.uint8)
with mapped_apart() if sys.argv[1] == "apart" else nullcontext():
    for _ in range(4):
        if sys.argv[1] == "give back":
            give_memory_back()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        np.ones(2**25, np.uint8)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def mapped_again(how: str) -> int:
    """Pages that are mapped for 32 MiB that have been had and freed several times before."""
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, how], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_memory_is_used_again_without_being_mapped_anew() -> None:
    kept = mapped_again("keep")
    if kept < 0:
        pytest.skip("another C library than glibc")
    returned = mapped_again("return")  # how much one fault maps differs between systems
    assert kept < returned / 4
    assert mapped_again("give back") > returned / 4
    assert mapped_again("apart") > returned / 4
    assert mapped_again("after apart") < returned / 4


def test_another_c_library_keeps_its_own_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda _: object())
    assert not keep_memory()
    assert not give_memory_back()
    with mapped_apart():
        pass
