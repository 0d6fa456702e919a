"""Which files an entry may contain, by name, type and first bytes."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ..schema.limits import ReadLimits
from ..schema.result import refused

KINDS = (".json", ".jsonl", ".md", ".safetensors")
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib", ".npy", ".npz", ".dill")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}")
_FOREIGN = (
    (b"PK\x03\x04", "an archive (or a PyTorch file, which contains a pickle)"),
    (b"\x1f\x8b", "compressed"),
    (b"BZh", "compressed"),
    (b"\xfd7zXZ", "compressed"),
    (b"\x28\xb5\x2f\xfd", "compressed"),
    (b"\x93NUMPY", "a numpy file, which may contain a pickle"),
    (b"\x7fELF", "a program"),
)


def check_path(name: str, limits: ReadLimits) -> PurePosixPath:
    """Parse and check the relative path of a file or folder of an entry.

    Raises:
        Refused: Absolute, outside the entry, too deep, or with an unsafe character.
    """
    shown = name[:200]
    if "\x00" in name or "\\" in name or name.startswith("/") or re.match(r"^[A-Za-z]:", name):
        raise refused("archive", f"{shown!r}: expected a plain relative path with forward slashes.")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise refused("archive", f"{shown!r}: leads outside the entry's folder.")
    if len(parts) > limits.path_depth:
        raise refused("archive", f"{shown!r}: deeper than {limits.path_depth} levels.")
    for part in parts:
        if not _PART.fullmatch(part):
            raise refused(
                "archive",
                f"{shown!r}: {part!r} is not a valid file name; use letters, digits, '.', '_' and "
                "'-', and do not start with '.' or '-'.",
            )
    return PurePosixPath(*parts)


def check_kind(path: PurePosixPath) -> None:
    """Check that a file has one of the accepted types, which cannot contain code.

    Raises:
        Refused: Any other type of file.
    """
    ending = path.suffix.lower()
    if ending in PICKLES:
        raise refused(
            "archive",
            f"{path}: {ending} files can contain pickles, which run code when loaded. Store "
            "weights as safetensors.",
        )
    if path.suffix not in KINDS:
        raise refused("archive", f"{path}: expected one of {', '.join(KINDS)}.")


def check_start(path: PurePosixPath, start: bytes) -> None:
    """Check that a file's first bytes match its name.

    Args:
        path: Its path.
        start: Its first bytes, at least 10 if it is long enough.

    Raises:
        Refused: A pickle, archive, program or other binary under another name.
    """
    if len(start) > 1 and start[0] == 0x80 and 1 < start[1] < 6 and path.suffix != ".safetensors":
        raise refused("archive", f"{path}: starts like a pickle; pickles run code when loaded.")
    if path.suffix == ".safetensors":
        header = int.from_bytes(start[:8], "little")
        if len(start) < 9 or start[8:9] != b"{" or header > 100_000_000:
            raise refused("archive", f"{path}: is not a safetensors file.")
        return
    for magic, what in _FOREIGN:
        if start.startswith(magic):
            raise refused("archive", f"{path}: is {what}; expected what its name says.")
    if b"\x00" in start:
        raise refused("archive", f"{path}: is a binary file; expected text.")


def check_file(root: Path, path: PurePosixPath, limits: ReadLimits) -> int:
    """Check a file on disk.

    Returns:
        Its size.

    Raises:
        Refused: Not a plain file, too large, or of a wrong type.
    """
    full = root / path
    if full.is_symlink() or not full.is_file():
        raise refused("archive", f"{path}: is a link or a device; only plain files are accepted.")
    check_kind(path)
    size = full.stat().st_size
    if size > limits.file_bytes:
        raise refused("archive", f"{path}: has {size} bytes; at most {limits.file_bytes} per file.")
    with full.open("rb") as file:
        check_start(path, file.read(16))
    return size
