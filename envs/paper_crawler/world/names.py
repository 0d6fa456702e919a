"""The names of a world's concepts, and finding them in a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ...retrieval import words
from .lexicon import Aliases, lexicon
from .parameters import WorldParameters

_KEPT = 1 << 16


class Mentions(NamedTuple):
    """What a text names, by number."""

    subtopics: frozenset[int]
    methods: frozenset[int]


class Names:
    """The alias table; read-only.

    Args:
        parameters: Says how many concepts there are, and how many names each has.

    Attributes:
        domains: Names of each domain, the usual one first; likewise the others.
        fields: Fields of domain 0 first.
        subtopics: Subtopics of field 0 first.
        methods: Methods.
        parts: Words that a subtopic shares with others of its world; may be empty.
    """

    def __init__(self, parameters: WorldParameters) -> None:
        given = lexicon(parameters.size)
        cut = slice(parameters.aliases)
        domains = range(parameters.domains)
        places = [(d, f) for d in domains for f in range(parameters.fields)]
        leaves = [(d, f, s) for d, f in places for s in range(parameters.subtopics)]
        self.domains: tuple[Aliases, ...] = tuple(given.domains[d][cut] for d in domains)
        self.fields: tuple[Aliases, ...] = tuple(given.fields[d][f][cut] for d, f in places)
        self.subtopics: tuple[Aliases, ...] = tuple(
            given.subtopics[d][f][s][cut] for d, f, s in leaves
        )
        self.methods: tuple[Aliases, ...] = tuple(
            names[cut] for names in given.methods[: parameters.methods]
        )
        self.parts = tuple(given.parts[d][f][s] for d, f, s in leaves)
        self._subtopic_numbers = {names[0]: i for i, names in enumerate(self.subtopics)}
        self._method_numbers = {names[0]: i for i, names in enumerate(self.methods)}
        self._phrases: dict[tuple[str, ...], tuple[int, int]] = {
            tuple(words(alias)): (kind, number)
            for kind, concepts in enumerate((self.subtopics, self.methods))
            for number, names in enumerate(concepts)
            for alias in names
        }
        self._longest = max(map(len, self._phrases))
        self._seen: dict[str, Mentions] = {}

    def subtopic(self, name: str) -> int | None:
        """Number of the subtopic that is usually called so."""
        return self._subtopic_numbers.get(name)

    def method(self, name: str) -> int | None:
        """Number of the method that is usually called so."""
        return self._method_numbers.get(name)

    def mentions(self, text: str) -> Mentions:
        """Subtopics and methods that a text names by any of their names, longest first."""
        seen = self._seen.get(text)
        if seen is None:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            seen = self._seen[text] = self._find(words(text))
        return seen

    def _find(self, given: Sequence[str]) -> Mentions:
        found: tuple[set[int], set[int]] = (set(), set())
        at = 0
        while at < len(given):
            for length in range(min(self._longest, len(given) - at), 0, -1):
                hit = self._phrases.get(tuple(given[at : at + length]))
                if hit is not None:
                    found[hit[0]].add(hit[1])
                    at += length
                    break
            else:
                at += 1
        return Mentions(frozenset(found[0]), frozenset(found[1]))


@lru_cache(maxsize=16)
def names_of(parameters: WorldParameters) -> Names:
    """The alias table of a world."""
    return Names(parameters)
