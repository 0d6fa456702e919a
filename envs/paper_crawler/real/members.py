"""Members of a large zip, read one at a time and checked."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import EnvFault
from .packed import Hashes, hash_of
from .zip_directory import last_part, name_of, zip_table

MOST_BYTES = 1 << 24
"""Most unpacked bytes of a member; a paper's record has tens of thousands."""
_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1


class Members:
    """A zip whose members are found by the last part of their name.

    Only the table of :func:`~.zip_directory.zip_table` is held. The file is opened for every read,
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
        self._table, self.digest = zip_table(path)
        self._hashes: Hashes = self._table["hash"]
        self.repeated = int(self._table["repeated"][0])

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def table_bytes(self) -> int:
        """Memory of the table."""
        return sum(column.nbytes for column in self._table.values())

    def place(self, name: str) -> int | None:
        """Place of the member called ``name``; None when there is none."""
        wanted = np.uint64(hash_of(name))
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
        told = f"{self.path}: member {name!r}" if name else f"{self.path}: member {place}"
        if max(size, packed) > MOST_BYTES:
            raise EnvFault(
                f"{told} has {size:,} bytes ({packed:,} in the file); expected at most "
                f"{MOST_BYTES:,}."
            )
        found, data = self._raw(int(self._table["offset"][place]), packed, told)
        if name and found != name:
            raise EnvFault(f"{told} is called {found!r} where it lies; the zip is damaged.")
        unpacked = _unpacked(data, size, kind, f"{self.path}: member {found!r}")
        if len(unpacked) != size or zlib.crc32(unpacked) != crc:
            raise EnvFault(
                f"{self.path}: member {found!r} is damaged: its content does not have the size "
                "and the checksum (CRC-32) that the zip tells. Fetch the file again."
            )
        return found, unpacked

    def _raw(self, offset: int, packed: int, told: str) -> tuple[str, bytes]:
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                header = file.read(_LOCAL.size)
                if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
                    raise EnvFault(f"{told} does not lie where the zip tells; it is damaged.")
                fields = _LOCAL.unpack(header)
                named, extra = fields[9], fields[10]
                name = name_of(file.read(named), fields[2])
                file.seek(extra, 1)
                return last_part(name), file.read(packed)
        except OSError as error:
            reason = error.strerror or str(error)
            raise EnvFault(f"{told} cannot be read ({reason}).") from error


def _unpacked(data: bytes, size: int, kind: int, told: str) -> bytes:
    method, flags = kind & 0xFFFF, kind >> 16
    if flags & _ENCRYPTED:
        raise EnvFault(f"{told} is encrypted; expected an open zip.")
    if method == _STORED:
        return data
    if method != _DEFLATED:
        raise EnvFault(f"{told} is packed by method {method}; expected deflate (8) or none (0).")
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)
    except zlib.error as error:
        raise EnvFault(f"{told} is damaged ({error}). Fetch the file again.") from None
