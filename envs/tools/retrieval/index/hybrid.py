"""Several retrievers as one, by reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ....core.errors import BadValueError
from ....core.fork import Shared
from ....core.settings import check_integer, check_number
from ..base import Hit, Retriever


@dataclass(frozen=True)
class Hybrid(Shared):
    """Reciprocal rank fusion: a passage's score is the sum of 1 / (c + its rank) over retrievers.

    Equal scores go by the first retriever that found the passage, then by its rank there. Two of
    them are equal when they fuse the same retrievers.

    Attributes:
        retrievers: Over the same passages: ids tell them apart.
        depth: Passages asked of each retriever; at least what is asked of this one.
        c: Smooths the ranks, 60 in the paper.

    Raises:
        BadValueError: Fewer than two retrievers, or a number out of range.

    References:
        Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet".
    """

    retrievers: tuple[Retriever, ...]
    depth: int = field(default=50, kw_only=True)
    c: float = field(default=60.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "retrievers", tuple(self.retrievers))
        if len(self.retrievers) < 2:
            raise BadValueError(
                f"Hybrid: got {len(self.retrievers)} retrievers; expected at least 2."
            )
        check_integer("depth", self.depth, "Hybrid", min=1)
        check_number("c", self.c, "Hybrid", above=0)

    def __len__(self) -> int:
        return max(len(r) for r in self.retrievers if hasattr(r, "__len__"))  # type: ignore[arg-type]

    @property
    def identity(self) -> str | None:
        """Which indexes it fuses; None if one of them cannot say."""
        parts = [getattr(retriever, "identity", None) for retriever in self.retrievers]
        known = [part for part in parts if isinstance(part, str)]
        return "+".join([*known, f"{self.depth}-{self.c:g}"]) if len(known) == len(parts) else None

    def row(self, hit: Hit) -> dict[str, Any] | None:
        """Return the corpus row of a hit, from the first retriever that keeps rows."""
        for retriever in self.retrievers:
            if hasattr(retriever, "row") and (row := retriever.row(hit)) is not None:  # type: ignore[attr-defined]
                return row
        return None

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most ``k`` passages for each query, best first.

        Raises:
            BadValueError: ``k`` is below 1.
        """
        check_integer("k", k, "Hybrid.search", min=1)
        deep = max(k, self.depth)
        found = [retriever.search(queries, deep) for retriever in self.retrievers]
        return [self._fuse([lists[i] for lists in found], k) for i in range(len(queries))]

    def _fuse(self, lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
        scores: dict[str, float] = {}
        hits: dict[str, Hit] = {}
        for listed in lists:
            for rank, hit in enumerate(listed, start=1):
                scores[hit.id] = scores.get(hit.id, 0.0) + 1 / (self.c + rank)
                hits.setdefault(hit.id, hit)
        best = sorted(scores, key=lambda name: -scores[name])[:k]  # stable: first found first
        return [hits[name]._replace(score=scores[name]) for name in best]
