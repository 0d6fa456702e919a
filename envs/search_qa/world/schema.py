"""What a world is made of: kinds of things, the relations between them, and how they are said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

Literals = Literal["date", "year", "number"]
LITERALS: tuple[str, ...] = ("date", "year", "number")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of thing, such as chemists or novels.

    Attributes:
        name: One such thing, as text says it ("chemist").
        category: The larger group ("person"); relations may name either.
        amount: How many the world holds before near misses are added.
    """

    name: str
    category: str
    amount: int


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A fact that a thing has at most once.

    Templates hold ``{s}`` for the subject, ``{o}`` for the object, ``{poss}`` for the subject's
    possessive form. The first of ``says`` starts with ``{s}`` and is also used as a clause.

    Attributes:
        key: Unique name.
        subjects: Kinds or categories that can have it.
        target: Kinds or categories of its object, or one of :data:`LITERALS`.
        says: Sentences that state it.
        noun: Noun phrase for its object ("the birthplace of {s}").
        ask: Question for its object.
        keyword: What a searcher types after the subject's name.
        share: Share of the subjects that have it.
        fan: Fewest and most subjects that share one object, when that matters.
        mutual: True when the object has it too, with the subject as object.
        span: Lowest and highest literal value; years after the ``after`` date or year if given.
        after: Relations that lead from the subject to the date or year that ``span`` counts from.
        needs: A relation that the subject must have too.
        order: Words before "{a} and {b}" for the lowest and the highest value.
    """

    key: str
    subjects: tuple[str, ...]
    target: tuple[str, ...]
    says: tuple[str, ...]
    noun: str
    ask: str
    keyword: str
    share: float = 1.0
    fan: tuple[int, int] | None = None
    mutual: bool = False
    span: tuple[int, int] = (0, 0)
    after: tuple[str, ...] = ()
    needs: str | None = None
    order: tuple[str, str] | None = None

    @property
    def literal(self) -> str | None:
        """The kind of literal that the object is, None when it is a thing."""
        return self.target[0] if self.target[0] in LITERALS else None

    @property
    def clause(self) -> str:
        """What can be said of the subject, such as "was born in {o}"."""
        return self.says[0].removeprefix("{s} ").removesuffix(".")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All subjects that share an object, told in the object's article and asked for by number.

    Attributes:
        relation: Key of the relation that is read backwards.
        says: Sentences; ``{s}`` is the object of the relation, ``{o}`` the list.
        ask: Question for the number.
        keyword: What a searcher types after the name.
    """

    relation: str
    says: tuple[str, ...]
    ask: str
    keyword: str

    @property
    def key(self) -> str:
        """Unique among facts."""
        return f"all:{self.relation}"


class Namer(Protocol):
    """Gives names; never the same one twice unless asked for a namesake."""

    def draw_new(self, kind: Kind) -> str:
        """A name that nothing has yet."""
        ...

    def draw_similar(self, name: str, kind: Kind) -> str:
        """A new name that shares a part with ``name``."""
        ...


class NamerMaker(Protocol):
    """Makes the namer of one world."""

    def __call__(self, rng: np.random.Generator) -> Namer:
        """A namer that draws from ``rng``."""
        ...


@dataclass(frozen=True, kw_only=True)
class Style:
    """How articles are written.

    Attributes:
        sentences: Sentences per passage at most.
        intro: Whether an article opens by saying what its subject is.
        alias_share: Share of things that have a second name.
        namesake_share: Share of the near misses that carry the very name of their model.
        namesakes: Categories whose names do not show the kind, so that they can have namesakes.
    """

    sentences: int
    intro: bool
    alias_share: float
    namesake_share: float = 0.0
    namesakes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A whole world's plan."""

    name: str
    kinds: Sequence[Kind]
    relations: Sequence[Relation]
    listings: Sequence[Listing]
    namer: NamerMaker
    style: Style
    pools: tuple[float, float, float] = (0.6, 0.2, 0.2)

    @cached_property
    def by_key(self) -> dict[str, Relation]:
        """Relations by key."""
        return {relation.key: relation for relation in self.relations}

    def members(self, names: Sequence[str]) -> list[int]:
        """Indices of the kinds that ``names`` (kinds or categories) stand for."""
        return [i for i, k in enumerate(self.kinds) if k.name in names or k.category in names]

    @cached_property
    def relations_of(self) -> list[list[Relation]]:
        """For each kind, the relations that its members can have."""
        table: list[list[Relation]] = [[] for _ in self.kinds]
        for relation in self.relations:
            for kind in self.members(relation.subjects):
                table[kind].append(relation)
        return table

    @cached_property
    def listings_of(self) -> list[list[Listing]]:
        """For each kind, the listings that its members can have."""
        table: list[list[Listing]] = [[] for _ in self.kinds]
        for listing in self.listings:
            for kind in self.members(self.by_key[listing.relation].target):
                table[kind].append(listing)
        return table
