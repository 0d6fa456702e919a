"""The passages of a corpus file, read by number straight from the file: no copy, no memory."""

from __future__ import annotations

import hashlib
import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..retrieval import Hit
from .files import mapped
from .manifest import Manifest, corpus_digest

OFFSETS, ID_HASHES, ID_ORDER = "offsets.npy", "id-hashes.npy", "id-order.npy"


def id_hash(identity: str) -> int:
    """64 bits of a passage's id."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little")


def row_id(row: dict[str, Any], where: str) -> str:
    """The id of a corpus row as text.

    Raises:
        DataError: No id, or neither text nor an integer.
    """
    value = row.get("id")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DataError(f"{where}: id is {value!r}; expected text or an integer.")
    return _clean(str(value))


def row_contents(row: dict[str, Any], where: str) -> tuple[str, str]:
    """Title and text: ``contents`` (first line is the title), or ``title`` and ``text``.

    Raises:
        DataError: Neither is there as text.
    """
    contents = row.get("contents")
    if contents is None and isinstance(row.get("text"), str):
        title, text = row.get("title", ""), row["text"]
    elif isinstance(contents, str):
        title, _, text = contents.partition("\n")
    else:
        raise DataError(
            f"{where}: no text; expected contents, or title and text. Columns: "
            f"{', '.join(map(str, row)) or 'none'}."
        )
    if not isinstance(title, str):
        raise DataError(f"{where}: title is {title!r}; expected text.")
    if not title.strip() and not text.strip():
        raise DataError(f"{where}: the passage is empty.")
    return _clean(title).strip(), _clean(text)


def parse_row(line: bytes, where: str) -> dict[str, Any]:
    """One line of a corpus file.

    Raises:
        DataError: Not UTF-8, not JSON, or no object.
    """
    try:
        row = json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason}).") from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: not JSON ({error.msg} at column {error.colno}); expected one object per "
            "line."
        ) from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: a {type(row).__name__}; expected a JSON object per line.")
    return row


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


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
        self._offsets = mapped(folder / OFFSETS)
        self._hashes = mapped(folder / ID_HASHES)
        self._order = mapped(folder / ID_ORDER)
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def row(self, number: int) -> dict[str, Any]:
        """The corpus row as it was written."""
        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        return parse_row(self._data[start:end], f"{self.path}: passage {number}")

    def hit(self, number: int, score: float) -> Hit:
        """A passage that was found."""
        where = f"{self.path}: passage {number}"
        row = self.row(number)
        title, text = row_contents(row, where)
        return Hit(row_id(row, where), title, text, score)

    def find(self, identity: str) -> dict[str, Any] | None:
        """The corpus row with this id, None if there is none."""
        wanted = np.uint64(id_hash(identity))
        at = int(np.searchsorted(self._hashes, wanted))
        while at < len(self._hashes) and self._hashes[at] == wanted:
            row = self.row(int(self._order[at]))
            if str(row.get("id")) == identity:
                return row
            at += 1
        return None
