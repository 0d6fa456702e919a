"""Files of an index: each written whole or not at all, and read through memory maps."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ....core.errors import DataError

SCRATCH = re.compile(r"\..+\.(json|npy|npz)-[a-z0-9_]{8}")
"""Names of files that :func:`write_whole` has not finished."""


def write_whole(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file beside its place and move it there when it is complete and on the disk."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o666 & ~_umask())  # temporary files are the owner's alone
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def save_json(path: Path, value: Any) -> None:
    """Save JSON atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    write_whole(path, write)


def save_array(path: Path, array: np.ndarray) -> None:
    """Save one ``.npy`` file atomically."""
    write_whole(path, lambda file: np.save(file, array))


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Save one ``.npz`` file atomically."""
    write_whole(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def map_array(path: Path) -> np.ndarray:
    """Open a ``.npy`` file as a read-only memory-mapped array.

    Raises:
        DataError: The file is missing or damaged.
    """
    try:
        if path.stat().st_size == 0:
            raise ValueError("it is empty")
        # a plain array over the map: slicing np.memmap objects costs microseconds each
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error}); build the index again.") from None
