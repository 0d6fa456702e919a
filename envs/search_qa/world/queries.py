"""Queries over the graph: what they yield, how they are said, and what must be looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .graph import NONE
from .schema import Listing, Relation
from .wording import list_literal_texts, list_names
from .world import World


@dataclass(frozen=True, slots=True)
class Named:
    """A thing that the question names."""

    thing: int


@dataclass(frozen=True, slots=True)
class Follow:
    """The object of a thing's relation."""

    relation: Relation
    of: Thing


@dataclass(frozen=True, slots=True)
class Only:
    """The one thing of a kind that has two given objects."""

    kind: int
    first: tuple[Relation, Thing]
    second: tuple[Relation, Thing]


@dataclass(frozen=True, slots=True)
class Extreme:
    """Whichever of two things has the lower or the higher literal."""

    relation: Relation
    left: Thing
    right: Thing
    highest: bool


Thing = Named | Follow | Only | Extreme


@dataclass(frozen=True, slots=True)
class Count:
    """How many things a listing holds."""

    listing: Listing
    of: Thing


Query = Thing | Count


class Probe(NamedTuple):
    """One search that a plan asks for.

    Attributes:
        subject: What to name in the query.
        keyword: What to ask about it.
        passages: Ids of the passages that hold what is looked for.
    """

    subject: str
    keyword: str
    passages: tuple[str, ...]


def resolve(world: World, query: Thing) -> int | None:
    """The thing (or literal, at the end of a ``Follow``) that ``query`` means.

    None when a fact is missing or when ``Only`` and ``Extreme`` do not single one thing out.
    """
    facts = world.graph.facts
    match query:
        case Named(thing):
            return thing
        case Follow(relation, of):
            return _find_object(world, relation, resolve(world, of))
        case Only(kind, (first, a), (second, b)):
            one, two = resolve(world, a), resolve(world, b)
            if one is None or two is None:
                return None
            fits = (facts[first.key] == one) & (facts[second.key] == two)
            found = np.flatnonzero(fits & (world.graph.kinds == kind))
            return int(found[0]) if len(found) == 1 else None
        case Extreme(relation, a, b, highest):
            one, two = resolve(world, a), resolve(world, b)
            left, right = _find_object(world, relation, one), _find_object(world, relation, two)
            if left is None or right is None or left == right:
                return None
            return one if (left > right) == highest else two


def find_answers(world: World, query: Query) -> tuple[str, ...]:
    """Accepted answers of ``query``; none when it means nothing."""
    if isinstance(query, Count):
        head = resolve(world, query.of)
        members = [] if head is None else world.graph.lists[query.listing.key].get(head, [])
        return (str(len(members)),) if members else ()
    value = resolve(world, query)
    if value is None:
        return ()
    if isinstance(query, Follow) and query.relation.literal is not None:
        return list_literal_texts(query.relation, value)
    return list_names(world.graph, value)


def write_phrase(world: World, query: Thing) -> str:
    """``query`` as a noun phrase."""
    match query:
        case Named(thing):
            return world.graph.titles[thing]
        case Follow(relation, of):
            return relation.noun.format(s=write_phrase(world, of))
        case Only(kind, _, _):
            pronoun = "who" if world.schema.kinds[kind].category == "person" else "that"
            return f"the {world.schema.kinds[kind].name} {pronoun} {_write_clauses(world, query)}"
        case Extreme(relation, a, b, highest):
            words = (relation.order or ("", ""))[highest]
            return f"{words} {write_phrase(world, a)} and {write_phrase(world, b)}"


def write_question(world: World, query: Query) -> str:
    """``query`` as a question."""
    match query:
        case Count(listing, of):
            return listing.ask.format(s=write_phrase(world, of))
        case Follow(relation, of):
            return relation.ask.format(s=write_phrase(world, of))
        case Only(kind, _, _):
            return f"Which {world.schema.kinds[kind].name} {_write_clauses(world, query)}?"
        case _:
            return f"What is {write_phrase(world, query)}?"


def make_plan(world: World, query: Query) -> list[Probe]:
    """The searches that lead to the answer, in an order in which each can be made."""
    match query:
        case Named():
            return []
        case Count(listing, of):
            return [*make_plan(world, of), _make_probe(world, of, listing.key, listing.keyword)]
        case Follow(relation, of):
            return [*make_plan(world, of), _make_probe(world, of, relation.key, relation.keyword)]
        case Only(_, (first, a), (second, b)):
            thing = resolve(world, query)
            both = f"{_find_title(world, a)} {_find_title(world, b)}"
            keyword = f"{first.keyword} {second.keyword}"
            place = _find_passage(world, first.key, thing)
            return [*make_plan(world, a), *make_plan(world, b), Probe(both, keyword, (place,))]
        case Extreme(relation, a, b, _):
            left = _make_probe(world, a, relation.key, relation.keyword)
            right = _make_probe(world, b, relation.key, relation.keyword)
            return [*make_plan(world, a), left, *make_plan(world, b), right]


def count_hops(query: Query) -> int:
    """Number of facts that must be read."""
    match query:
        case Named():
            return 0
        case Follow(relation, Extreme(compared)) if relation is compared:
            return count_hops(query.of)  # the value was read when the two were compared
        case Count(_, of) | Follow(_, of):
            return count_hops(of) + 1
        case Only(_, (_, a), (_, b)) | Extreme(_, a, b, _):
            return count_hops(a) + count_hops(b) + 2


def _find_object(world: World, relation: Relation, thing: int | None) -> int | None:
    value = NONE if thing is None else int(world.graph.facts[relation.key][thing])
    return None if value == NONE else value


def _write_clauses(world: World, only: Only) -> str:
    said = [r.clause.format(o=write_phrase(world, of)) for r, of in (only.first, only.second)]
    return " and ".join(said)


def _find_title(world: World, query: Thing) -> str:
    thing = resolve(world, query)
    return "" if thing is None else world.graph.titles[thing]


def _find_passage(world: World, key: str, thing: int | None) -> str:
    return str(NONE if thing is None else int(world.places[key][thing]))


def _make_probe(world: World, of: Thing, key: str, keyword: str) -> Probe:
    return Probe(_find_title(world, of), keyword, (_find_passage(world, key, resolve(world, of)),))
