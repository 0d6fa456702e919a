"""Settings of a command's process."""

import subprocess
import sys

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
