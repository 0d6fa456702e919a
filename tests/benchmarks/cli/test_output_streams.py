"""The command line where its output is closed, full, unread or in another encoding."""

from __future__ import annotations

import os
import subprocess
import sys
from io import TextIOWrapper

import pytest

from turngym.benchmarks.cli import main as main_module
from turngym.benchmarks.cli.main import INTERRUPTED, REFUSED


def run_in_shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What bash makes of a line in which ``turngym`` is the command, its output buffered."""
    usual = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    function = f'turngym() {{ "{sys.executable}" -m turngym "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", function + line],
        capture_output=True,
        text=True,
        env=usual | variables,
        check=False,
    )


@pytest.mark.parametrize("words", ["--help", "envs"])
def test_a_reader_that_has_enough_is_no_failure(words: str) -> None:
    done = run_in_shell(f"turngym {words} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("envs >&-", 0),
        ("envs >&- 2>&-", 0),
        ("bench 2>&-", REFUSED),
        ("bench 2>/dev/full", REFUSED),
        ("envs 2>/dev/full", 0),
        ("envs >/dev/full 2>/dev/full", REFUSED),
    ],
)
def test_the_status_is_right_where_nothing_can_be_printed(line: str, status: int) -> None:
    done = run_in_shell(f"turngym {line}")
    assert (done.returncode, done.stderr) == (status, "")


def test_a_full_disk_is_told_once() -> None:
    done = run_in_shell("turngym envs >/dev/full")
    assert done.returncode == REFUSED
    assert done.stderr.startswith("error: the disk is full.")
    assert "ignored" not in done.stderr


def test_a_locale_without_dashes_gets_escapes() -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = "eval --env Game24-v0 --size micro --agent expert --n 2"
    done = run_in_shell(f"turngym {words}", **ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"(15.8\u2013100.0)" in done.stdout


@pytest.mark.parametrize("stderr", ["/dev/full", "pipe"])
def test_ctrl_c_has_its_status_where_stderr_takes_nothing(
    stderr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "run_command", interrupt)
    if stderr == "pipe":
        read, write = os.pipe()
        os.close(read)
    else:
        write = os.open(stderr, os.O_WRONLY)
    with open(write, "wb", buffering=0) as raw:
        monkeypatch.setattr("sys.stderr", TextIOWrapper(raw, write_through=True))
        assert main_module.main(["envs"]) == INTERRUPTED
