"""Processes of others, as the system shows them."""

from __future__ import annotations

import time
from pathlib import Path


def runs(pid: int) -> bool:
    """Tell whether a process runs; one that only waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int, seconds: float = 20.0) -> bool:
    """Wait for the end of a process; tell whether it came in time."""
    deadline = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not runs(pid)
