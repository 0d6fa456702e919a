"""The passages of a corpus file, read by number straight from the file: no copy, no memory."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ....core.errors import DataError
from ....utils.file_rows import get_contents, parse_row, row_id
from ..base import Hit
from .files import map_array
from .manifest import Manifest, corpus_digest

OFFSETS, ID_HASHES, ID_ORDER = "offsets.npy", "id-hashes.npy", "id-order.npy"


def id_hash(identity: str) -> int:
    """Return a 64-bit hash of a passage's id."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little")


class Passages:
    """Passages by number or by id.

    Args:
        folder: The index.
        manifest: Its facts.
        corpus: Where the passage file is now; default where it was.

    Raises:
        DataError: The file is missing, or is not the one that was indexed.
    """

    def __init__(self, folder: Path, manifest: Manifest, corpus: str | Path | None = None) -> None:
        path = Path(corpus) if corpus is not None else Path(manifest.corpus)
        if corpus is None and not path.exists() and (folder.parent / path.name).exists():
            path = folder.parent / path.name
        if not path.exists():
            raise DataError(
                f"{folder}: its passage file {path} is not there; give its new place with corpus=."
            )
        if corpus_digest(path) != manifest.corpus_digest:
            raise DataError(
                f"{folder}: was built for another corpus than {path} (the digest differs): the "
                "file has changed since. Build the index again, or name the right one with corpus=."
            )
        self.path = path
        self._offsets = map_array(folder / OFFSETS)
        self._hashes = map_array(folder / ID_HASHES)
        self._order = map_array(folder / ID_ORDER)
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def row(self, number: int) -> dict[str, Any]:
        """Return the corpus row as it was written."""
        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        return parse_row(self._data[start:end], f"{self.path}: passage {number}")

    def hit(self, number: int, score: float) -> Hit:
        """Return a found passage."""
        where = f"{self.path}: passage {number}"
        row = self.row(number)
        title, text = get_contents(row, where)
        return Hit(row_id(row, where), title, text, score)

    def find(self, identity: str) -> dict[str, Any] | None:
        """Return the corpus row with this id, None if there is none."""
        wanted = np.uint64(id_hash(identity))
        at = int(np.searchsorted(self._hashes, wanted))
        while at < len(self._hashes) and self._hashes[at] == wanted:
            row = self.row(int(self._order[at]))
            if row_id(row, str(self.path)) == identity:
                return row
            at += 1
        return None
