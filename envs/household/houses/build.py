"""Rooms and tasks drawn by statistics: what is where, and what is asked for.

Differs from the original: every object lies in one receptacle, things that lie nowhere are left
out, and counts of different types are drawn independently.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np

from ...core.fork import Shared
from ..engine.game import (
    CHANGES,
    CLEAN,
    COOL,
    HEAT,
    LIGHT,
    SIMPLE,
    TASK_TYPES,
    TWO,
    Game,
    Goal,
    Room,
    Things,
)
from ..engine.planner import find_plan, see_all
from ..engine.state import start_game
from .statistics import Histogram, RoomKind, Statistics

ABLE = MappingProxyType({CLEAN: "cleanable", HEAT: "heatable", COOL: "coolable"})
TEMPLATES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        SIMPLE: ("put a {object} in {place}.", "put some {object} on {place}."),
        LIGHT: ("look at {object} under the {place}.", "examine the {object} with the {place}."),
        CLEAN: ("put a clean {object} in {place}.", "clean some {object} and put it in {place}."),
        HEAT: ("put a hot {object} in {place}.", "heat some {object} and put it in {place}."),
        COOL: ("put a cool {object} in {place}.", "cool some {object} and put it in {place}."),
        TWO: ("put two {object} in {place}.", "find two {object} and put them in {place}."),
    }
)
"""The original's, which it chooses from at random."""
SHORT_TEMPLATES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        SIMPLE: ("put {object} in {place}",),
        LIGHT: ("see {object} by {place}",),
        CLEAN: ("put clean {object} in {place}",),
        HEAT: ("put hot {object} in {place}",),
        COOL: ("put cool {object} in {place}",),
        TWO: ("put two {object} in {place}",),
    }
)
PREFIX = "Your task is to: "
_DRAWS = 256


class Stream:
    """Numbers in [0, 1), drawn in blocks: a draw from a numpy generator costs as much as sixty."""

    def __init__(self, *seed: int) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._values: list[float] = []

    def draw(self) -> float:
        """Return the next number."""
        if not self._values:
            self._values = self._random.random(_DRAWS).tolist()
        return self._values.pop()

    def choose(self, cumulated: Sequence[float]) -> int:
        """Return a place with a probability by its weight; ``cumulated`` are sums of weights."""
        place = bisect_right(cumulated, self.draw() * cumulated[-1])
        return min(place, len(cumulated) - 1)


T = TypeVar("T")


@dataclass(frozen=True)
class Weighted(Generic[T]):
    """Things to choose from, and the sums of their weights."""

    items: tuple[T, ...]
    cumulated: tuple[float, ...]

    def draw(self, stream: Stream) -> T:
        """Return one of them."""
        return self.items[stream.choose(self.cumulated)]


def weigh(weights: Mapping[T, float]) -> Weighted[T]:
    """Return the choice among keys by their weights."""
    return Weighted(tuple(weights), tuple(accumulate(weights.values())))


def _weigh_counts(histogram: Histogram) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return tuple(map(int, histogram)), tuple(accumulate(histogram.values()))


@dataclass(frozen=True)
class Furnished(Shared):
    """A room, and what is drawn in it.

    Attributes:
        room: The room.
        goals: Per type of tasks, goals that the room allows; types without any are left out.
        places: Per type of objects, receptacles that it may lie in.
        accepted: Per type of objects, the numbers of receptacles that take it.
    """

    room: Room
    goals: Mapping[str, Weighted[Goal]]
    places: Mapping[str, Weighted[int]]
    accepted: Mapping[str, tuple[int, ...]]
    avoiding: dict[tuple[str, str], Weighted[int] | None] = field(default_factory=dict)


class Builder(Shared):
    """Draws rooms and games.

    Args:
        statistics: How often what occurs.
        short: Short words for a small model: no numbers where there is one of a type.
        short_names: What types are called in short words.
    """

    def __init__(
        self, statistics: Statistics, *, short: bool, short_names: Mapping[str, str]
    ) -> None:
        self.statistics, self.short, self._called = statistics, short, short_names
        self._counts = {
            kind: {name: _weigh_counts(h) for name, h in sorted(row.objects.items())}
            for kind, row in statistics.rooms.items()
        }
        self._able = {name: frozenset(types) for name, types in statistics.able.items()}
        self._holders = frozenset(statistics.holders)
        self._fits = {place: frozenset(types) for place, types in statistics.fits.items()}

    def build_room(self, kind: str, stream: Stream) -> Furnished:
        """Return a room of a kind, and what can be drawn in it."""
        row = self.statistics.rooms[kind]
        types: list[str] = []
        for name, histogram in sorted(row.receptacles.items()):
            counts, cumulated = _weigh_counts(histogram)
            types += [name] * counts[stream.choose(cumulated)]
        openable = sum(
            1 << number
            for number, name in enumerate(types)
            if stream.draw() < row.openable.get(name, 0.0)
        )
        location, places = [], 0
        for number, name in enumerate(types):
            beside = number and types[number - 1] == name
            if not (beside and stream.draw() < self._share_together(row)):
                places += 1
            location.append(places - 1)
        order = sorted(range(places), key=lambda _: stream.draw())
        names = tuple(f"loc {1 + order[number]}" for number in range(places))
        room = Room(self._name(types), tuple(types), tuple(location), openable, names)
        return self._furnish(row, room)

    def _share_together(self, row: RoomKind) -> float:
        """Return how often a receptacle stands where one of its type stands."""
        several = sum(
            int(count) * games
            for histogram in row.receptacles.values()
            for count, games in histogram.items()
            if int(count) > 1
        )
        whole = sum(
            int(count) * games
            for histogram in row.receptacles.values()
            for count, games in histogram.items()
        )
        return self.statistics.together * whole / max(several, 1)

    def _name(self, types: Sequence[str]) -> tuple[str, ...]:
        """Return names in the order of types; numbers count down, as in the original."""
        names, left = [], {name: types.count(name) for name in types}
        for name in types:
            called = self._called.get(name, name) if self.short else name
            alone = self.short and types.count(name) == 1
            names.append(called if alone else f"{called} {left[name]}")
            left[name] -= 1
        return tuple(names)

    def _furnish(self, row: RoomKind, room: Room) -> Furnished:
        instances: dict[str, list[int]] = {}
        for number, name in enumerate(room.types):
            instances.setdefault(name, []).append(number)
        places = {}
        for name, weights in row.places.items():
            spread = {
                number: weight / len(instances[place])
                for place, weight in weights.items()
                for number in instances.get(place, ())
            }
            if spread:
                places[name] = weigh(spread)
        accepted = {
            name: tuple(n for n, place in enumerate(room.types) if name in self._accepts(place))
            for name in row.objects
        }
        goals = {}
        for kind in TASK_TYPES:
            if found := self._list_goals(row, kind, room, places):
                goals[kind] = weigh(found)
        return Furnished(room, goals, places, accepted)

    def _accepts(self, place: str) -> frozenset[str]:
        return self._fits.get(place, frozenset())

    def _list_goals(
        self, row: RoomKind, kind: str, room: Room, places: Mapping[str, Weighted[int]]
    ) -> dict[Goal, float]:
        """Return all goals of a kind that a room allows; object and place are independent."""
        objects: dict[str, int] = {}
        asked: dict[str, int] = {}
        for pair, count in row.goals.get(kind, {}).items():
            obj, place = pair.split(" ")
            objects[obj] = objects.get(obj, 0) + count
            asked[place] = asked.get(place, 0) + count
        able = self._able.get(ABLE.get(kind, "pickupable"), frozenset())
        if kind in CHANGES and not room.devices[CHANGES[kind]]:
            return {}
        found: dict[Goal, float] = {}
        for obj, weight in objects.items():
            if obj not in places or obj not in able or obj not in self._able["pickupable"]:
                continue
            for place, other in asked.items():
                if kind == LIGHT:
                    fits = place in places and place in self._able["toggleable"]
                else:
                    fits = place in room.types and obj in self._accepts(place)
                if fits:
                    found[Goal(kind, obj, place)] = weight * other
        return found

    def build_game(
        self, name: str, kind: str, furnished: Furnished, stream: Stream, task: str
    ) -> Game:
        """Return a game in a room.

        Args:
            name: The game's id.
            kind: Kind of the room.
            furnished: The room.
            stream: Draws all of it.
            task: The type of the task.
        """
        goal = furnished.goals[task].draw(stream)
        room = furnished.room
        contents = [0] * len(room.names)
        types: list[str] = []
        least = {goal.object: 2 if goal.kind == TWO else 1}
        if goal.kind == LIGHT:
            least[goal.place] = 1
        for obj, (counts, cumulated) in self._counts[kind].items():
            places = furnished.places.get(obj)
            if places is None:
                continue
            if obj == goal.object and goal.kind != LIGHT:
                places = self._avoid(furnished, obj, goal.place) or places
            count = max(counts[stream.choose(cumulated)], least.get(obj, 0))
            for _ in range(count):
                place = places.draw(stream)
                contents[place] |= 1 << len(types)
                types.append(obj)
        beside = [0] * room.start
        for number, location in enumerate(room.location):
            beside[location] |= contents[number]
        return Game(
            id=name,
            text=self._write_task(goal, stream),
            room=room,
            things=self._make_things(types),
            fits=self._find_fits(furnished, types),
            goal=goal,
            contents=tuple(contents),
            beside=tuple(beside),
        )

    def _avoid(self, furnished: Furnished, obj: str, place: str) -> Weighted[int] | None:
        """Return where an object may lie outside receptacles of a type; None where nowhere."""
        key = obj, place
        if key not in furnished.avoiding:
            room, weights = furnished.room, furnished.places[obj]
            before = (0.0, *weights.cumulated)
            single = {
                number: weights.cumulated[i] - before[i]
                for i, number in enumerate(weights.items)
                if room.types[number] != place
            }
            furnished.avoiding[key] = weigh(single) if single else None
        return furnished.avoiding[key]

    def _make_things(self, types: Sequence[str]) -> Things:
        able: dict[str, int] = dict.fromkeys(self._able, 0)
        holders = 0
        for number, name in enumerate(types):
            bit = 1 << number
            for ability, members in self._able.items():
                if name in members:
                    able[ability] |= bit
            if name in self._holders:
                holders |= bit
        names = self._name(types)
        return Things(names=names, types=tuple(types), holders=holders, inside={}, **able)

    def _find_fits(self, furnished: Furnished, types: Sequence[str]) -> tuple[int, ...]:
        masks: dict[str, int] = {}
        for number, name in enumerate(types):
            masks[name] = masks.get(name, 0) | 1 << number
        fits = [0] * len(furnished.room.names)
        for name, mask in masks.items():
            for place in furnished.accepted[name]:
                fits[place] |= mask
        return tuple(fits)

    def _write_task(self, goal: Goal, stream: Stream) -> str:
        templates = (SHORT_TEMPLATES if self.short else TEMPLATES)[goal.kind]
        template = templates[int(stream.draw() * len(templates))]
        names = [self._called.get(n, n) if self.short else n for n in (goal.object, goal.place)]
        text = template.format(object=names[0], place=names[1])
        return text if self.short else PREFIX + text


def is_playable(game: Game) -> bool:
    """Return whether a game is not won at first and a plan wins it."""
    state = start_game(game)
    return not state.is_won() and find_plan(state, see_all(state)) is not None
