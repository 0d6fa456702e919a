"""The central directory of a large zip as a few arrays: tens of bytes per member.

``zipfile`` holds an object of several hundred bytes for each member; this reader holds its hash,
place, sizes and checksum. Zips beyond 65,535 members and 4 GiB (zip64) are read.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ...disk_cache import cached_arrays, source_digest
from ...errors import DataError
from ...rows import unreadable
from .packed import hash_of

_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_END_64_PLACE = struct.Struct("<4sLQL")
_MEMBER = struct.Struct("<4s6H3L5H2L")
_MARK = b"PK\5\6"
_LONGEST_COMMENT = 1 << 16
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
UTF8_NAME = 0x800
_COLUMNS = {"hash": "Q", "offset": "Q", "packed": "Q", "size": "Q", "crc": "L", "kind": "L"}
_TYPES = {"Q": np.uint64, "L": np.uint32}


class Entry(NamedTuple):
    """One member as the directory tells of it.

    Attributes:
        name: Its name, folders included.
        offset: Where its local header begins.
        packed: Bytes in the file.
        size: Bytes when unpacked.
        crc: CRC-32 of the unpacked bytes.
        kind: Compression method, and above its 16 bits the flags.
    """

    name: str
    offset: int
    packed: int
    size: int
    crc: int
    kind: int


def zip_table(path: Path) -> tuple[dict[str, np.ndarray], str]:
    """The members of a zip, by the hash of their names' last part, and a digest of them all.

    The table is cached by the content of the directory, which carries the checksum of every
    member. Of members of one name the last one counts. Folders are left out.

    Returns:
        Arrays ``hash`` (ascending), ``offset``, ``packed``, ``size``, ``crc``, ``kind``, and
        ``repeated`` (one number: members that another one of their name replaces); the digest.

    Raises:
        DataError: The file cannot be read, or is no zip.
    """
    try:
        with path.open("rb") as file:
            directory, count = _directory(file, path)
    except OSError as error:
        raise unreadable(path, error) from None
    code = source_digest(Path(__file__).parent, "zip_directory.py", "packed.py")
    digest = hashlib.blake2b(directory, digest_size=12).hexdigest()
    table = cached_arrays(f"papers-zip-{digest}-{code}", lambda: _built(directory, count, path))
    return table, digest


def _built(directory: bytes, count: int, path: Path) -> dict[str, np.ndarray]:
    columns = {name: array("Q") for name in _COLUMNS}
    for entry in _entries(directory, count, path):
        if entry.name.endswith("/"):
            continue
        columns["hash"].append(hash_of(last_part(entry.name)))
        for name in ("offset", "packed", "size", "crc", "kind"):
            columns[name].append(getattr(entry, name))
    hashes = np.frombuffer(columns["hash"], dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    last = np.ones(len(order), dtype=bool)
    last[:-1] = hashes[order][1:] != hashes[order][:-1]
    order = order[last]
    table = {
        name: np.frombuffer(columns[name], dtype=np.uint64)[order].astype(_TYPES[kind])
        for name, kind in _COLUMNS.items()
    }
    return {**table, "repeated": np.array([len(hashes) - len(order)])}


def last_part(name: str) -> str:
    """A member's name without the folders before it."""
    return name.rpartition("/")[2]


def name_of(raw: bytes, flags: int) -> str:
    """A member's name: UTF-8 where its flag says so, else the old code page."""
    return raw.decode("utf-8" if flags & UTF8_NAME else "cp437", "replace")


def _end_of(tail: bytes) -> int:
    """Where the last record begins, -1 where there is none.

    The comment behind it may hold the record's mark as well: one that reaches to the file's end
    goes before others. Other programs may have added something to the file.
    """
    last = tail.rfind(_MARK, 0, max(0, len(tail) - _END.size + len(_MARK)))
    at = last
    while at >= 0 and at + _END.size + _END.unpack_from(tail, at)[-1] != len(tail):
        at = tail.rfind(_MARK, 0, at)
    return last if at < 0 else at


def _directory(file: BinaryIO, path: Path) -> tuple[bytes, int]:
    """The central directory's bytes and its number of members."""
    length = file.seek(0, 2)
    tail_at = max(0, length - _END.size - _LONGEST_COMMENT - _END_64_PLACE.size)
    file.seek(tail_at)
    tail = file.read()
    at = _end_of(tail)
    if at < 0:
        raise _no_zip(path, "it has no directory at its end; is the download complete?")
    _, _, _, _, count, size, start, _ = _END.unpack_from(tail, at)
    if count == _FULL_16 or _FULL_32 in (size, start):
        count, size, start = _large(file, tail, at, path)
    if start + size > tail_at + at:
        raise _no_zip(path, "its directory does not fit; is the download complete?")
    file.seek(start)
    return file.read(size), count


def _large(file: BinaryIO, tail: bytes, at: int, path: Path) -> tuple[int, int, int]:
    """(members, bytes, place) of the directory of a zip64."""
    at -= _END_64_PLACE.size
    if at >= 0 and tail[at : at + 4] == b"PK\6\7":
        file.seek(_END_64_PLACE.unpack_from(tail, at)[2])
        record = file.read(_END_64.size)
        if len(record) == _END_64.size and record[:4] == b"PK\6\6":
            *_, count, size, start = _END_64.unpack(record)
            return count, size, start
    raise _no_zip(path, "the end of its directory (zip64) is damaged.")


def _entries(directory: bytes, count: int, path: Path) -> Iterator[Entry]:
    at = 0
    for number in range(count):
        if directory[at : at + 4] != b"PK\1\2" or at + _MEMBER.size > len(directory):
            raise _no_zip(path, f"member {number:,} of {count:,} in its directory is damaged.")
        fields = _MEMBER.unpack_from(directory, at)
        flags, method, crc = fields[3], fields[4], fields[7]
        named, extra, comment = fields[10:13]
        at += _MEMBER.size
        name = name_of(directory[at : at + named], flags)
        wide = directory[at + named : at + named + extra]
        size, packed, offset = _wide((fields[9], fields[8], fields[16]), wide, path, name)
        at += named + extra + comment
        yield Entry(name, offset, packed, size, crc, method | flags << 16)


def _wide(given: tuple[int, int, int], extra: bytes, path: Path, name: str) -> tuple[int, int, int]:
    """(size, packed, offset), those that do not fit into 32 bits taken from the extra field."""
    if _FULL_32 not in given:
        return given
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            data = extra[at + 4 : at + 4 + length]
            numbers = iter(struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8]))
            size, packed, offset = (
                next(numbers, -1) if number == _FULL_32 else number for number in given
            )
            if min(size, packed, offset) >= 0:
                return size, packed, offset
        at += 4 + length
    raise _no_zip(path, f"member {name!r} says that it is large and not how large.")


def _no_zip(path: Path, why: str) -> DataError:
    return DataError(f"{path}: is no readable zip: {why}")
