"""Members of a large zip, read one at a time and checked, with tens of bytes of memory per member.

``zipfile`` holds an object of several hundred bytes for each member; here the central directory is
a few arrays with each member's hash, place, sizes and checksum. Zips beyond 65,535 members and
4 GiB (zip64) are read.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ...core.errors import DataError, EnvFault
from ...utils.disk_cache import cache_arrays, source_digest
from ...utils.file_rows import make_read_error
from .packed import Hashes, hash_text

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


def load_zip_table(path: Path) -> tuple[dict[str, np.ndarray], str]:
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
            directory, count = _read_directory(file, path)
    except OSError as error:
        raise make_read_error(path, error) from None
    code = source_digest(Path(__file__).parent, "zip_members.py", "packed.py")
    digest = hashlib.blake2b(directory, digest_size=12).hexdigest()
    table = cache_arrays(f"papers-zip-{digest}-{code}", lambda: _build(directory, count, path))
    return table, digest


def _build(directory: bytes, count: int, path: Path) -> dict[str, np.ndarray]:
    columns = {name: array("Q") for name in _COLUMNS}
    for entry in _read_entries(directory, count, path):
        if entry.name.endswith("/"):
            continue
        columns["hash"].append(hash_text(get_last_part(entry.name)))
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


def get_last_part(name: str) -> str:
    """A member's name without the folders before it."""
    return name.rpartition("/")[2]


def decode_name(raw: bytes, flags: int) -> str:
    """A member's name: UTF-8 where its flag says so, else the old code page."""
    return raw.decode("utf-8" if flags & UTF8_NAME else "cp437", "replace")


def _find_end(tail: bytes) -> int:
    """Where the last record begins, -1 where there is none.

    The comment behind it may hold the record's mark as well: one that reaches to the file's end
    goes before others. Other programs may have added something to the file.
    """
    last = tail.rfind(_MARK, 0, max(0, len(tail) - _END.size + len(_MARK)))
    at = last
    while at >= 0 and at + _END.size + _END.unpack_from(tail, at)[-1] != len(tail):
        at = tail.rfind(_MARK, 0, at)
    return last if at < 0 else at


def _read_directory(file: BinaryIO, path: Path) -> tuple[bytes, int]:
    """The central directory's bytes and its number of members."""
    length = file.seek(0, 2)
    tail_at = max(0, length - _END.size - _LONGEST_COMMENT - _END_64_PLACE.size)
    file.seek(tail_at)
    tail = file.read()
    at = _find_end(tail)
    if at < 0:
        raise _make_zip_error(path, "it has no directory at its end; is the download complete?")
    _, _, _, _, count, size, start, _ = _END.unpack_from(tail, at)
    if count == _FULL_16 or _FULL_32 in (size, start):
        count, size, start = _read_large_end(file, tail, at, path)
    if start + size > tail_at + at:
        raise _make_zip_error(path, "its directory does not fit; is the download complete?")
    file.seek(start)
    return file.read(size), count


def _read_large_end(file: BinaryIO, tail: bytes, at: int, path: Path) -> tuple[int, int, int]:
    """(members, bytes, place) of the directory of a zip64."""
    at -= _END_64_PLACE.size
    if at >= 0 and tail[at : at + 4] == b"PK\6\7":
        file.seek(_END_64_PLACE.unpack_from(tail, at)[2])
        record = file.read(_END_64.size)
        if len(record) == _END_64.size and record[:4] == b"PK\6\6":
            *_, count, size, start = _END_64.unpack(record)
            return count, size, start
    raise _make_zip_error(path, "the end of its directory (zip64) is damaged.")


def _read_entries(directory: bytes, count: int, path: Path) -> Iterator[Entry]:
    at = 0
    for number in range(count):
        if directory[at : at + 4] != b"PK\1\2" or at + _MEMBER.size > len(directory):
            raise _make_zip_error(
                path, f"member {number:,} of {count:,} in its directory is damaged."
            )
        fields = _MEMBER.unpack_from(directory, at)
        flags, method, crc = fields[3], fields[4], fields[7]
        named, extra, comment = fields[10:13]
        at += _MEMBER.size
        name = decode_name(directory[at : at + named], flags)
        wide = directory[at + named : at + named + extra]
        size, packed, offset = _read_wide_fields(
            (fields[9], fields[8], fields[16]), wide, path, name
        )
        at += named + extra + comment
        yield Entry(name, offset, packed, size, crc, method | flags << 16)


def _read_wide_fields(
    given: tuple[int, int, int], extra: bytes, path: Path, name: str
) -> tuple[int, int, int]:
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
    raise _make_zip_error(path, f"member {name!r} says that it is large and not how large.")


def _make_zip_error(path: Path, why: str) -> DataError:
    return DataError(f"{path}: is no readable zip: {why}")


MOST_BYTES = 1 << 24
"""Most unpacked bytes of a member; a paper's record has tens of thousands."""
_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1


class Members:
    """A zip whose members are found by the last part of their name.

    Only the table of :func:`load_zip_table` is held. The file is opened for every read,
    so that threads, forks and pickles share nothing.

    Args:
        path: The zip.

    Attributes:
        path: The zip.
        digest: Changes with the members.
        repeated: Members that are hidden by a later one of their name.

    Raises:
        DataError: The file cannot be read, or is no zip.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table, self.digest = load_zip_table(path)
        self._hashes: Hashes = self._table["hash"]
        self.repeated = int(self._table["repeated"][0])

    def __len__(self) -> int:
        return len(self._hashes)

    def place(self, name: str) -> int | None:
        """Place of the member called ``name``; None when there is none."""
        wanted = np.uint64(hash_text(name))
        at = int(self._hashes.searchsorted(wanted))
        return at if at < len(self._hashes) and self._hashes[at] == wanted else None

    def places(self) -> Sequence[int]:
        """Places of all members, in the order of the file."""
        return np.argsort(self._table["offset"], kind="stable").tolist()

    def count_among(self, hashes: Hashes) -> int:
        """How many of the hashes of names belong to a member."""
        return int(np.count_nonzero(np.isin(hashes, self._hashes)))

    def read(self, place: int, name: str = "") -> tuple[str, bytes]:
        """Name and unpacked bytes of the member at ``place``.

        Args:
            place: From 0, in no order of meaning.
            name: What it must be called; empty for anything.

        Raises:
            EnvFault: It is damaged, too large, or called otherwise.
        """
        packed, size, crc, kind = (
            int(self._table[column][place]) for column in ("packed", "size", "crc", "kind")
        )
        where = f"{self.path}: member {name!r}" if name else f"{self.path}: member {place}"
        if max(size, packed) > MOST_BYTES:
            raise EnvFault(
                f"{where} has {size:,} bytes ({packed:,} in the file); expected at most "
                f"{MOST_BYTES:,}."
            )
        found, data = self._raw(int(self._table["offset"][place]), packed, where)
        if name and found != name:
            raise EnvFault(f"{where} is called {found!r} where it lies; the zip is damaged.")
        unpacked = _unpacked(data, size, kind, f"{self.path}: member {found!r}")
        if len(unpacked) != size or zlib.crc32(unpacked) != crc:
            raise EnvFault(
                f"{self.path}: member {found!r} is damaged: its content does not have the size "
                "and the checksum (CRC-32) that the zip tells. Fetch the file again."
            )
        return found, unpacked

    def _raw(self, offset: int, packed: int, where: str) -> tuple[str, bytes]:
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                header = file.read(_LOCAL.size)
                if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
                    raise EnvFault(f"{where} does not lie where the zip tells; it is damaged.")
                fields = _LOCAL.unpack(header)
                named, extra = fields[9], fields[10]
                name = decode_name(file.read(named), fields[2])
                file.seek(extra, 1)
                return get_last_part(name), file.read(packed)
        except OSError as error:
            reason = error.strerror or str(error)
            raise EnvFault(f"{where} cannot be read ({reason}).") from error


def _unpacked(data: bytes, size: int, kind: int, where: str) -> bytes:
    method, flags = kind & 0xFFFF, kind >> 16
    if flags & _ENCRYPTED:
        raise EnvFault(f"{where} is encrypted; expected an open zip.")
    if method == _STORED:
        return data
    if method != _DEFLATED:
        raise EnvFault(f"{where} is packed by method {method}; expected deflate (8) or none (0).")
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)
    except zlib.error as error:
        raise EnvFault(f"{where} is damaged ({error}). Fetch the file again.") from None
