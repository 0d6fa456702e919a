"""The words of a citation world: what its concepts are called, and what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from . import vocabulary

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


def _crossed(aliases: Sequence[str], count: int) -> Aliases:
    """``count`` names: the given ones, then the first word of one with the rest of another."""
    made = list(dict.fromkeys(aliases))
    for step in range(1, len(aliases)):
        for i, alias in enumerate(aliases):
            first, other = alias.split()[0], aliases[(i + step) % len(aliases)].split()
            crossed = " ".join([first, *other[1:]])
            if len(other) > 1 and len(made) < count and crossed not in made:
                made.append(crossed)
    return tuple(made[:count])


def _entries(block: str) -> list[tuple[str, Aliases]]:
    found = []
    for entry in " ".join(block.split()).split(".")[:-1]:
        kind, _, names = entry.strip().partition(" ")
        found.append((kind, _crossed([n.strip() for n in names.split(",")], 12)))
    return found


def _full() -> Lexicon:
    domains: list[Aliases] = []
    fields: list[list[Aliases]] = []
    subtopics: list[list[list[Aliases]]] = []
    for kind, names in _entries(vocabulary.TOPICS):
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
        methods=tuple(names for _, names in _entries(vocabulary.METHODS)),
        parts=tuple(tuple(tuple(() for _ in f) for f in d) for d in subtopics),
        adjectives=tuple(vocabulary.ADJECTIVES.split()),
        nouns=tuple(vocabulary.NOUNS.split()),
        heads=tuple(vocabulary.HEADS.split()),
        tails=tuple(vocabulary.TAILS.split()),
        joint="",
    )


def _paired(first: Sequence[str], second: Sequence[str]) -> Aliases:
    """Every word with every other: those at the same place first, so the usual name is the first.

    A model that reads has to compare words; the names themselves are too many to remember.
    """
    together = range(len(first))
    places = sorted(((i, j) for i in together for j in together), key=lambda p: (p[0] != p[1], p))
    return tuple(f"{first[i]} {second[j]}" for i, j in places)


def _micro() -> Lexicon:
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
        pairs = _paired(thing, task)
        subtopics[field // 3][field % 3].append(pairs)
        parts[field // 3][field % 3].append((thing[0], task[0]))
    return Lexicon(
        domains=tuple(group * len(group) for group in groups(vocabulary.MICRO_DOMAINS)),
        fields=(tuple(wider[:3]), tuple(wider[3:])),
        subtopics=tuple(tuple(map(tuple, d)) for d in subtopics),
        methods=tuple(
            _paired(*zip(*(name.split() for name in group.split(",")), strict=True))
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
def lexicon(size: str) -> Lexicon:
    """The words of a size."""
    return _full() if size == "full" else _micro()
