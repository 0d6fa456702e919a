"""Processes of a pool end with the process that started them; how many threads torch takes."""

from __future__ import annotations

import atexit
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from helpers.processes import ends, runs

from turngym.benchmarks.runtime import threads as module

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


@pytest.mark.parametrize(
    ("small", "cores", "asked", "threads"),
    [(False, 3, None, 3), (False, 64, None, 8), (True, 64, None, 1), (False, 3, "8", 8)],
)
def test_no_more_threads_than_a_container_has_time_for(
    small: bool, cores: int, asked: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asked is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr(module, "count_cores", lambda: cores)
    monkeypatch.setattr(module, "keep_memory", lambda: None)
    quiet = SimpleNamespace(disable_progress_bar=lambda: None)
    monkeypatch.setattr(module, "import_module", lambda _: quiet)
    monkeypatch.setattr(atexit, "register", lambda _: None)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(8)
        module.prepare(small)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
