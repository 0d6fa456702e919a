"""Files that are whole or not there, and one clear line for a disk that cannot be written."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..core.errors import BadValueError, DataError

FULL = (errno.ENOSPC, errno.EDQUOT)
DENIED = (errno.EACCES, errno.EROFS, errno.EPERM, errno.EFBIG)
BARRED = (
    *DENIED,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)
_MAX_NAME = 255
_NEARLY_FULL = 2**20
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # how libraries written in Rust report errno
_TOO_LARGE = (
    "a file grew larger than this process may write. Raise the limit, which `ulimit -f` shows, and "
    "run the same command again."
)
_ADVICE = (
    "Make room and run the same command again; finished parts that it can go on from are kept."
)


@contextmanager
def whole_file(path: Path, *, sync: bool = False, alone: bool = True) -> Iterator[IO[str]]:
    """Open a text file that takes its name once it is complete: others may read what is there.

    Args:
        path: The file; an existing one is replaced, and stays where the context raises.
        sync: Whether it is on the disk before it takes its name, so that a machine that stops
            leaves the old one or the new one.
        alone: Whether no other process writes this file meanwhile. Else the last one that ends
            stays; a kill then leaves an incomplete file whose name no other has.
    """
    own = "" if alone else f".{os.urandom(4).hex()}"
    part = path.with_name(extend_name(path.name, f"{own}.part"))
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file that others may write too; an old one stays until the new one is whole.

    A link stays one; a pipe, and a file in a folder that takes no others, is written in place.
    """
    whole = path.resolve()
    pipe = path.exists() and not path.is_file()
    if pipe or not os.access(whole.parent, os.W_OK):
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    with whole_file(whole, alone=False) as file:
        file.write(text)


def extend_name(name: str, ending: str) -> str:
    """Return a file's name with an ending, cut before it where no file system takes so many bytes.

    Args:
        name: Of the file.
        ending: What makes it the name of what is yet half written.
    """
    raw, room = os.fsencode(name), _MAX_NAME - len(os.fsencode(ending))
    return (name if len(raw) <= room else raw[:room].decode(errors="ignore")) + ending


def check_writable(path: Path) -> None:
    """Try whether a file or folder can be written, in the nearest folder that is there.

    A folder's rights alone do not say it: those of a network folder, of a container's or of the
    system's own may be refused to an account that they are given to.

    Args:
        path: What will be written; nothing is made, nor are the folders above it.

    Raises:
        BadValueError: It may not be written.
        OSError: The disk is full.
    """
    place = path if path.exists() else Path(os.path.realpath(path))  # a pipe has no real path
    while not place.exists():
        place = place.parent
    try:
        if place.is_dir():
            with tempfile.TemporaryDirectory(dir=place, prefix=".turngym-"):
                pass
        elif not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as fault:
        if fault.errno in FULL:
            raise
        where = "" if place == path else f", in {place}"
        raise BadValueError(
            f"{path}: may not be written to ({fault.strerror}{where}); choose another folder."
        ) from fault


def describe_disk_error(error: BaseException, folder: Path | str = "") -> str | None:
    """Return what is wrong with the disk, None if the error says nothing about one.

    Args:
        error: What was raised; an error that it was raised from, or during, counts as well.
        folder: Where something was written, for errors that name no file.
    """
    for cause in _causes(error):
        number, place = _errno(cause), _place(cause) or str(folder)
        start = f"{place}: " if place else ""
        if number in FULL:
            return f"{start}the disk is full. {_ADVICE}"
        if number == errno.EFBIG:  # of an open file, which the error does not name
            return f"{start}{_TOO_LARGE}"
        if number in BARRED and place:
            return f"{start}cannot be used ({os.strerror(number)})."
    return None


@contextmanager
def disk_errors(folder: Path | str, *, guess: bool = False) -> Iterator[None]:
    """Turn a full or read-only disk into one clear error.

    Args:
        folder: Where the context writes.
        guess: Blame the disk for any RuntimeError if the disk has no free megabyte: PyTorch's
            writer of files does not say why it failed.

    Raises:
        DataError: Something could not be written.
    """
    try:
        yield
    except Exception as error:
        line = describe_disk_error(error, folder)
        if line is None and guess and isinstance(error, RuntimeError) and _nearly_full(folder):
            line = f"{folder}: the disk is full. {_ADVICE}"
        if line is None or isinstance(error, DataError):
            raise
        raise DataError(line) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


def _errno(error: BaseException) -> int:
    """Return the system's number of an error, 0 if it carries none."""
    if isinstance(error, OSError):
        return error.errno or 0
    found = _OS_ERROR.search(str(error))
    return int(found[1]) if found else 0


def _place(error: BaseException) -> str:
    name = error.filename if isinstance(error, OSError) else None
    return os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else ""


def _nearly_full(folder: Path | str) -> bool:
    try:
        return shutil.disk_usage(folder).free < _NEARLY_FULL
    except OSError:
        return False
