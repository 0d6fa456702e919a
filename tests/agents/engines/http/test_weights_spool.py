"""The folder of weights on their way: nobody else's goes, and that of a killed process does."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from turngym.agents.engines.http.weights import WeightsSpool

KILLED = """
import os, signal
from turngym.agents.engines.http.weights import WeightsSpool
spool = WeightsSpool()
(spool.path / "weights-1.safetensors").write_bytes(b"many")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_goes_when_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.rglob("weights-1.safetensors")
    (tmp_path / "turngym-weights-others").mkdir()
    with closing(WeightsSpool()) as first, closing(WeightsSpool()) as second:
        assert not left.exists()
        assert first.path.is_dir()
        assert second.path.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["turngym-weights-others"]


def test_a_spool_that_nobody_closes_goes_with_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = WeightsSpool()
    assert spool.path.is_dir()
    del spool
    assert not list(tmp_path.iterdir())
