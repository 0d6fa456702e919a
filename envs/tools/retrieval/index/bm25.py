"""Search a BM25 index on disk: the exact best passages without scoring all of them.

MaxScore (Turtle and Flood 1995): words are taken from the one that can give most to the one that
can give least. Once ``k`` passages have more than all the words left could give together, no new
passage can enter, and what is left is looked up for the candidates alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..base import Hit, words
from .bm25_build import WordTable
from .disk_index import DiskIndex
from .files import map_array
from .manifest import Manifest

_SLACK = 1e-5  # relative; sums in another order differ by a rounding or two
_DENSE_SHARE = 8
_LONG = 256


def _kth_highest(scores: np.ndarray, k: int) -> float:
    """Return what at least ``k`` scores reach: the k-th highest, or less for long arrays.

    The best of many equal stretches are so many different scores, found in one cheap pass.
    """
    if len(scores) > _LONG * k:
        stretches = 32 * k
        size = len(scores) // stretches
        scores = scores[: stretches * size].reshape(stretches, size).max(axis=1)
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


class _Term(NamedTuple):
    start: int
    end: int
    times: int
    max_score: float


class Bm25Index(DiskIndex):
    """BM25 over a memory-mapped index.

    It ranks as :class:`turngym.envs.tools.retrieval.bm25.Bm25` does.
    Equal scores keep the order of the corpus. A passage that shares no word with a query is not
    found.

    Args:
        folder: The index.
        manifest: Its facts.
        corpus: Where the passage file is now, if it was moved.
    """

    def __init__(self, folder: Path, manifest: Manifest, corpus: str | Path | None = None) -> None:
        super().__init__(folder, manifest, corpus)
        self._table = WordTable(folder)
        self._starts = map_array(folder / "starts.npy")
        self._docs = map_array(folder / "docs.npy")
        self._scores = map_array(folder / "scores.npy")
        self._max_scores = map_array(folder / "most.npy")

    def _search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found: dict[str, list[Hit]] = {}
        for query in queries:
            if query not in found:
                docs, scores = self.rank(query, k)
                pairs = zip(docs.tolist(), scores.tolist(), strict=True)
                found[query] = [self.passages.hit(doc, score) for doc, score in pairs]
        return [list(found[query]) for query in queries]

    def rank(self, query: str, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers and scores of the best passages, at most ``k``, best first."""
        terms = self._terms(query)
        if not terms:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        docs = self._candidates(sorted(terms, key=lambda t: -t.max_score), k)
        scores = np.zeros(len(docs), dtype=np.float32)
        for term in terms:
            scores += self._scores_of(term, docs)
        if len(docs) > k:
            keep = scores >= _kth_highest(scores, k)
            docs, scores = docs[keep], scores[keep]
        order = np.lexsort((docs, -scores))[:k]
        return docs[order].astype(np.int64), scores[order]

    def _terms(self, query: str) -> list[_Term]:
        times: dict[str, int] = {}
        for word in words(query):
            times[word] = times.get(word, 0) + 1
        terms: list[_Term] = []
        for word, n in times.items():
            number = self._table.find(word)
            if number is not None:
                start, end = int(self._starts[number]), int(self._starts[number + 1])
                terms.append(_Term(start, end, n, n * float(self._max_scores[number])))
        return terms

    def _candidates(self, terms: Sequence[_Term], k: int) -> np.ndarray:
        """Return passages that include the best ``k``, ascending; ``terms`` by maximum score."""
        left, had = sum(term.max_score for term in terms), 0.0
        docs, scores = np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.float32)
        closed = False
        for term in terms:
            left, had = left - term.max_score, had + term.max_score
            if closed:
                scores = scores + self._scores_of(term, docs)
            else:
                docs, scores = self._join(docs, scores, term)
            if len(docs) <= k or had <= left:
                continue
            bar = _kth_highest(scores, k)
            slack = _SLACK * (bar + left)
            # a passage that none of these words led to has nothing but what is left
            closed = closed or left + slack < bar
            if closed:
                keep = scores + np.float32(left + slack) >= bar
                docs, scores = docs[keep], scores[keep]
        return docs

    def _join(
        self, docs: np.ndarray, scores: np.ndarray, term: _Term
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add a word's passages to the candidates, and its scores to theirs."""
        new = self._docs[term.start : term.end]
        give = self._scores[term.start : term.end] * np.float32(term.times)
        if not len(docs):
            return new, give
        if (len(docs) + len(new)) * _DENSE_SHARE > len(self):
            sums = np.zeros(len(self), dtype=np.float32)
            sums[docs] = scores
            sums[new] += give
            both = np.flatnonzero(sums)
            return both.astype(np.uint32), sums[both]
        both = np.concatenate([docs, new])
        order = np.argsort(both, kind="stable")
        both, given = both[order], np.concatenate([scores, give])[order]
        first = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
        return both[first], np.add.reduceat(given, first)

    def _scores_of(self, term: _Term, docs: np.ndarray) -> np.ndarray:
        """Return a word's scores for the passages ``docs``."""
        listed = self._docs[term.start : term.end]
        at = listed.searchsorted(docs)
        at[at == len(listed)] = 0
        given = self._scores[term.start : term.end][at] * np.float32(term.times)
        return np.where(listed[at] == docs, given, np.float32(0))
