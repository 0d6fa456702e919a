"""The search engine of a world: BM25 over titles and abstracts, up to a date."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from ...core.errors import BadValueError
from ...tools.retrieval.base import words
from ...tools.retrieval.bm25s_alone import import_bm25s
from ...utils.disk_cache import cache_arrays, pack_strings, unpack_strings

K1, B = 1.2, 0.75
TITLE_WEIGHT = 2
_FEW = 24
_UNSEARCHED = frozenset(
    "a an and are by for from in is of on or that the to we when with".split()  # noqa: SIM905
)


def list_searched_words(text: str) -> list[str]:
    """Words that count for a search: all but the most common ones of English."""
    return [word for word in words(text) if word not in _UNSEARCHED]


class DatedBm25:
    """BM25 (Lucene variant, k1 1.2, b 0.75); a title counts twice, an abstract once.

    Papers lie in the order of their dates, so that those before a day are the first so many rows.
    Papers of equal score come in that order too. Read-only.

    Args:
        name: Name of the cached index; carries all that the papers depend on.
        titles: Of the papers.
        abstracts: Of the papers.
        days: Their days ``YYYYMMDD``, ascending.
    """

    def __init__(
        self, name: str, titles: Sequence[str], abstracts: Sequence[str], days: Sequence[int]
    ) -> None:
        self._days = list(days)
        arrays = cache_arrays(name, lambda: _index(titles, abstracts))
        vocabulary = unpack_strings(arrays["vocabulary.bytes"], arrays["vocabulary.ends"])
        self._word_ids = {word: i for i, word in enumerate(vocabulary)}
        self._scores = arrays["data"]
        self._rows = arrays["indices"].astype(np.int64)
        self._starts = arrays["indptr"].tolist()

    def __len__(self) -> int:
        return len(self._days)

    def rows_before(self, day: int) -> int:
        """How many papers are of an earlier day."""
        return bisect_left(self._days, day)

    def search(self, text: str, k: int, before: int) -> list[int]:
        """Rows of at most ``k`` papers of days before ``before``, best first.

        Args:
            text: The query; papers are found that share a word with it.
            k: How many, at least 1.
            before: Day ``YYYYMMDD``.

        Raises:
            BadValueError: ``k`` is below 1.
        """
        if k < 1:
            raise BadValueError(f"DatedBm25.search: k is {k}; expected at least 1.")
        limit = self.rows_before(before)
        known = [i for w in list_searched_words(text) if (i := self._word_ids.get(w)) is not None]
        if not known or not limit:
            return []
        sums = np.zeros(len(self), dtype=np.float32)
        for word in known:
            start, end = self._starts[word], self._starts[word + 1]
            sums[self._rows[start:end]] += self._scores[start:end]
        return _best(sums[:limit], k)


def _best(sums: np.ndarray, k: int) -> list[int]:
    """Places of the ``k`` highest positive sums, first place first among equals."""
    if k <= _FEW:
        best = []
        for _ in range(min(k, len(sums))):
            place = int(sums.argmax())
            if sums[place] <= 0.0:
                break
            best.append(place)
            sums[place] = 0.0
        return best
    order = np.argsort(-sums, kind="stable")[:k]
    return order[sums[order] > 0.0].tolist()


def _index(titles: Sequence[str], abstracts: Sequence[str]) -> dict[str, np.ndarray]:
    bm25s = import_bm25s()  # late: only building an index needs it

    word_ids: dict[str, int] = {}
    tokens = [
        [
            word_ids.setdefault(w, len(word_ids))
            for w in [*(list_searched_words(title) * TITLE_WEIGHT), *list_searched_words(abstract)]
        ]
        for title, abstract in zip(titles, abstracts, strict=True)
    ]
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index((tokens, word_ids), create_empty_token=False, show_progress=False)
    packed = pack_strings(list(word_ids))
    return {
        "data": np.asarray(index.scores["data"], dtype=np.float32),
        "indices": np.asarray(index.scores["indices"], dtype=np.int32),
        "indptr": np.asarray(index.scores["indptr"], dtype=np.int64),
        "vocabulary.bytes": packed["bytes"],
        "vocabulary.ends": packed["ends"],
    }
