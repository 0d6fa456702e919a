"""How much of an untrusted upload is read, and how long its replay may take."""

from __future__ import annotations

from dataclasses import dataclass

from ...envs.core.errors import BadValueError

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Bounds on what is read.

    Attributes:
        archive_bytes: Size of an uploaded archive.
        total_bytes: All files together, unpacked.
        file_bytes: One file.
        line_bytes: One line of a JSON-lines file; also a whole JSON file.
        members: Files and folders.
        ratio: Unpacked size over packed size, once more than a mebibyte is unpacked.
        path_depth: Folders above a file, the file counted.
        json_depth: Lists and objects inside one another.
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
    """Bounds on the process that replays one entry.

    Attributes:
        cpu_s: Processor seconds.
        wall_s: Seconds from start to verdict.
        memory_mib: Address space in mebibytes.
        file_mib: Largest file that it may write, in mebibytes.

    Raises:
        BadValueError: A bound below 1.
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
