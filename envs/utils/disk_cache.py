"""Derived data on disk: written whole or not at all, checked when read, rebuilt when damaged."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..core.errors import BadValueError
from .disk_errors import DENIED, FULL
from .system import try_lock

Arrays = Mapping[str, np.ndarray]
_DIGEST_BYTES = 32
_PRIVATE = 0o700
_PUBLIC_SEEDS = 2**53
_NOT_SHARED = re.compile(r"[0-9a-f]{32}")
"""In a name: a seed that may be secret (:func:`name_seed`), or a hash of one's own passages."""
_SCRATCH = re.compile(r"\.arrays[0-9a-f]{16}$")
"""What the name of a file ends with that is being written."""


def cache_dir() -> Path:
    """Return ``$TURNGYM_CACHE``, or ``~/.cache/turngym``.

    Raises:
        BadValueError: The account has no home folder: in a container, say, whose user has a number
            and no entry among the accounts.
    """
    named = os.environ.get("TURNGYM_CACHE")
    try:
        return Path(named or "~/.cache/turngym").expanduser()
    except RuntimeError as fault:
        whose = f"TURNGYM_CACHE is {named!r}" if named else "the cache belongs into a home folder"
        raise BadValueError(
            f"{whose}, and the account has none (HOME is not set, or an account of that name is "
            "not known here). Set TURNGYM_CACHE to a folder that you may write into, or to one "
            "that is yet to be made."
        ) from fault


def _find_cache() -> Path | None:
    """Return the cache's folder; None where the account has no home for it."""
    with suppress(BadValueError):
        return cache_dir()
    return None


def make_folder(folder: Path) -> Path:
    """Make a folder with its parents and return it; the cache is closed to other accounts.

    One that is there stays as it is.

    The default cache folder gets mode 700, one that an older version made included. A folder that
    ``$TURNGYM_CACHE`` names, or a link leads to, may be shared on purpose: it gets this mode when
    it is made here, and keeps its own otherwise.

    Raises:
        BadValueError: It cannot be made: a file is in its place, say.
        OSError: The disk is full or may not be written to: ``main`` and the trainer say so.
    """
    root = _find_cache()
    if root is None or not folder.is_relative_to(root):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            if fault.errno in (*FULL, *DENIED):
                raise
            raise BadValueError(f"{folder}: cannot be a folder ({fault.strerror}).") from fault
        return folder
    try:
        root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        _close_default()
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        named = os.environ.get("TURNGYM_CACHE")
        whose = f"TURNGYM_CACHE is {named!r}, but" if named else "the cache is in your home folder:"
        raise BadValueError(
            f"{whose} {folder} cannot be made ({fault.strerror}: {fault.filename}). Set "
            "TURNGYM_CACHE to a folder that you may write into, or to one that is yet to be made."
        ) from fault
    return folder


def _close_default() -> None:
    """Take the rights of other accounts from the default cache folder, if it is there."""
    root = _find_cache()
    if root is None or os.environ.get("TURNGYM_CACHE") or root.is_symlink():
        return
    with suppress(OSError):  # not there, or another account's
        if root.stat().st_mode & 0o077:
            root.chmod(_PRIVATE)


def name_seed(seed: int) -> str:
    """Return what stands for a seed in names of files: itself, or a hash if it may be secret.

    A sealed season's seeds have 256 bits, and whoever reads one has the season's answers.
    """
    if seed < _PUBLIC_SEEDS:
        return str(seed)
    return hashlib.sha256(b"turngym seed\n%d" % seed).hexdigest()[:32]


def cache_arrays(name: str, build: Callable[[], Arrays]) -> dict[str, np.ndarray]:
    """Return the arrays stored under ``name``, built and stored when absent or damaged.

    Args:
        name: File name without ending; carries everything that the content depends on.
        build: Makes the arrays (no object dtype).

    A folder that cannot be written, or is not known, is no error: the arrays are simply not kept.
    What processes left there that were killed while they wrote is deleted before something is.
    Other accounts may read them as the process's umask says, so that a shared folder serves all;
    what comes of a secret seed, or of passages of one's own, is this account's alone.
    """
    root = _find_cache()
    if root is None:
        return dict(build())
    path = root / f"{name}.arrays"
    _close_default()
    stored = _read(path)
    if stored is not None:
        return stored
    made = dict(build())
    _delete_abandoned(root)
    _write(path, made, private=_NOT_SHARED.search(name) is not None)
    return made


def cache_text(path: Path, build: Callable[[], str]) -> str:
    """Return the text in a file, built and stored there when it cannot be read.

    The name of the file carries everything that the text depends on. A folder that cannot be
    written is no error: the text is simply not kept.
    """
    with suppress(OSError):  # not there, or another account's
        return path.read_bytes().decode("utf-8", "surrogatepass")
    text = build()
    _write_whole(path, text.encode("utf-8", "surrogatepass"))
    return text


def source_digest(folder: Path, *files: str) -> str:
    """Return a short hash of source files, for cache names that change with the code."""
    digest = hashlib.blake2b(digest_size=6)
    for name in files:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def pack_strings(texts: list[str]) -> dict[str, np.ndarray]:
    """Pack strings into two arrays: UTF-8 ``bytes`` and ``ends`` (cumulative, in bytes)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(e) for e in encoded], dtype=np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}


def unpack_strings(data: np.ndarray, ends: np.ndarray) -> list[str]:
    """Unpack the arrays of :func:`pack_strings`."""
    raw, stops = data.tobytes(), ends.tolist()
    starts = [0, *stops[:-1]] if stops else []
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, stops, strict=True)]


def _read(path: Path) -> dict[str, np.ndarray] | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    body = memoryview(raw)[_DIGEST_BYTES:]
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != raw[:_DIGEST_BYTES]:
        return None
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def _write(path: Path, arrays: Arrays, private: bool) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    body = buffer.getbuffer()
    digest = hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
    _write_whole(path, digest, body, private=private)


def _delete_abandoned(folder: Path) -> None:
    """Delete what is half written and held by no process any more.

    One that has just begun, or just ended, can be taken for abandoned: it is built again.
    """
    for path in folder.glob("*.arrays*"):
        if _SCRATCH.search(path.name):
            with suppress(OSError, BadValueError), path.open("r+b") as file:
                if try_lock(file, "a file of the cache"):
                    path.unlink()


def _write_whole(path: Path, *parts: bytes | memoryview, private: bool = True) -> None:
    scratch = path.with_name(f"{path.name}{os.urandom(8).hex()}")  # as _SCRATCH says
    try:
        make_folder(path.parent)
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(scratch, new, 0o600 if private else 0o666)
    except (OSError, BadValueError):  # what is derived can be derived again
        return
    try:
        with os.fdopen(handle, "wb") as file:
            with suppress(BadValueError):  # no locks here
                try_lock(file, "a file of the cache")
            file.writelines(parts)
        os.replace(scratch, path)
    except BaseException as fault:
        scratch.unlink(missing_ok=True)
        if not isinstance(fault, OSError):
            raise
