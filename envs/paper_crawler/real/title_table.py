"""``id2paper.json``: the titles of all papers, by id and by the letters of the title."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import DataError
from ...utils.disk_cache import cache_arrays, pack_strings, source_digest
from ...utils.file_rows import clean, make_read_error
from ..papers import join_lines, make_title_key
from .arxiv_ids import UNDATED, read_date, strip_version
from .packed import Hashes, HashTable, PackedTexts, hash_text, hash_texts


class TitleTable:
    """Ids, titles and dates of papers in the order of the file; about 150 bytes per paper.

    Args:
        path: ``id2paper.json``: one object, id to title. Versions are cut from the ids. The
            arrays made of it are cached by its content.

    Attributes:
        path: The file.
        digest: Changes with the content.
        ids: Of the papers.
        titles: Of the papers, on one line.
        dates: Of the papers, see :func:`~.arxiv_ids.date_of`.
        key_hashes: Hash of each title's letters.

    Raises:
        DataError: The file does not hold what it should.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        raw = _raw(path)
        here = Path(__file__).parent
        code = source_digest(here, "title_table.py", "packed.py", "arxiv_ids.py", "../papers.py")
        self.digest = hashlib.blake2b(raw, digest_size=12).hexdigest()
        self.name = f"papers-titles-{self.digest}-{code}"
        arrays = cache_arrays(self.name, lambda: _build(raw, path))
        self.ids = PackedTexts(arrays["ids.bytes"], arrays["ids.ends"])
        self.titles = PackedTexts(arrays["titles.bytes"], arrays["titles.ends"])
        self.dates = arrays["dates"]
        self.key_hashes: Hashes = arrays["key_hashes"]
        self._by_id, self._by_key = HashTable(arrays["id_hashes"]), HashTable(arrays["key_hashes"])

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, paper_id: str) -> int | None:
        """Place of a paper; None for one that is not here."""
        rows = self._by_id.places(paper_id)
        return next((row for row in rows if self.ids[row] == paper_id), None)

    def row_of_key(self, key: str) -> int | None:
        """Place of the first paper whose title has these letters; see :func:`make_title_key`."""
        if not key:
            return None
        rows = self._by_key.places(key)
        return next((row for row in rows if make_title_key(self.titles[row]) == key), None)

    def date(self, paper_id: str) -> int:
        """Date of a paper by its id; of one that is not here too."""
        row = self.row(paper_id)
        return read_date(paper_id) if row is None else int(self.dates[row])

    @property
    def undated(self) -> int:
        """Papers whose id tells no date."""
        return int(np.count_nonzero(self.dates == UNDATED))

    @property
    def shared_keys(self) -> int:
        """Papers that are not found by their title, because an earlier one has its letters."""
        return len(self) - self._by_key.distinct()


def _raw(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise make_read_error(path, error) from None


class _Pairs(list[Any]):
    """The content of a JSON object, repeated names included."""


def _build(raw: bytes, path: Path) -> dict[str, np.ndarray]:
    titles: dict[str, str] = {}
    for name, title in _read_pairs(raw, path):
        where = f"{path}: id {name!r}"
        paper_id = strip_version(clean(name))
        if not paper_id or not isinstance(title, str) or not title.strip():
            raise DataError(f"{where}: its title is {title!r}; expected an id and a text.")
        if paper_id in titles:
            raise DataError(f"{where}: is there twice; expected every paper once.")
        titles[paper_id] = join_lines(clean(title))
    if not titles:
        raise DataError(f"{path}: holds no paper; expected an object of ids and titles.")
    ids, names = list(titles), list(titles.values())
    packed = {"ids": pack_strings(ids), "titles": pack_strings(names)}
    keys = (hash_text(make_title_key(title)) for title in names)
    return {
        **{f"{what}.{part}": a for what, parts in packed.items() for part, a in parts.items()},
        "dates": np.fromiter(map(read_date, ids), dtype=np.int32, count=len(ids)),
        "id_hashes": hash_texts(ids),
        "key_hashes": np.fromiter(keys, dtype=np.uint64, count=len(ids)),
    }


def _read_pairs(raw: bytes, path: Path) -> _Pairs:
    try:
        pairs = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_Pairs)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}).") from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}:{error.lineno}: not JSON ({error.msg} at column {error.colno}); expected one "
            "object of ids and titles. Is the download complete?"
        ) from None
    except RecursionError:
        raise DataError(f"{path}: nested too deeply; expected an object of titles.") from None
    if not isinstance(pairs, _Pairs):
        raise DataError(f"{path}: a {type(pairs).__name__}; expected an object of ids and titles.")
    return pairs
