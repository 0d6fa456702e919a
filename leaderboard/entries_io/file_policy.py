"""Which files an entry may hold: by name, by kind, and by how they begin."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ..schema.limits import ReadLimits
from ..schema.result import refused

KINDS = (".json", ".jsonl", ".md", ".safetensors")
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".npy", ".npz", ".dill")
_PART = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,119}$")
_FOREIGN = (
    (b"PK\x03\x04", "an archive (or a PyTorch file, which holds a pickle)"),
    (b"\x1f\x8b", "compressed"),
    (b"BZh", "compressed"),
    (b"\xfd7zXZ", "compressed"),
    (b"\x28\xb5\x2f\xfd", "compressed"),
    (b"\x93NUMPY", "a numpy file, which may hold a pickle"),
    (b"\x7fELF", "a program"),
)


def checked_path(name: str, limits: ReadLimits) -> PurePosixPath:
    """The relative path of a file or folder of an entry.

    Raises:
        Refused: Absolute, upwards, too deep, or with a sign that some system reads otherwise.
    """
    shown = name[:200]
    if "\x00" in name or "\\" in name or name.startswith("/") or re.match(r"^[A-Za-z]:", name):
        raise refused("archive", f"{shown!r}: expected a plain relative path with forward slashes.")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise refused("archive", f"{shown!r}: leads out of the entry's folder.")
    if len(parts) > limits.path_depth:
        raise refused("archive", f"{shown!r}: deeper than {limits.path_depth} levels.")
    for part in parts:
        if not _PART.match(part):
            raise refused(
                "archive",
                f"{shown!r}: {part!r} is no name for a file here; letters, digits, '.', '_' and "
                "'-' are, not starting with '.' or '-'.",
            )
    return PurePosixPath(*parts)


def check_kind(path: PurePosixPath) -> None:
    """Only data that cannot run is taken.

    Raises:
        Refused: Any other kind of file.
    """
    ending = path.suffix.lower()
    if ending in PICKLES:
        raise refused(
            "archive",
            f"{path}: {ending} files can hold pickles, which run code when read. Weights go into "
            "safetensors files.",
        )
    if path.suffix not in KINDS:
        raise refused("archive", f"{path}: expected one of {', '.join(KINDS)}.")


def check_start(path: PurePosixPath, start: bytes) -> None:
    """What a file begins with must fit its name.

    Args:
        path: Its path.
        start: Its first bytes, at least 10 where it has as many.

    Raises:
        Refused: A pickle, archive, program or other binary behind an innocent name.
    """
    if len(start) > 1 and start[0] == 0x80 and 1 < start[1] < 6 and path.suffix != ".safetensors":
        raise refused("archive", f"{path}: begins as a pickle does; pickles run code when read.")
    if path.suffix == ".safetensors":
        header = int.from_bytes(start[:8], "little")
        if len(start) < 9 or start[8:9] != b"{" or header > 100_000_000:
            raise refused("archive", f"{path}: is no safetensors file.")
        return
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise refused("archive", f"{path}: is {what}, whatever its name says.")
    if b"\x00" in start:
        raise refused("archive", f"{path}: is a binary file, whatever its name says.")


def check_file(root: Path, path: PurePosixPath, limits: ReadLimits) -> int:
    """Check a file on disk.

    Returns:
        Its size.

    Raises:
        Refused: Not a plain file, too large, or of a wrong kind.
    """
    full = root / path
    if full.is_symlink() or not full.is_file():
        raise refused("archive", f"{path}: is a link or a device; only plain files are taken.")
    check_kind(path)
    size = full.stat().st_size
    if size > limits.file_bytes:
        raise refused("archive", f"{path}: has {size} bytes; at most {limits.file_bytes} per file.")
    with full.open("rb") as file:
        check_start(path, file.read(16))
    return size
