"""Many texts in little memory, and a table from their hashes to their places."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


class PackedTexts(Sequence[str]):
    """Texts that are decoded when they are asked for; see :func:`~.disk_cache.pack_strings`."""

    def __init__(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> None:
        self._data, self._ends = data.data, ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        start = int(self._ends[place - 1]) if place else 0
        return str(self._data[start : int(self._ends[place])], "utf-8", "surrogatepass")


class Blank(Sequence[str]):
    """The empty text, many times."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        places = range(self._length)[place]  # which checks it
        return "" if isinstance(places, int) else [""] * len(places)


def hash_text(text: str) -> int:
    """64 bits of a text, the same in every process."""
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def hash_texts(texts: Sequence[str]) -> Hashes:
    """:func:`hash_text` of each text."""
    return np.fromiter((hash_text(text) for text in texts), dtype=np.uint64, count=len(texts))


class HashTable:
    """From 64-bit hashes to the places that have them, in ascending order.

    Args:
        hashes: Hash of each place.
    """

    def __init__(self, hashes: Hashes) -> None:
        order = np.argsort(hashes, kind="stable")
        self._sorted, self._order = hashes[order], order.astype(np.uint32)

    def places(self, text: str) -> Iterator[int]:
        """Places whose text has the hash of ``text``: nearly always those that hold it."""
        wanted = np.uint64(hash_text(text))
        at = int(self._sorted.searchsorted(wanted))
        while at < len(self._sorted) and self._sorted[at] == wanted:
            yield int(self._order[at])
            at += 1

    def distinct(self) -> int:
        """Number of different hashes."""
        return int(np.count_nonzero(np.diff(self._sorted))) + 1 if len(self._sorted) else 0
