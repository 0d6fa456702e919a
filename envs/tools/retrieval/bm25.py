"""BM25 in memory, the built-in retriever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import BadValueError
from ...core.fork import Shared
from ...core.settings import check_integer
from ...utils.bounded_cache import BoundedCache
from ...utils.disk_cache import cache_arrays, pack_strings, source_digest, unpack_strings
from .base import Corpus, Hit, words
from .bm25s_alone import import_bm25s

_DENSE_SHARE = 8
_REMEMBERED = 1 << 17
"""Hits that are remembered, some 20 MB: the paths of a group ask for the same again and again."""


class Bm25(Shared):
    """BM25 (Lucene variant, k1 1.5, b 0.75) over titles and texts, by bm25s's precomputed scores.

    Equal scores keep the order of the corpus, so results are the same in every process. Read-only
    after construction: copies, forks and pickles of environments share it. Hits of the latest
    queries are remembered; :meth:`forget` drops them.

    Args:
        corpus: The passages.
        name: Name of the cached index; carries all that the passages depend on.
        reload: Function and arguments that give this very object again; what a pickle stores in
            place of the passages.

    Attributes:
        identity: Text that changes with the passages and with how they are searched.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        name: str,
        reload: tuple[Callable[..., Bm25], tuple[Any, ...]] | None = None,
    ) -> None:
        if not corpus.texts:
            raise BadValueError("Bm25: the corpus is empty; expected at least one passage.")
        self.corpus = corpus
        self.reload = reload
        made_by = f"{source_digest(Path(__file__).parent, 'base.py', 'bm25.py')}-{version('bm25s')}"
        self.identity = f"{name}-bm25-{made_by}"
        arrays = cache_arrays(self.identity, lambda: _index(corpus))
        vocabulary = unpack_strings(arrays["vocabulary.bytes"], arrays["vocabulary.ends"])
        self._word_ids = {word: i for i, word in enumerate(vocabulary)}
        self._scores = arrays["data"]
        self._passages = arrays["indices"].astype(np.int64)
        self._starts = arrays["indptr"].tolist()
        self._dense: dict[int, np.ndarray] = {}
        self._remembered: BoundedCache[tuple[str, int], list[Hit]] = BoundedCache(_REMEMBERED)

    def __len__(self) -> int:
        return len(self.corpus.texts)

    def __reduce__(self) -> Any:
        if self.reload is None:
            return super().__reduce__()
        return self.reload

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most ``k`` passages that share a word with the query, best first.

        Raises:
            BadValueError: ``k`` is below 1.
        """
        check_integer("k", k, "Bm25.search", min=1)
        return [self._recall(query, k) for query in queries]

    def forget(self) -> None:
        """Drop the remembered hits, so that every query is searched anew."""
        self._remembered.clear()

    def _recall(self, query: str, k: int) -> list[Hit]:
        """Return the hits of a query, remembered or searched; the list is the caller's own."""
        hits = self._remembered.get((query, k))
        if hits is None:
            hits = self._search(query, k)
            self._remembered.put((query, k), hits, 1 + len(hits) + len(query) // 64)
        return hits.copy()

    def _search(self, query: str, k: int) -> list[Hit]:
        known = [i for w in words(query) if (i := self._word_ids.get(w)) is not None]
        if not known:
            return []
        sums = np.zeros(len(self.corpus.texts), dtype=np.float32)
        for word in known:
            start, end = self._starts[word], self._starts[word + 1]
            if (end - start) * _DENSE_SHARE > len(sums):
                sums += self._column(word, start, end)
            else:
                np.add.at(sums, self._passages[start:end], self._scores[start:end])
        ids, titles, texts = self.corpus
        return [Hit(ids[i], titles[i], texts[i], score) for i, score in _best(sums, k)]

    def _column(self, word: int, start: int, end: int) -> np.ndarray:
        """Return a frequent word's scores as a full column: adding is faster than scattering."""
        column = self._dense.get(word)
        if column is None:
            column = np.zeros(len(self), dtype=np.float32)
            column[self._passages[start:end]] = self._scores[start:end]
            self._dense[word] = column
        return column


def _best(sums: np.ndarray, k: int) -> list[tuple[int, float]]:
    """Return places and scores of the ``k`` highest positive sums, first place first if equal."""
    if k <= 16:
        best = []
        for _ in range(min(k, len(sums))):
            place = int(sums.argmax())
            if (score := float(sums[place])) <= 0.0:
                break
            best.append((place, score))
            sums[place] = 0.0
        return best
    order = np.argsort(-sums, kind="stable")[:k]
    return [(int(i), float(sums[i])) for i in order if sums[i] > 0.0]


def _index(corpus: Corpus) -> dict[str, np.ndarray]:
    bm25s = import_bm25s()  # late: only building an index needs it

    word_ids: dict[str, int] = {}
    tokens = [
        [word_ids.setdefault(w, len(word_ids)) for w in words(f"{title} {text}")]
        for title, text in zip(corpus.titles, corpus.texts, strict=True)
    ]
    if not word_ids:
        raise BadValueError("Bm25: no passage of the corpus holds a word.")
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index((tokens, word_ids), create_empty_token=False, show_progress=False)
    packed = pack_strings(list(word_ids))
    return {
        "data": np.asarray(index.scores["data"], dtype=np.float32),
        "indices": np.asarray(index.scores["indices"], dtype=np.int32),
        "indptr": np.asarray(index.scores["indptr"], dtype=np.int64),
        "vocabulary.bytes": packed["bytes"],
        "vocabulary.ends": packed["ends"],
    }
