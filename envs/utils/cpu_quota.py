"""How much processor time a container, or a job of a cluster, may use: Linux's control groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def read_cpu_quota(root: Path = Path("/")) -> float | None:
    """Return the processors' worth of time that this process may use; None where nothing limits it.

    A container with four processors of a machine's 64 sees all of these, and is halted for most of
    the time when it uses more than four. The least limit counts, of the process's own group and of
    those around it, in either version of the groups.

    Args:
        root: Folder of the file system, for tests.
    """
    limits = [limit for folder in _find_groups(root) if (limit := _read_limit(folder)) is not None]
    return min(limits, default=None)


def _find_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the groups that may limit processors, the inner ones first."""
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        controllers = names.split(",")
        if number == "0" and not names:
            top = mount
        elif "cpu" in controllers:
            top = next((f for name in (names, "cpu") if (f := mount / name).is_dir()), mount)
        else:
            continue
        # not there where a container sees its own group as the top, or one beside it (..)
        own = top if ".." in path else top / path.lstrip("/")
        yield own
        while own != top:
            own = own.parent
            yield own


def _read_limit(group: Path) -> float | None:
    """Return the limit of one group; None where it has none or is not there."""
    words = _read(group / "cpu.max").split()  # "200000 100000", or "max 100000"
    if not words:
        words = [_read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    with suppress(ValueError):
        quota, period = map(int, words)
        return quota / period if quota > 0 and period > 0 else None
    return None


def _read(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    return ""
