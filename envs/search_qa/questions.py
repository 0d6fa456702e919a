"""Questions drawn from a world: a query whose answer is unique, not named and not guessable."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ..core.errors import BadValueError
from .answer_metrics import normalise_answer
from .world.graph import NONE
from .world.queries import (
    Count,
    Extreme,
    Follow,
    Named,
    Only,
    Probe,
    Query,
    Thing,
    count_hops,
    list_answers,
    trace_query,
    write_question,
)
from .world.schema import Listing, Relation
from .world.world import World

T = TypeVar("T")

KINDS = ("bridge", "intersection", "comparison", "counting")
_SHARES = {"bridge": 0.45, "intersection": 0.2, "comparison": 0.2, "counting": 0.15}
MIN_HOPS = {"bridge": 1, "intersection": 2, "comparison": 2, "counting": 1}
MAX_HOPS = 4
_TRIES = 2000
_FOUND_WITHIN = 3
"""Passages per search that suffice for every question: Search-R1's number."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; for real questions everything after ``answers`` is unknown.

    Attributes:
        text: The question, ending with "?".
        answers: Accepted answers, the usual one first.
        kind: One of :data:`KINDS`, "" when unknown.
        hops: Facts that must be read, 0 when unknown.
        plan: The searches that lead to the answer.
    """

    text: str
    answers: tuple[str, ...]
    kind: str = ""
    hops: int = 0
    plan: tuple[Probe, ...] = ()


class _FactColumn(NamedTuple):
    """A relation and its objects, by subject; whether they are things, which lead on."""

    relation: Relation
    objects: list[int]
    leads_on: bool


class Drawer:
    """Draws questions of given kinds and hop counts.

    Args:
        world: The facts.
        kinds: Kinds to draw, out of :data:`KINDS`.
        hop_counts: Hop counts to draw, each equally often.

    Raises:
        BadValueError: A hop count that none of the kinds can have in this world.
    """

    def __init__(self, world: World, kinds: Sequence[str], hop_counts: Sequence[int]) -> None:
        self.world = world
        possible = list_possible_kinds(world)
        self.choices: list[tuple[int, list[str], list[float]]] = []
        for count in hop_counts:
            fitting = [k for k in kinds if k in possible and MIN_HOPS[k] <= count]
            if not fitting:
                raise BadValueError(
                    f"no question of kind {' or '.join(kinds)} has {count} hops in the "
                    f"{world.schema.name} world; kinds here are {', '.join(possible)}, and "
                    "intersection and comparison need at least 2 hops."
                )
            shares = np.cumsum([_SHARES[k] for k in fitting])
            self.choices.append((count, fitting, (shares / shares[-1]).tolist()))
        self._prepare()

    def draw(self, pool: int, rng: np.random.Generator) -> Question:
        """A question about things of ``pool`` (0 train, 1 dev, 2 test)."""
        # drawing one of one takes nothing from the stream, but its time
        which = int(rng.integers(len(self.choices))) if len(self.choices) > 1 else 0
        count, kinds, shares = self.choices[which]
        kind = kinds[bisect_left(shares, rng.random())]
        maker = _Maker(self, pool, rng)
        for _ in range(_TRIES):
            query = maker.make(kind, count)
            if (
                query is not None
                and (question := self._finish_question(kind, count, query)) is not None
            ):
                return question
        raise BadValueError(
            f"found no {kind} question of {count} hops in {_TRIES} tries; "
            "expected a larger world or other kinds and hops."
        )

    def _finish_question(self, kind: str, count: int, query: Query) -> Question | None:
        """The finished question; None when its answer is missing, ambiguous or given away."""
        value, plan = trace_query(self.world, query)
        accepted = list_answers(self.world, query, value)
        if not accepted or count_hops(query) != count:
            return None
        text = write_question(self.world, query)
        said = f" {normalise_answer(text)} "
        if any(f" {normalise_answer(answer)} " in said for answer in accepted):
            return None
        searches = tuple(dict.fromkeys(plan))
        if not self._is_findable(searches):
            return None
        return Question(text[0].upper() + text[1:], accepted, kind, count, searches)

    def _is_findable(self, searches: tuple[Probe, ...]) -> bool:
        """Whether a plain query per step brings its evidence among the first passages."""
        queries = [f"{probe.subject} {probe.keyword}" for probe in searches]
        found = self.world.index.search(queries, _FOUND_WITHIN)
        return all(
            any(hit.id in probe.passages for hit in hits)
            for probe, hits in zip(searches, found, strict=True)
        )

    def _prepare(self) -> None:
        """Lists that drawing needs again and again."""
        schema, graph = self.world.schema, self.world.graph
        self.kinds = graph.kinds.tolist()
        self.rows = {key: row.tolist() for key, row in graph.facts.items()}
        has = np.zeros(len(graph.names), dtype=bool)
        for row in graph.facts.values():
            has |= row != NONE
        self.starts = [np.flatnonzero(has & (graph.pools == pool)).tolist() for pool in range(3)]
        self.any_facts = [
            [_FactColumn(r, self.rows[r.key], r.literal is None) for r in relations]
            for relations in schema.relations_of
        ]
        self.onward = [[fact for fact in facts if fact.leads_on] for facts in self.any_facts]
        self.ordered = [r for r in schema.relations if r.order is not None]
        self.having = {
            r.key: [
                np.flatnonzero((graph.facts[r.key] != NONE) & (graph.pools == pool)).tolist()
                for pool in range(3)
            ]
            for r in schema.relations
        }
        self.counts = [
            _group_by_size(x, self.world, pool) for pool in range(3) for x in schema.listings
        ]
        self.per_pool = len(schema.listings)


def list_possible_kinds(world: World) -> tuple[str, ...]:
    """The kinds of question that a world has."""
    schema = world.schema
    kinds = ["bridge"]
    if schema.style.sentences > 1:
        kinds.append("intersection")
    if any(r.order is not None for r in schema.relations):
        kinds.append("comparison")
    if schema.listings:
        kinds.append("counting")
    return tuple(kinds)


def _group_by_size(listing: Listing, world: World, pool: int) -> tuple[Listing, list[list[int]]]:
    """The heads of a listing in ``pool``, grouped by how many members they have."""
    groups: dict[int, list[int]] = {}
    for head, members in world.graph.lists[listing.key].items():
        if len(members) > 1 and world.graph.pools[head] == pool:
            groups.setdefault(len(members), []).append(head)
    return listing, [groups[size] for size in sorted(groups)]


class _Maker:
    """One draw: random steps over the graph, None where a step leads nowhere."""

    def __init__(self, drawer: Drawer, pool: int, rng: np.random.Generator) -> None:
        self.d, self.pool = drawer, pool
        # One block of uniform numbers is an order cheaper than as many single draws.
        self._rng, self._dice = rng, rng.random(64).tolist()

    def roll(self, sides: int) -> int:
        if not self._dice:
            self._dice = self._rng.random(64).tolist()
        return int(self._dice.pop() * sides)

    def make(self, kind: str, count: int) -> Query | None:
        if kind == "bridge":
            return self.bridge(count)
        if kind == "counting":
            return self.counting(count)
        if kind == "comparison":
            return self.comparison(count)
        return self.intersection(count)

    def bridge(self, count: int) -> Query | None:
        start = self._pick(self.d.starts[self.pool])
        return self._walk(Named(start), start, count, {start})

    def counting(self, count: int) -> Query | None:
        first = self.pool * self.d.per_pool
        listing, groups = self.d.counts[first + self.roll(self.d.per_pool)]
        if not groups:
            return None
        # First the number, then the thing: every number is about equally often the answer.
        head = self._pick(self._pick(groups))
        of = self._reach(head, count - 1)
        return None if of is None else Count(listing, of)

    def comparison(self, count: int) -> Query | None:
        relation = self._pick(self.d.ordered)
        having = self.d.having[relation.key][self.pool]
        if len(having) < 2:
            return None
        left, right = self._pick(having), self._pick(having)
        value = self.d.rows[relation.key]
        if left == right or value[left] == value[right]:
            return None
        before = self.roll(count - 1)
        on_left = before // 2  # one chain goes second: "the elder of A and the mentor of B"
        a, b = self._reach(left, on_left), self._reach(right, before - on_left)
        if a is None or b is None:
            return None
        highest = bool(self.roll(2))
        winner = left if (value[left] > value[right]) == highest else right
        extreme = Extreme(relation, a, b, highest)
        after = count - 2 - before
        if after == 0:
            return Follow(relation, extreme)
        return self._walk(extreme, winner, after, {left, right}, but=(relation,))

    def intersection(self, count: int) -> Query | None:
        thing = self._pick(self.d.starts[self.pool])
        kind = self.d.kinds[thing]
        facts = [fact for fact in self.d.onward[kind] if fact.objects[thing] != NONE]
        if len(facts) < 2:
            return None
        i, j = self.roll(len(facts)), self.roll(len(facts))
        if i == j:
            return None
        (first, ones, _), (second, others, _) = facts[min(i, j)], facts[max(i, j)]
        places = self.d.world.places
        if places[first.key][thing] != places[second.key][thing]:
            return None
        before = self.roll(min(count - 2, 1) + 1)
        a = self._reach(ones[thing], before)
        b = Named(others[thing])
        if a is None:
            return None
        only = Only(kind, (first, a), (second, b))
        after = count - 2 - before
        if after == 0:
            return only
        return self._walk(only, thing, after, {thing}, but=(first, second))

    def _walk(
        self, of: Thing, at: int, steps: int, seen: set[int], but: tuple[Relation, ...] = ()
    ) -> Thing | None:
        """Follow ``steps`` random facts from ``at``; all but the last lead to things not seen.

        What is seen on the way is added to ``seen``.
        """
        for left in range(steps - 1, -1, -1):
            options = (self.d.onward if left else self.d.any_facts)[self.d.kinds[at]]
            if not options:
                return None
            relation, objects, leads_on = self._pick(options)
            value = objects[at]
            if value == NONE or relation in but:
                return None
            if leads_on and value in seen:
                return None
            of, at = Follow(relation, of), value
            seen.add(value)
        return of

    def _reach(self, thing: int, steps: int) -> Thing | None:
        """A way of ``steps`` facts that ends at ``thing``."""
        if steps == 0:
            return Named(thing)
        pointing = self.d.world.pointing
        start, end = pointing.starts[thing], pointing.starts[thing + 1]
        if start == end:
            return None
        place = start + self.roll(end - start)
        subject = pointing.subjects[place]
        if subject == thing:
            return None
        relation = self.d.world.schema.relations[pointing.relations[place]]
        of = self._reach(subject, steps - 1)
        return None if of is None else Follow(relation, of)

    def _pick(self, options: Sequence[T]) -> T:
        return options[self.roll(len(options))]
