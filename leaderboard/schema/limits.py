"""Limits on what is read of an untrusted upload, and on its replay."""

from __future__ import annotations

from dataclasses import dataclass

from ...envs.core.errors import BadValueError

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Limits on the size and shape of an upload.

    Attributes:
        archive_bytes: Size of an uploaded archive.
        total_bytes: All files together, unpacked.
        file_bytes: One file.
        line_bytes: One line of a JSON-lines file; also a whole JSON file.
        members: Number of files and folders.
        ratio: Maximum compression ratio, checked once more than one mebibyte is unpacked.
        path_depth: Folders above a file, the file counted.
        json_depth: Nesting depth of lists and objects.
    """

    archive_bytes: int = 64 * MIB
    total_bytes: int = 512 * MIB
    file_bytes: int = 256 * MIB
    line_bytes: int = 8 * MIB
    members: int = 500
    ratio: float = 200.0
    path_depth: int = 4
    json_depth: int = 16


@dataclass(frozen=True, kw_only=True)
class ReplayLimits:
    """Resource limits of the process that replays one entry.

    Attributes:
        cpu_s: Processor seconds.
        wall_s: Seconds from start to verdict.
        memory_mib: Address space, in mebibytes.
        file_mib: Largest file that it may write, in mebibytes.

    Raises:
        BadValueError: A limit is not positive.
    """

    cpu_s: int = 900
    wall_s: float = 1800.0
    memory_mib: int = 4096
    file_mib: int = 512

    def __post_init__(self) -> None:
        for name in ("cpu_s", "wall_s", "memory_mib", "file_mib"):
            if not getattr(self, name) > 0:
                raise BadValueError(
                    f"ReplayLimits: {name} is {getattr(self, name)!r}; expected a number above 0."
                )
