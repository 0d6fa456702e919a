"""`make`: what pip says is shown only where it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Stands for Python: makes an environment whose own Python only speaks, and ends as it is told.
PYTHON = """#!/bin/sh
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit 0; fi
if [ "$2" = pip ]; then echo "BuildBackendWarning: nobody can change this"; exit $PIP_ENDS; fi
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
@pytest.mark.parametrize("status", [0, 1])
def test_pip_is_heard_only_where_it_fails(tmp_path: Path, status: int) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt", "constraints-hashed.txt"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    done = subprocess.run(
        ["make", f"PYTHON={python}", ".venv/.docs"],
        cwd=tmp_path,
        env={**os.environ, "PIP_ENDS": str(status)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode == 0) == (status == 0)
    assert ("BuildBackendWarning" in done.stdout) == (status == 1)
    assert (tmp_path / ".venv" / ".installed").exists() == (status == 0)
