"""The command line where its output is closed, full, unread or in another encoding."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from turngym.benchmarks.cli.main import REFUSED


def run_in_shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What bash makes of a line in which ``turngym`` is the command."""
    function = f'turngym() {{ "{sys.executable}" -m turngym "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", function + line],
        capture_output=True,
        text=True,
        env=os.environ | variables,
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
    ],
)
def test_the_status_is_right_where_nothing_can_be_printed(line: str, status: int) -> None:
    done = run_in_shell(f"turngym {line}")
    assert (done.returncode, done.stderr) == (status, "")
