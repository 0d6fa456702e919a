"""BM25 in bounded memory: postings block by block, then one merge into memory-mapped columns.

The scores are bm25s's Lucene variant (k1 1.5, b 0.75; the tests hold them to that library's). A
library index is built in memory at once, which for twenty million passages is more than most
machines have; here memory is that of one block and of the vocabulary.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ....core.errors import BadValueError, DataError
from ....utils.disk_cache import pack_strings, unpack_strings
from ....utils.system import reserve_space
from ..base import words
from .build import BuildPlan
from .files import map_array, save_array

K1, B = 1.5, 0.75
_CHUNK = 1 << 24  # postings that the merge looks at together


def word_hash(word: str) -> int:
    """Return a 64-bit hash of a word."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


class PostingBlocks:
    """Turns blocks of passages into postings; knows the words of all blocks so far."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def restore(self, part: dict[str, np.ndarray]) -> None:
        """Learn the words of a block that an earlier run finished."""
        for word in unpack_strings(part["words.bytes"], part["words.ends"]):
            self._ids[word] = len(self._ids)

    def block(self, passages: Sequence[tuple[str, str]]) -> dict[str, np.ndarray]:
        """Return the postings of (title, text) passages, numbered from 0 within the block.

        Returns:
            ``terms`` [t] ascending, ``counts`` [t] passages of each, ``docs`` and ``tfs``
            [postings] by term and passage, ``lengths`` [passages] in words, and the new words.
        """
        ids, known = self._ids, len(self._ids)
        lengths = np.zeros(len(passages), dtype=np.uint32)
        flat: list[int] = []
        for i, (title, text) in enumerate(passages):
            found = words(f"{title} {text}")
            lengths[i] = len(found)
            flat += [ids.setdefault(w, len(ids)) for w in found]
        size = max(len(passages), 1)
        key = np.fromiter(flat, dtype=np.int64, count=len(flat)) * size
        key += np.repeat(np.arange(len(passages)), lengths)
        pairs, tfs = np.unique(key, return_counts=True)
        terms, counts = np.unique(pairs // size, return_counts=True)
        fresh = pack_strings(list(ids)[known:] if len(ids) > known else [])
        return {
            "terms": terms.astype(np.uint32),
            "counts": counts.astype(np.uint32),
            "docs": (pairs % size).astype(np.uint32),
            "tfs": np.minimum(tfs, np.iinfo(np.uint16).max).astype(np.uint16),
            "lengths": lengths,
            "words.bytes": fresh["bytes"],
            "words.ends": fresh["ends"],
        }


def check_bm25_settings(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the index; nothing can be set.

    Raises:
        BadValueError: A setting was given.
    """
    if given:
        raise BadValueError(
            f"build_index: {kind} has no setting {next(iter(given))!r}; it has none at all."
        )
    return {"k1": K1, "b": B}


def build_bm25(plan: BuildPlan, passages: int) -> None:
    """Score all postings and lay them out by term.

    The folder receives ``starts`` [terms + 1], ``docs`` and ``scores`` [postings], ``most`` [terms]
    (the highest score of each) and the word table.

    Raises:
        DataError: No passage holds a word.
    """
    parts, folder, progress = plan.list_parts(), plan.out, plan.progress
    vocabulary, frequency, total_words = _survey(parts)
    if not vocabulary:
        raise DataError(f"{folder}: no passage of the corpus holds a word.")
    idf = np.log1p((passages - frequency + 0.5) / (frequency + 0.5))
    starts = np.concatenate([[0], frequency.cumsum()]).astype(np.int64)
    docs, scores = _allocate(folder / "docs.npy", starts[-1], np.uint32), _allocate(
        folder / "scores.npy", starts[-1], np.float32
    )  # fmt: skip
    filled, first = starts[:-1].copy(), 0
    for number, path in enumerate(parts):
        progress("merging", number, len(parts))
        with np.load(path) as part:
            terms, counts = part["terms"].astype(np.int64), part["counts"].astype(np.int64)
            lengths, local, tfs = part["lengths"], part["docs"].astype(np.int64), part["tfs"]
        before = counts.cumsum() - counts
        at = np.repeat(filled[terms] - before, counts) + np.arange(len(local))
        norm = K1 * (1 - B + B * lengths[local] * (passages / total_words))
        docs[at] = local + first
        scores[at] = np.repeat(idf[terms], counts) * (tfs / (tfs + norm))
        filled[terms] += counts
        first += len(lengths)
    highest = _highest_scores(scores, starts)
    del docs, scores
    for name in ("docs", "scores"):
        os.replace(folder / f"{name}.npy.part", folder / f"{name}.npy")
    save_array(folder / "starts.npy", starts)
    save_array(folder / "most.npy", highest)
    _save_words(folder, vocabulary)
    progress("merging", len(parts), len(parts))


def _survey(parts: Iterable[Path]) -> tuple[list[str], np.ndarray, int]:
    """Return the vocabulary, passages per term, and words in all."""
    vocabulary: list[str] = []
    frequency = np.zeros(1 << 16, dtype=np.int64)
    total_words = 0
    for path in parts:
        with np.load(path) as part:
            vocabulary += unpack_strings(part["words.bytes"], part["words.ends"])
            if len(vocabulary) > len(frequency):
                grown = np.zeros(2 * len(vocabulary), dtype=np.int64)
                grown[: len(frequency)] = frequency
                frequency = grown
            frequency[part["terms"]] += part["counts"]
            total_words += int(part["lengths"].sum(dtype=np.int64))
    return vocabulary, frequency[: len(vocabulary)], total_words


def _allocate(path: Path, size: int, dtype: type) -> np.ndarray:
    """Allocate a writable ``.npy`` on disk now, so that a full disk is an error, not a crash."""
    scratch = path.with_name(f"{path.name}.part")
    array = np.lib.format.open_memmap(scratch, mode="w+", dtype=dtype, shape=(int(size),))
    with scratch.open("r+b") as file:
        reserve_space(file)
    return array


def _highest_scores(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the highest score of each term ``[terms]``."""
    highest = np.zeros(len(starts) - 1, dtype=np.float32)
    term = 0
    while term < len(highest):
        stop = int(np.searchsorted(starts, starts[term] + _CHUNK, side="right")) - 1
        stop = min(max(stop, term + 1), len(highest))
        piece = scores[starts[term] : starts[stop]]
        highest[term:stop] = np.maximum.reduceat(piece, starts[term:stop] - starts[term])
        term = stop
    return highest


def _save_words(folder: Path, vocabulary: list[str]) -> None:
    """Save a table from word hashes to numbers, and the words to check against."""
    hashes = np.fromiter(map(word_hash, vocabulary), dtype=np.uint64, count=len(vocabulary))
    order = np.argsort(hashes, kind="stable")
    packed = pack_strings(vocabulary)
    save_array(folder / "word-hashes.npy", hashes[order])
    save_array(folder / "word-order.npy", order.astype(np.uint32))
    save_array(folder / "words.npy", packed["bytes"])
    save_array(folder / "word-ends.npy", packed["ends"])


class WordTable:
    """Numbers of words, looked up on the disk."""

    def __init__(self, folder: Path) -> None:
        self._hashes = map_array(folder / "word-hashes.npy")
        self._order = map_array(folder / "word-order.npy")
        self._bytes = map_array(folder / "words.npy")
        self._ends = map_array(folder / "word-ends.npy")

    def __len__(self) -> int:
        return len(self._ends)

    def find(self, word: str) -> int | None:
        """Return the number of a word; None for one that no passage holds."""
        wanted, raw = np.uint64(word_hash(word)), word.encode()
        at = int(self._hashes.searchsorted(wanted))
        while at < len(self._hashes) and self._hashes[at] == wanted:
            number = int(self._order[at])
            start = int(self._ends[number - 1]) if number else 0
            if self._bytes[start : int(self._ends[number])].tobytes() == raw:
                return number
            at += 1
        return None
