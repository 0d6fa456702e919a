"""Runs and results say which source they come from."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from turngym.algos.runs import provenance
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


def test_a_commit_whose_changes_git_cannot_tell_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked like that of a tree without changes."""
    answers = {"rev-parse": "a" * 40, "status": None}
    monkeypatch.setattr(provenance, "_git", lambda git, root, *words: answers[words[0]])
    monkeypatch.setattr(provenance.shutil, "which", lambda _: "git")
    monkeypatch.setattr(provenance.Path, "exists", lambda _: True)
    git_commit.cache_clear()
    try:
        assert git_commit() == "a" * 40 + "+unknown"
    finally:
        git_commit.cache_clear()


def test_a_git_that_cannot_be_started_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a limit on processes ends a training that needs no other."""

    def refuse(*command: object, **how: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(provenance.subprocess, "run", refuse)
    assert provenance._git("git", ROOT, "rev-parse", "HEAD") is None


def test_the_source_tree_is_only_read(tmp_path: Path) -> None:
    """Its index was written anew: a run that was killed there left a lock that git refuses."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("needs git")
    file = tmp_path / "file"
    file.touch()
    plain = ("user.name=a", "user.email=a@b.c", "commit.gpgsign=false", "core.hooksPath=/dev/null")
    who = [word for setting in plain for word in ("-c", setting)]
    for words in (("init",), ("add", "file"), (*who, "commit", "-m", "all")):
        subprocess.run([git, "-C", str(tmp_path), *words], check=True, capture_output=True)
    os.utime(file, (1, 1))
    index = tmp_path / ".git" / "index"
    before = index.read_bytes()
    assert provenance._git(git, tmp_path, "status", "--porcelain") == ""
    assert index.read_bytes() == before
