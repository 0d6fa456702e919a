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


class Trace(NamedTuple):
    """What following a query finds.

    Attributes:
        value: The thing (or literal, at the end of a ``Follow``) that it means; of a ``Count``, the
            thing whose listing is counted. None when a fact is missing or when ``Only`` and
            ``Extreme`` do not single one thing out.
        plan: The searches that lead there, in an order in which each can be made.
    """

    value: int | None
    plan: list[Probe]


def trace_query(world: World, query: Query) -> Trace:
    """Follow ``query`` from the things that it names to what it means."""
    plan: list[Probe] = []
    return Trace(_follow(world, query, plan), plan)


def _follow(world: World, query: Query, plan: list[Probe]) -> int | None:
    """Return the value of :func:`trace_query`; its searches are added to ``plan``."""
    match query:
        case Named(thing):
            return thing
        case Follow(relation, of):
            thing = _follow(world, of, plan)
            plan.append(_make_probe(world, thing, relation))
            return _find_object(world, relation, thing)
        case Only(kind, (first, a), (second, b)):
            one, two = _follow(world, a, plan), _follow(world, b, plan)
            found = _find_only(world, kind, (first, one), (second, two))
            both = f"{_find_title(world, one)} {_find_title(world, two)}"
            place = _find_passage(world, first.key, found)
            plan.append(Probe(both, f"{first.keyword} {second.keyword}", (place,)))
            return found
        case Extreme(relation, a, b, highest):
            one = _follow(world, a, plan)
            plan.append(_make_probe(world, one, relation))
            two = _follow(world, b, plan)
            plan.append(_make_probe(world, two, relation))
            left, right = _find_object(world, relation, one), _find_object(world, relation, two)
            if left is None or right is None or left == right:
                return None
            return one if (left > right) == highest else two
        case Count(listing, of):
            head = _follow(world, of, plan)
            plan.append(_make_probe(world, head, listing))
            return head


def list_answers(world: World, query: Query, value: int | None) -> tuple[str, ...]:
    """Accepted answers of ``query``, whose trace has ``value``; none when it means nothing."""
    if value is None:
        return ()
    if isinstance(query, Count):
        members = world.graph.lists[query.listing.key].get(value, ())
        return (str(len(members)),) if members else ()
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


def count_hops(query: Query) -> int:
    """Number of facts that must be read."""
    match query:
        case Named():
            return 0
        case Follow(relation, of):
            # the value was read when the two were compared
            known = isinstance(of, Extreme) and of.relation is relation
            return count_hops(of) + (not known)
        case Count(_, of):
            return count_hops(of) + 1
        case Only(_, (_, a), (_, b)) | Extreme(_, a, b, _):
            return count_hops(a) + count_hops(b) + 2


def _find_object(world: World, relation: Relation, thing: int | None) -> int | None:
    value = NONE if thing is None else world.graph.facts[relation.key].item(thing)
    return None if value == NONE else value


def _write_clauses(world: World, only: Only) -> str:
    said = [r.clause.format(o=write_phrase(world, of)) for r, of in (only.first, only.second)]
    return " and ".join(said)


def _find_only(
    world: World,
    kind: int,
    first: tuple[Relation, int | None],
    second: tuple[Relation, int | None],
) -> int | None:
    """Return the one thing of ``kind`` with these two objects."""
    (one, a), (two, b) = first, second
    if a is None or b is None:
        return None
    facts, kinds = world.graph.facts, world.graph.kinds
    having = np.flatnonzero(facts[one.key] == a)
    found = having[(facts[two.key][having] == b) & (kinds[having] == kind)]
    return int(found[0]) if len(found) == 1 else None


def _find_title(world: World, thing: int | None) -> str:
    return "" if thing is None else world.graph.titles[thing]


def _find_passage(world: World, key: str, thing: int | None) -> str:
    return str(NONE if thing is None else world.places[key].item(thing))


def _make_probe(world: World, thing: int | None, asked: Relation | Listing) -> Probe:
    """Return the search for a fact of ``thing``."""
    passage = _find_passage(world, asked.key, thing)
    return Probe(_find_title(world, thing), asked.keyword, (passage,))
