"""What is left of a pool of worker processes that is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from turngym.benchmarks.runtime.threads import begin_worker
from turngym.benchmarks.runtime.worker_pool import WorkerPool

POOL = """
import os, signal, sys, time
from turngym.benchmarks.runtime.threads import begin_worker
from turngym.benchmarks.runtime.worker_pool import WorkerPool

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind `&` of a shell
    try:
        with WorkerPool(2, begin_worker, 1) as pool:
            if sys.argv[1] == "jobs":
                pool.submit(os.getpid).result()
            jobs = [pool.submit(time.sleep, 60) for _ in range(6)]
            print("submitted", flush=True)
            jobs[0].result()
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
@pytest.mark.parametrize("during", ["imports", "jobs"])
def test_ctrl_c_ends_a_pool_at_once_and_its_processes_say_nothing(during: str) -> None:
    """It reaches every process of the terminal, as here."""
    parent = subprocess.Popen(
        [sys.executable, "-c", POOL, during],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "submitted\n"
    os.killpg(parent.pid, signal.SIGINT)
    try:
        out, err = parent.communicate(timeout=50)
        assert out == "stopped\n"
        assert "Traceback" not in err
    finally:
        if parent.poll() is None:
            os.killpg(parent.pid, signal.SIGKILL)
            parent.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
def test_ctrl_c_does_not_reach_the_processes_of_a_pool() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with WorkerPool(1, begin_worker, 1) as pool:
        held = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    assert signal.SIGINT in held
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
