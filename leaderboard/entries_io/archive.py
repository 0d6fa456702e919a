"""Unpack untrusted archives: zip, tar and tar.gz."""

from __future__ import annotations

import contextlib
import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ..schema.limits import MIB, ReadLimits
from ..schema.result import refused
from .file_policy import check_kind, check_path, check_start

_CHUNK = 64 * 1024
_END_RECORD, _END_SIZE = b"PK\x05\x06", 22
_ZIP64_LOCATOR, _ZIP64_SIZE = b"PK\x06\x07", 20
_DIRECTORY_BYTES = 400
"""Upper bound of the central directory's bytes per member."""


class _Unpacked:
    """Writes members below a folder and counts their size."""

    def __init__(self, root: Path, packed: int, limits: ReadLimits) -> None:
        self.root = root
        self.limits = limits
        self._packed = max(1, packed)
        self._names: set[str] = set()
        self._total = 0

    def name(self, name: str) -> PurePosixPath:
        """Check a member's path and that it is unique."""
        path = check_path(name, self.limits)
        if str(path).lower() in self._names:
            raise refused("archive", f"{path}: occurs twice in the archive.")
        self._names.add(str(path).lower())
        if len(self._names) > self.limits.members:
            raise refused("archive", f"more than {self.limits.members} members.")
        return path

    def count(self, size: int) -> None:
        """Count unpacked bytes."""
        self._total += size
        if self._total > self.limits.total_bytes:
            raise refused("archive", f"unpacks to more than {self.limits.total_bytes} bytes.")
        if self._total > MIB and self._total / self._packed > self.limits.ratio:
            raise refused(
                "archive",
                f"unpacks to more than {self.limits.ratio:g} times its size, as zip bombs do.",
            )

    def write(self, path: PurePosixPath, source: IO[bytes]) -> None:
        """Write one member."""
        check_kind(path)
        target = self.root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                size = 0
                chunk = source.read(_CHUNK)
                check_start(path, chunk)
                while chunk:
                    size += len(chunk)
                    if size > self.limits.file_bytes:
                        raise refused(
                            "archive", f"{path}: larger than {self.limits.file_bytes} bytes."
                        )
                    self.count(len(chunk))
                    file.write(chunk)
                    chunk = source.read(_CHUNK)
        except (FileExistsError, NotADirectoryError) as error:
            raise refused("archive", f"{path}: is both a file and a folder.") from error


class _Bounded(io.RawIOBase):
    """A stream that refuses to deliver more than a number of bytes, headers included."""

    def __init__(self, source: IO[bytes], unpacked: _Unpacked) -> None:
        self._source = source
        self._unpacked = unpacked

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self._unpacked.limits.total_bytes:
            raise refused("archive", "a header of the archive announces more than may be unpacked.")
        data = self._source.read(size)
        self._unpacked.count(len(data))
        return data


def unpack(archive: Path, folder: Path, limits: ReadLimits) -> Path:
    """Unpack an upload.

    Args:
        archive: A zip, tar or tar.gz.
        folder: An empty folder.
        limits: Limits on the upload.

    Returns:
        The entry's folder: ``folder``, or the only folder in it.

    Raises:
        Refused: A member that entries must not contain; see :mod:`.file_policy`.
    """
    size = archive.stat().st_size
    if size > limits.archive_bytes:
        raise refused("archive", f"has {size} bytes; at most {limits.archive_bytes} are accepted.")
    with archive.open("rb") as file:
        start = file.read(4)
    unpacked = _Unpacked(folder, size, limits)
    try:
        if start.startswith(b"PK"):
            _unzip(archive, unpacked)
        else:
            _untar(archive, start.startswith(b"\x1f\x8b"), unpacked)
    except tarfile.ReadError as error:
        raise refused(
            "archive",
            f"is no zip, tar or tar.gz, or a damaged one, and cannot be unpacked: {error}.",
        ) from error
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, OSError, EOFError) as error:
        raise refused("archive", f"cannot be unpacked: {error}.") from error
    except (NotImplementedError, RuntimeError, ValueError, OverflowError) as error:
        raise refused("archive", f"uses an unsupported feature: {error}.") from error
    if not any(folder.iterdir()):
        raise refused("archive", "contains no file.")
    return _entry_root(folder)


def _entry_root(folder: Path) -> Path:
    inside = list(folder.iterdir())
    if len(inside) == 1 and inside[0].is_dir():
        return inside[0]
    return folder


def _unzip(archive: Path, unpacked: _Unpacked) -> None:
    _check_directory_size(archive, unpacked.limits)
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = unpacked.name(member.orig_filename)
            _check_zip_member(member, path)
            if member.is_dir():
                continue
            with opened.open(member) as source:
                unpacked.write(path, source)


def _check_zip_member(member: zipfile.ZipInfo, path: PurePosixPath) -> None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise refused("archive", f"{path}: is a link or a device; only plain files are accepted.")
    if member.flag_bits & 0x1:
        raise refused("archive", f"{path}: is encrypted.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise refused("archive", f"{path}: is packed by a method other than deflate.")


def _check_directory_size(archive: Path, limits: ReadLimits) -> None:
    """Check the size of the central directory, which is read into memory as a whole."""
    with archive.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - 65535 - _END_SIZE - _ZIP64_SIZE))
        tail = file.read()
    at = tail.rfind(_END_RECORD)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise refused("archive", "is not a complete zip: its end is missing.")
    if tail[max(0, at - _ZIP64_SIZE) : at].startswith(_ZIP64_LOCATOR):
        raise refused("archive", "has a listing in the zip64 form; pack it as a plain zip.")
    listing = int.from_bytes(tail[at + 12 : at + 16], "little")
    if listing > limits.members * _DIRECTORY_BYTES:
        raise refused("archive", f"lists more than {limits.members} members.")


@contextlib.contextmanager
def _plain_stream(archive: Path, packed: bool) -> Iterator[IO[bytes]]:
    with archive.open("rb") as raw:
        if packed:
            with gzip.GzipFile(fileobj=raw) as opened:
                yield opened  # pyright: ignore[reportReturnType] - reads as a binary file does
        else:
            yield raw


def _untar(archive: Path, packed: bool, unpacked: _Unpacked) -> None:
    with _plain_stream(archive, packed) as stream:
        bounded = _Bounded(stream, unpacked)
        with tarfile.open(fileobj=bounded, mode="r|") as opened:
            for member in opened:
                if member.name in (".", "./"):
                    continue
                path = unpacked.name(member.name)
                if member.issparse() or not (member.isreg() or member.isdir()):
                    raise refused(
                        "archive", f"{path}: is a link or a device; only plain files are accepted."
                    )
                source = opened.extractfile(member) if member.isreg() else None
                if source is not None:
                    unpacked.write(path, source)
        while bounded.read(_CHUNK):
            pass  # to the end, where the checksum of what is packed is compared
