"""Commands run without what macOS lacks, environments without what Windows lacks.

Nothing is read or written in whatever encoding a system has.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.tiny_matrix import tiny

import turngym

ROOT = Path(turngym.__file__).parents[1]
MACOS = """
import os, select
for name in ("sched_getaffinity", "sched_setaffinity", "posix_fallocate", "posix_fadvise",
             "memfd_create", "pidfd_open", "pipe2", "eventfd", "copy_file_range"):
    vars(os).pop(name, None)
vars(select).pop("epoll", None)
"""
WINDOWS = """
import asyncio, multiprocessing, os, subprocess, sys  # which have halves of their own for Windows
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("sched_getaffinity", "posix_fallocate", "sysconf", "fork", "killpg"):
    vars(os).pop(name, None)
"""
PLAY = """
import gymnasium
import turngym.benchmarks.cli.bench, turngym.benchmarks.cli.claims, turngym.benchmarks.cli.train
import turngym.benchmarks.cli.leaderboard_server, turngym.leaderboard.server.step_workers
from turngym.agents.scripted import text_env
from turngym.leaderboard.schema.limits import ReadLimits
from turngym.leaderboard.suites.files import known_suites
from turngym.leaderboard.verification.verify import verify_folder
from turngym.leaderboard.verification.sandbox import verify
from pathlib import Path
import turngym.leaderboard

env = gymnasium.make("Bandit-v0")
env.reset(seed=0)
copy = text_env(env).fork()
env.step("a")
entries = Path(turngym.leaderboard.__file__).parent / "entries"
entry = min(path.parent for path in entries.glob("*/*/entry.json"))
assert verify_folder(entry, known_suites([]), ReadLimits()).accepted
try:
    verify(entry)
except ValueError as error:
    print(error)
"""


OF_LINUX = re.compile(
    r"\bos\.(sched_\w+affinity|posix_fa\w+|memfd_create|pidfd_open|pipe2|getloadavg|sysconf)\("
    r"|^(import|from) (fcntl|resource|pwd|grp|termios)\b",
    re.MULTILINE,
)
HOME = "envs/utils/system.py"
ELSEWHERE = {
    "envs/tools/python/sandbox_child.py": "a process of Linux alone",
    "leaderboard/verification/sandbox_child.py": "a process that Windows does not start",
    "benchmarks/speed/table.py": "speed files, which are measured on Linux",
}


def test_calls_that_other_systems_lack_are_made_in_one_place() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("envs", "agents", "algos", "leaderboard", "benchmarks")
        for path in (ROOT / room).rglob("*.py")
        if not path.name.startswith("test_") and OF_LINUX.search(path.read_text(encoding="utf-8"))
    }
    assert found == {HOME, *ELSEWHERE}


def run(tmp_path: Path, taken: str, *words: str) -> str:
    """What a process says that lacks something, and whose own processes lack it too."""
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking" / "sitecustomize.py").write_text(taken, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path / "lacking"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_a_cell_is_trained_without_what_macos_lacks(tmp_path: Path) -> None:
    tiny(recipes=("grpo",)).write(tmp_path / "own.json")
    said = run(tmp_path, MACOS, "-m", "turngym", "bench", "--suite", "own.json", "--out", "out")
    assert "1 finished" in said


def test_environments_and_replays_without_what_windows_lacks(tmp_path: Path) -> None:
    said = run(tmp_path, WINDOWS, "-c", PLAY)
    assert "verifying an entry needs Linux or macOS; on Windows use WSL 2" in said


@pytest.mark.parametrize("folder", ["envs", "agents", "algos", "leaderboard", "benchmarks"])
def test_texts_name_their_encoding(folder: str) -> None:
    bare = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.is_relative_to(ROOT / "benchmarks" / "speed"):  # run on one machine alone
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            named = {keyword.arg for keyword in node.keywords}
            takes = node.func.attr in ("read_text", "write_text")
            takes |= node.func.attr == "run" and "text" in named
            if takes and not named & {"encoding", None}:
                bare.append(f"{path.relative_to(ROOT)}, line {node.lineno}")
    assert bare == []
