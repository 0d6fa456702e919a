"""Settings of a command's process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AGAIN = """
import resource, sys
import numpy as np
from turngym.algos.learner.freed_memory import give_memory_back
from turngym.benchmarks.runtime.threads import keep_memory
if sys.argv[1] != "return" and not keep_memory():
    print(-1)
    sys.exit()
for _ in range(4):
    if sys.argv[1] == "give back":
        give_memory_back()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(2**25, np.uint8)  # 32 MiB
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def mapped_again(how: str) -> int:
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


LARGE = """
import resource, sys
from turngym.benchmarks.runtime.threads import ask_for_large_pages
if sys.argv[1] == "large":
    ask_for_large_pages()
import torch
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.ones(2**25, dtype=torch.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
OFFERED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(
    not OFFERED.exists() or "[madvise]" not in OFFERED.read_text(),
    reason="large pages are not given to those that ask, or to everyone",
)
def test_large_tensors_lie_on_large_pages() -> None:
    faults, unset = {}, {k: v for k, v in os.environ.items() if k != "THP_MEM_ALLOC_ENABLE"}
    for how in ("large", "small"):
        done = subprocess.run(
            [sys.executable, "-c", LARGE, how],
            capture_output=True,
            text=True,
            check=True,
            env=unset,
        )
        faults[how] = int(done.stdout)
    assert faults["large"] < faults["small"] / 4
