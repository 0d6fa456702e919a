"""Processes of a pool: they end with the process that started them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers.processes import ends, runs

POOL = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from turngym.benchmarks.runtime.threads import begin_worker
context = multiprocessing.get_context("spawn")
with ProcessPoolExecutor(1, context, begin_worker, (1,)) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
def test_a_pools_process_dies_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", POOL], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert runs(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert ends(worker)
