"""The protocol of retrievers: queries in, ranked passages out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from ...core.errors import BadValueError, EnvFault

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_ASCII = "".join(chr(i).lower() if chr(i).isalnum() else " " for i in range(128))
"""A table for ``str.translate``: letters in lower case, digits, and blanks for all else."""


class Hit(NamedTuple):
    """One passage that was found."""

    id: str
    title: str
    text: str
    score: float


class Query(NamedTuple):
    """A request to a retriever: ``text``, and how many passages at most."""

    text: str
    k: int


class Retriever(Protocol):
    """A search over passages for many queries at once."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most ``k`` hits per query, best first; none for a query without words."""
        ...


@dataclass(frozen=True)
class Batched:
    """A retriever as the ``serve`` of a :class:`turngym.envs.core.env.Call`.

    Two of them are equal when they ask the same retriever, so that the batched vector environment
    serves the queries of all its copies in one call.
    """

    retriever: Retriever

    def __call__(self, requests: Sequence[Query]) -> list[list[Hit]]:
        """Return one list of hits per request; requests with equal ``k`` are served together.

        Raises:
            EnvFault: The retriever failed.
            BadValueError: It answers something else than lists of hits.
        """
        sizes = {request.k for request in requests}
        if len(sizes) == 1:
            return self._search([request.text for request in requests], sizes.pop())
        answers: list[list[Hit]] = [[] for _ in requests]
        for k in sorted(sizes):
            places = [i for i, request in enumerate(requests) if request.k == k]
            found = self._search([requests[i].text for i in places], k)
            for i, hits in zip(places, found, strict=True):
                answers[i] = hits
        return answers

    def _search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        try:
            found = self.retriever.search(queries, k)
        except OSError as fault:  # what files and networks raise
            raise EnvFault(f"the retriever failed: {fault}") from fault
        if not (_is_ours(type(self.retriever)) or _fits(found, len(queries), k)):
            raise BadValueError(
                f"{type(self.retriever).__name__}.search gave {found!r:.200} for {len(queries)} "
                f"queries and k={k}; expected a list per query of at most k Hit(id, title, text, "
                "score)."
            )
        return found


@cache
def _is_ours(kind: type) -> bool:
    """Tell whether a class is of this package, whose answers are not checked each time."""
    return kind.__module__.startswith(f"{__name__.partition('.')[0]}.")


def _fits(found: Any, count: int, k: int) -> bool:
    """Tell whether an answer is a list per query of at most ``k`` hits with texts."""
    return (
        isinstance(found, (list, tuple))
        and len(found) == count
        and all(isinstance(hits, (list, tuple)) and len(hits) <= k for hits in found)
        and all(
            isinstance(hit, Hit) and isinstance(hit.title, str) and isinstance(hit.text, str)
            for hits in found
            for hit in hits
        )
    )


def words(text: str) -> list[str]:
    """Return the words of ``text``: NFKC, case folded, without accents and possessive 's.

    Chinese and Japanese characters count as one word each, since no blanks part their words.
    """
    if text.isascii() and "'" not in text:
        return text.translate(_ASCII).split()
    folded = text.casefold()
    if not folded.isascii():
        folded = unicodedata.normalize("NFKC", folded).replace("\u2019", "'").casefold()
        parts = unicodedata.normalize("NFD", folded)
        folded = "".join(c for c in parts if not unicodedata.combining(c))
    if "'" in folded:
        folded = re.sub(r"'s\b", "", folded).replace("'", "")
    return _WORDS.findall(folded)


class Corpus(NamedTuple):
    """Passages as three equally long lists."""

    ids: Sequence[str]
    titles: Sequence[str]
    texts: Sequence[str]
