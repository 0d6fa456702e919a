"""Runs and results say which source they come from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from turngym.algos.runs.provenance import git_commit

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="no git checkout"
)
def test_the_commit_of_the_source_is_known_and_changes_are_visible() -> None:
    def ask(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git_commit.cache_clear()
    wanted = ask("rev-parse", "HEAD") + ("+changes" if ask("status", "--porcelain") else "")
    assert git_commit() == wanted
