"""The names of a generated world's concepts: which there are, and what a text names by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...core.digest import digest_of
from ...tools.retrieval.base import words
from ..papers import Request
from . import vocabulary
from .parameters import WorldParameters

Aliases = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Words of one size of world.

    Attributes:
        domains: Names of each domain, the usual one first; likewise the others.
        fields: ``[domain][field]``.
        subtopics: ``[domain][field][subtopic]``.
        methods: ``[method]``.
        parts: ``[domain][field][subtopic]``: words that make up the subtopic and that other
            subtopics share; empty where subtopics have names of their own.
        adjectives: Filler words.
        nouns: Filler words.
        heads: First parts of coined names.
        tails: Last parts.
        joint: What stands between the parts of a coined name.
    """

    domains: tuple[Aliases, ...]
    fields: tuple[tuple[Aliases, ...], ...]
    subtopics: tuple[tuple[tuple[Aliases, ...], ...], ...]
    methods: tuple[Aliases, ...]
    parts: tuple[tuple[tuple[tuple[str, ...], ...], ...], ...]
    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]
    heads: tuple[str, ...]
    tails: tuple[str, ...]
    joint: str


def _cross(aliases: Sequence[str], count: int) -> Aliases:
    """``count`` names: the given ones, then the first word of one with the rest of another."""
    made = list(dict.fromkeys(aliases))
    for step in range(1, len(aliases)):
        for i, alias in enumerate(aliases):
            first, other = alias.split()[0], aliases[(i + step) % len(aliases)].split()
            crossed = " ".join([first, *other[1:]])
            if len(other) > 1 and len(made) < count and crossed not in made:
                made.append(crossed)
    return tuple(made[:count])


def _parse_entries(block: str) -> list[tuple[str, Aliases]]:
    found = []
    for entry in " ".join(block.split()).split(".")[:-1]:
        kind, _, names = entry.strip().partition(" ")
        found.append((kind, _cross([n.strip() for n in names.split(",")], 12)))
    return found


def _make_full_lexicon() -> Lexicon:
    domains: list[Aliases] = []
    fields: list[list[Aliases]] = []
    subtopics: list[list[list[Aliases]]] = []
    for kind, names in _parse_entries(vocabulary.TOPICS):
        if kind == "D":
            domains.append(names)
            fields.append([])
            subtopics.append([])
        elif kind == "F":
            fields[-1].append(names)
            subtopics[-1].append([])
        else:
            subtopics[-1][-1].append(names)
    return Lexicon(
        domains=tuple(domains),
        fields=tuple(map(tuple, fields)),
        subtopics=tuple(tuple(map(tuple, d)) for d in subtopics),
        methods=tuple(names for _, names in _parse_entries(vocabulary.METHODS)),
        parts=tuple(tuple(tuple(() for _ in f) for f in d) for d in subtopics),
        adjectives=tuple(vocabulary.ADJECTIVES.split()),
        nouns=tuple(vocabulary.NOUNS.split()),
        heads=tuple(vocabulary.HEADS.split()),
        tails=tuple(vocabulary.TAILS.split()),
        joint="",
    )


def _pair(first: Sequence[str], second: Sequence[str]) -> Aliases:
    """Every word with every other: those at the same place first, so the usual name is the first.

    A model that reads has to compare words; the names themselves are too many to remember.
    """
    together = range(len(first))
    places = sorted(((i, j) for i in together for j in together), key=lambda p: (p[0] != p[1], p))
    return tuple(f"{first[i]} {second[j]}" for i, j in places)


def _make_micro_lexicon() -> Lexicon:
    """Subtopics are pairs of a thing and a task, so that all words occur in several subtopics."""

    def groups(block: str) -> list[Aliases]:
        return [tuple(group.split()) for group in block.split(",")]

    things, tasks, names = (groups(b) for b in (vocabulary.MICRO_THINGS, vocabulary.MICRO_TASKS,
                                                vocabulary.MICRO_FIELDS))  # fmt: skip
    wider = [group * len(group) for group in names]  # as many as the paired names have
    subtopics: list[list[list[Aliases]]] = [[[], [], []], [[], [], []]]
    parts: list[list[list[tuple[str, ...]]]] = [[[], [], []], [[], [], []]]
    for number in range(30):
        field = number // 5
        thing = things[number % 10]
        task = tasks[(number % 10 + number // 10 * 2) % 6]
        pairs = _pair(thing, task)
        subtopics[field // 3][field % 3].append(pairs)
        parts[field // 3][field % 3].append((thing[0], task[0]))
    return Lexicon(
        domains=tuple(group * len(group) for group in groups(vocabulary.MICRO_DOMAINS)),
        fields=(tuple(wider[:3]), tuple(wider[3:])),
        subtopics=tuple(tuple(map(tuple, d)) for d in subtopics),
        methods=tuple(
            _pair(*zip(*(name.split() for name in group.split(",")), strict=True))
            for group in vocabulary.MICRO_METHODS.split(";")
        ),
        parts=tuple(tuple(map(tuple, d)) for d in parts),
        adjectives=tuple(vocabulary.MICRO_ADJECTIVES.split()),
        nouns=tuple(vocabulary.MICRO_NOUNS.split()),
        heads=tuple(vocabulary.MICRO_HEADS.split()),
        tails=tuple(vocabulary.MICRO_TAILS.split()),
        joint=" ",
    )


@lru_cache(maxsize=2)
def load_lexicon(size: str) -> Lexicon:
    """The words of a size."""
    return _make_full_lexicon() if size == "full" else _make_micro_lexicon()


_MAX_TEXTS = 1 << 16
PARAPHRASES = 3


class Mentions(NamedTuple):
    """What a text names, by number."""

    subtopics: frozenset[int]
    methods: frozenset[int]


class Concepts(NamedTuple):
    """What a request asks for; ``None`` where its text names none."""

    subtopic: int | None
    method: int | None


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
        given = load_lexicon(parameters.size)
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
        self._phrases: dict[tuple[str, ...], tuple[int, int]] = {
            tuple(words(alias)): (kind, number)
            for kind, concepts in enumerate((self.subtopics, self.methods))
            for number, names in enumerate(concepts)
            for alias in names
        }
        self._longest = max(map(len, self._phrases))
        self._seen: dict[str, Mentions] = {}

    def mentions(self, text: str) -> Mentions:
        """Subtopics and methods that a text names by any of their names, longest first."""
        seen = self._seen.get(text)
        if seen is None:
            if len(self._seen) >= _MAX_TEXTS:
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

    def concepts_of(self, request: Request) -> Concepts:
        """Return the subtopic and the method that the text of a request names."""
        named = self.mentions(request.text)
        return Concepts(min(named.subtopics, default=None), min(named.methods, default=None))

    def names_concept(self, request: Request, heading: str) -> bool:
        """Return whether a heading names the request's subtopic or method by any of its names."""
        wanted, named = self.concepts_of(request), self.mentions(heading)
        return wanted.subtopic in named.subtopics or wanted.method in named.methods

    def queries(self, request: Request) -> list[str]:
        """Return the request itself, three paraphrases by other names, and a query for surveys.

        A text that names no subtopic or method gives fewer queries.
        """
        subtopic, method = self.concepts_of(request)
        if subtopic is None or method is None:
            return [request.text]
        rng = request_random(request, "queries")
        topics, methods = self.subtopics[subtopic], self.methods[method]
        places = rng.permutation(len(methods) * len(topics))[:PARAPHRASES].tolist()
        paraphrases = [f"{methods[i % len(methods)]} {topics[i // len(methods)]}" for i in places]
        survey = f"survey {topics[int(rng.integers(len(topics)))]}"
        return list(dict.fromkeys([request.text, *paraphrases, survey]))

    def all_pairs(self, request: Request) -> list[str]:
        """Return every name of the method with every name of the subtopic."""
        subtopic, method = self.concepts_of(request)
        if subtopic is None or method is None:
            return [request.text]
        return [f"{m} {s}" for s in self.subtopics[subtopic] for m in self.methods[method]]


@lru_cache(maxsize=16)
def names_of(parameters: WorldParameters) -> Names:
    """The alias table of a world."""
    return Names(parameters)


def request_random(request: Request, purpose: str) -> np.random.Generator:
    """A stream of random numbers that belongs to a request and a purpose."""
    seed = int(digest_of((purpose, request.text, request.date, request.source)), 16)
    return np.random.Generator(np.random.PCG64(seed))
