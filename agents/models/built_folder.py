"""Model folders that are built once: whole or not at all, sealed with checksums, and checked."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from ...envs.core.errors import BadValueError, DataError, MissingExtraError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import disk_errors, extend_name
from ...envs.utils.system import try_lock

_HELD = "lock"
"""In a temporary folder: locked as long as the process lives that writes there."""
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


def build_once(
    folder: Path, manifest: str, build: Callable[[Path], Mapping[str, Any]], what: str
) -> Path:
    """Return a folder that holds what ``build`` writes, built when it is not there or damaged.

    Two processes at once build once. An error, an interrupt or a kill leaves nothing behind that
    could be taken for the whole.

    Args:
        folder: The folder; its name says everything that the content depends on.
        manifest: Name of the file in it that lists the other files with their checksums.
        build: Writes the files into a new folder, whose parent is deleted afterwards with all that
            else lies in it; returns what the manifest says beside the list of files.
        what: What is built, for messages.

    Raises:
        DataError: The disk is full or cannot be written, or the folder is in a place that this
            account may only read.
        MissingExtraError: The training extra is not installed.
    """
    if is_intact(folder, manifest):
        return folder
    try:
        from filelock import FileLock
    except ImportError as fault:
        raise MissingExtraError(what, "transformers", "train", fault) from fault
    make_folder(folder.parent)
    with disk_errors(folder.parent), _writable_or_refused(folder, what), FileLock(f"{folder}.lock"):
        if is_intact(folder, manifest):  # another process was faster
            return folder
        prefix = f".building-{folder.name}-"
        for left in folder.parent.glob(f"{prefix}*"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as scratch:
            draft = Path(scratch) / "draft"
            draft.mkdir()
            seal(draft, manifest, build(draft))
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(draft, folder)
    return folder


@contextmanager
def _writable_or_refused(folder: Path, what: str) -> Iterator[None]:
    """Say what to do where another account's cache may only be read."""
    try:
        yield
    except OSError as fault:
        named = fault.filename if isinstance(fault.filename, str) else ""
        beside = named.startswith((f"{folder}", f"{folder.parent}{os.sep}."))
        if fault.errno not in _READ_ONLY or not (beside or Path(named) == folder.parent):
            raise
        raise DataError(
            f"{what} is not in the cache, or damaged there, and {named} may not be written "
            f"({os.strerror(fault.errno)}). Set TURNGYM_CACHE to a folder that you may write into, "
            "or have the owner of this one run the same command."
        ) from fault


@contextmanager
def whole_or_nothing(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder to write into, whose files are in ``folder`` if nothing goes wrong.

    An error or an interrupt leaves ``folder`` as it was, so that it can be tried again. What a
    process left beside it that was killed, the next one deletes.

    Args:
        folder: One that is not there yet, or empty.
        replace: Whether it may hold something, which goes once the new files are whole.

    Raises:
        DataError: The disk is full or cannot be written, or another process has written the same
            files meanwhile; then these are in a folder beside, which the message names.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    there = folder.exists()
    beside = not there or os.access(folder.parent, os.W_OK)  # else a folder that was given to us
    home = folder.parent if beside else folder
    partial = extend_name(f".{folder.name}", "-partial-12345678").removesuffix("12345678")
    with disk_errors(home), held_scratch(home, partial) as scratch:
        draft = scratch / "draft"
        draft.mkdir()
        yield draft
        if replace and there:
            old = folder.rename(scratch / "old")
            try:
                os.replace(draft, folder)
            except BaseException:
                old.rename(folder)
                raise
        elif any((folder / path.name).exists() for path in draft.iterdir()):
            _put_aside(draft, folder, beside)
        elif not there:
            try:
                os.replace(draft, folder)
            except OSError as fault:
                if fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                _put_aside(draft, folder, beside)
        else:  # somebody may be in it
            begun: list[Path] = []
            try:
                for path in sorted(draft.iterdir()):
                    begun.append(folder / path.name)
                    shutil.move(path, begun[-1])
            except BaseException:  # between two disks a move is a copy, which takes its time
                for path in begun:  # nothing that somebody else has written meanwhile
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                raise


def _put_aside(draft: Path, folder: Path, beside: bool) -> None:
    """Give a draft another name, where a second process has filled the folder meanwhile.

    Raises:
        DataError: Always; says where the draft is.
    """
    said = f"{folder}: another process has written there meanwhile, and its files stay."
    if not beside:
        raise DataError(f"{said} Run the same command again with another folder.")
    names = (folder.with_name(extend_name(folder.name, f"-{n}")) for n in count(2))
    aside = next(path for path in names if not path.exists())
    os.replace(draft, aside)
    raise DataError(f"{said} What was made here is in {aside}.")


@contextmanager
def held_scratch(home: Path, prefix: str) -> Iterator[Path]:
    """Yield a temporary folder; delete those of this prefix whose processes are dead.

    Args:
        home: Where it is made.
        prefix: How its name begins. Folders of others, which hold no such lock, stay.
    """
    with suppress(OSError):  # a folder that may not be listed
        for left in [path for path in home.iterdir() if path.name.startswith(prefix)]:
            with suppress(OSError, BadValueError), (left / _HELD).open("r+b") as file:
                if try_lock(file, "a temporary folder"):
                    shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=prefix) as made:
        scratch = Path(made)
        fresh = scratch / f"{_HELD}.new"
        with fresh.open("wb") as file:
            with suppress(BadValueError):  # no locks here: what a killed process leaves stays
                try_lock(file, "a temporary folder")
                fresh.rename(scratch / _HELD)  # locked before others see it
            yield scratch


def seal(folder: Path, manifest: str, about: Mapping[str, Any]) -> None:
    """Write a folder's manifest: what it is, and a checksum of every file, in folders too."""
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): checksum(path) for path in written}
    text = json.dumps({**about, "files": files}, indent=2, default=str) + "\n"
    (folder / manifest).write_text(text, encoding="utf-8")


def is_intact(folder: Path, manifest: str) -> bool:
    """Tell whether every file is there as it was written."""
    files = read_manifest(folder, manifest).get("files")
    if not isinstance(files, dict):
        return False
    try:
        return all(checksum(folder / name) == sum_ for name, sum_ in files.items())
    except OSError:
        return False


def read_manifest(folder: Path, manifest: str) -> dict[str, Any]:
    """Return a folder's manifest; an empty one where there is none that can be read."""
    try:
        found = json.loads((folder / manifest).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
