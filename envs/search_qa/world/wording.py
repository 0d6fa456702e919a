"""How things, dates and numbers are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from .graph import NONE, Graph
from .schema import Relation, Schema

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def write_date(day: int, american: bool = False) -> str:
    """A day number as "12 March 1851" or "March 12, 1851"."""
    when = date.fromordinal(day)
    month = _MONTHS[when.month - 1]
    if american:
        return f"{month} {when.day}, {when.year}"
    return f"{when.day} {month} {when.year}"


def list_literal_texts(relation: Relation, value: int) -> tuple[str, ...]:
    """All accepted writings of a literal object, the usual one first."""
    if relation.literal == "date":
        return (write_date(value), write_date(value, american=True))
    if relation.literal == "number":
        return (f"{value:,}", str(value)) if value >= 1000 else (str(value),)
    return (str(value),)


def list_names(graph: Graph, thing: int) -> tuple[str, ...]:
    """All accepted names of a thing, the usual one first."""
    names = [graph.names[thing], graph.aliases[thing], graph.titles[thing]]
    return tuple(dict.fromkeys(name for name in names if name))


def list_object_texts(schema: Schema, graph: Graph, key: str, subject: int) -> tuple[str, ...]:
    """Accepted writings of the object of ``subject``'s fact ``key``; empty when it has none."""
    value = int(graph.facts[key][subject])
    if value == NONE:
        return ()
    relation = schema.by_key[key]
    return list_literal_texts(relation, value) if relation.literal else list_names(graph, value)


def write_mention(schema: Schema, graph: Graph, thing: int) -> str:
    """The thing's name in running text, with its kind when another thing has the same name."""
    name = graph.names[thing]
    if graph.titles[thing] == name:
        return name
    return f"the {schema.kinds[graph.kinds[thing]].name} {name}"


def join_with_and(parts: Sequence[str]) -> str:
    """The parts as "a", "a and b", or "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def add_article(noun: str) -> str:
    """The noun with "a" or "an" before it."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
