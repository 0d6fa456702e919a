"""What binds a process that works on the actions of others: its parent's life, and memory."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends, however that ended."""
    with contextlib.suppress(OSError, AttributeError):  # systems without prctl
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def bound_memory(size: int) -> None:
    """Bound this process's address space, where the system can: macOS refuses every bound.

    Args:
        size: In bytes; a lower bound that was there stays.
    """
    import resource  # Windows has none

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = size if hard == resource.RLIM_INFINITY else min(size, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ValueError, OSError):
        if sys.platform.startswith("linux"):
            raise
