"""PDDL problems of ALFWorld's game files, compiled to games."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ...core.errors import DataError
from ..engine.game import CLEAN, COOL, HEAT, LIGHT, SIMPLE, TWO, Game, Goal, Room, Things, make_mask

_COMMENT = re.compile(r";[^\n]*")
_FACT = re.compile(r"\(([^()]+)\)")
_OBJECT_TYPE = re.compile(r"\(objecttype \?\w+ (\w+)type\)")
_PLACE_TYPE = re.compile(r"\(receptacletype \?\w+ (\w+)type\)")
_BAR = "_bar_"
_BASIN = "basin"
Facts = Mapping[str, Sequence[tuple[str, ...]]]


def compile_problem(problem: str, task: str, name: str) -> Game:
    """Return the game of a PDDL problem.

    Args:
        problem: Text of the problem.
        task: The line that names the task.
        name: Its path, for the game's id and for errors.

    Raises:
        DataError: There is no ``:init`` or ``:goal``, or they do not say what a game needs.
    """
    text = _COMMENT.sub("", problem.lower())
    start, goal = text.find("(:init"), text.find("(:goal")
    if not 0 <= start < goal:
        raise DataError(f"{name}: no PDDL problem; expected (:init ...) and then (:goal ...).")
    facts: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for found in _FACT.finditer(text, start + len("(:init"), goal):
        predicate, *words = found[1].split()
        facts[predicate].append(tuple(words))
    try:
        return _compile(facts, _read_goal(text[goal:], name), task, name)
    except (KeyError, ValueError) as fault:
        raise DataError(f"{name}: the facts of (:init) do not fit together ({fault!r}).") from fault


def _compile(facts: Facts, goal: Goal, task: str, name: str) -> Game:
    names = _name_all(facts)
    place_types = {place: kind for place, kind in facts["receptacletype"]}
    at = {place: location for place, location in facts["receptacleatlocation"]}
    places = sorted(place for place in at if place in place_types)
    locations = sorted({at[place] for place in places})
    openable = _first(facts["openable"])
    room = Room(
        names=tuple(names[place] for place in places),
        types=tuple(_strip(place_types[place]) for place in places),
        location=tuple(locations.index(at[place]) for place in places),
        openable=make_mask([place in openable for place in places]),
        location_names=tuple(names[location] for location in locations),
    )
    object_types = {obj: kind for obj, kind in facts["objecttype"]}
    objects = sorted(object_types)
    number = {obj: i for i, obj in enumerate(objects)}
    things = _make_things(facts, names, objects, object_types)
    takes: dict[str, set[str]] = defaultdict(set)
    for place_type, object_type in facts["cancontain"]:
        takes[place_type].add(object_type)
    fits = {
        kind: make_mask([object_types[obj] in takes[kind] for obj in objects])
        for kind in set(place_types.values())
    }
    held = _collect(facts["inreceptacle"], places, number)
    beside = _collect(facts["objectatlocation"], locations, number)
    return Game(
        id=name,
        text=task,
        room=room,
        things=things,
        fits=tuple(fits[place_types[place]] for place in places),
        goal=goal,
        contents=held,
        beside=beside,
        cool=make_mask([obj in _first(facts["iscool"]) for obj in objects]),
    )


def _make_things(
    facts: Facts, names: Mapping[str, str], objects: Sequence[str], types: Mapping[str, str]
) -> Things:
    number = {obj: i for i, obj in enumerate(objects)}
    able = {}
    for predicate in ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable"):
        found = _first(facts[predicate])
        able[predicate] = make_mask([obj in found for obj in objects])
    holders = _first(facts["isreceptacleobject"])
    inside: dict[int, int] = {}
    for inner, outer in facts["inreceptacleobject"]:
        inside[number[outer]] = inside.get(number[outer], 0) | 1 << number[inner]
    return Things(
        names=tuple(names.get(obj, obj) for obj in objects),
        types=tuple(_strip(types[obj]) for obj in objects),
        holders=make_mask([obj in holders for obj in objects]),
        inside=inside,
        **able,
    )


def _name_all(facts: Facts) -> dict[str, str]:
    """Return the name of every id: within a type the first id has the highest number."""
    ids = {word for rows in facts.values() for row in rows for word in row if _BAR in word}
    groups: dict[str, list[str]] = defaultdict(list)
    for one in sorted(ids):
        kind = one.partition(_BAR)[0]
        groups[kind + _BASIN if _BASIN in one else kind].append(one)
    return {
        one: f"{kind} {len(members) - place}"
        for kind, members in groups.items()
        for place, one in enumerate(members)
    }


def _collect(
    pairs: Iterable[tuple[str, ...]], places: Sequence[str], number: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the objects at each place; pairs about other things or places tell nothing."""
    found = dict.fromkeys(places, 0)
    for obj, place in pairs:
        if place in found and obj in number:
            found[place] |= 1 << number[obj]
    return tuple(found.values())


def _first(rows: Iterable[tuple[str, ...]]) -> set[str]:
    return {row[0] for row in rows}


def _strip(kind: str) -> str:
    return kind.removesuffix("type")


def _read_goal(text: str, name: str) -> Goal:
    """Return the task that a goal's formula states."""
    objects, places = _OBJECT_TYPE.findall(text), _PLACE_TYPE.findall(text)
    if "(istoggled " in text and "(holds " in text and len(objects) == 2 and not places:
        return Goal(LIGHT, objects[1], objects[0])
    if not places or len(set(objects)) != 1 or len(set(places)) != 1:
        raise DataError(f"{name}: the goal is none of the six kinds of tasks: {text[:300]!r}.")
    if len(objects) == 2 and "(not (= " in text:
        return Goal(TWO, objects[0], places[0])
    for sign, kind in (("(isclean ", CLEAN), ("(ishot ", HEAT), ("(iscool ", COOL)):
        if sign in text:
            return Goal(kind, objects[0], places[0])
    return Goal(SIMPLE, objects[0], places[0])
