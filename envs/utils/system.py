"""What one operating system has and another has not: processors, space on the disk, locks.

On Linux every function does what the system's own call does; macOS lacks some of the calls, and
Windows most of them.
"""

from __future__ import annotations

import math
import os
from functools import cache
from importlib import import_module
from typing import IO, Any

from ..core.errors import BadValueError
from .cpu_quota import read_cpu_quota

_BLOCK = 1 << 20


def count_cores() -> int:
    """Return the number of processors that this process may use.

    Those of its affinity, and no more than the processor time that its container or job has, a part
    of one counted as one.
    """
    if not hasattr(os, "sched_getaffinity"):  # Linux alone tells a process's own from the machine's
        return os.cpu_count() or 1
    quota = _cpu_quota()
    there = len(os.sched_getaffinity(0))
    return there if quota is None else max(1, min(there, math.ceil(quota)))


_cpu_quota = cache(read_cpu_quota)


def memory_bytes() -> int:
    """Return the size of the machine's memory; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return 0


def reserve_space(file: IO[bytes]) -> None:
    """Give a file its space on the disk now, so that a full one is an error and not a crash later.

    A file with holes in it that is mapped into memory has no other way to say that the disk is
    full than to end the process. Where the system cannot fill the holes, they are written.

    Args:
        file: Open for reading and writing (``r+b``); its contents and size stay.
    """
    size = os.fstat(file.fileno()).st_size
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, _BLOCK):
        file.seek(start)
        block = file.read(_BLOCK)
        file.seek(start)
        file.write(block)
    file.flush()


def try_lock(file: IO[Any], what: str) -> bool:
    """Lock a file for this process until it is closed; return False if another one holds it.

    The system releases the lock when the process ends, however it ends.

    Args:
        file: An open file.
        what: What needs the lock, for the error.

    Raises:
        BadValueError: The system, or the file's own file system, has no such locks.
    """
    require_posix(what)
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter where a network folder emulates it
        return False
    except OSError as fault:
        raise BadValueError(
            f"{what} needs a lock, and {file.name} cannot be locked ({fault.strerror}). Choose a "
            "folder on a file system that has locks."
        ) from fault
    return True


def free_lock(file: IO[Any]) -> None:
    """Free what :func:`try_lock` locked, and close the file.

    Closing alone leaves the lock to the processes that were forked meanwhile, as workers of
    ``multiprocessing`` are: they hold the file too, for as long as they live.
    """
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        file.close()


def require_posix(what: str) -> None:
    """Refuse what needs the locks, limits and processes of Linux and macOS.

    Args:
        what: What needs them, the subject of the error's sentence.

    Raises:
        BadValueError: The system is another one.
    """
    try:
        import_module("fcntl")  # Windows has none
    except ImportError:
        raise BadValueError(
            f"{what} needs Linux or macOS; on Windows use WSL 2. What works where stands in "
            "docs/installation.md."
        ) from None
