"""Statistics of the original's rooms and tasks, counted from its games.

``statistics.json`` was counted from the playable games of the splits ``valid_train`` and
``valid_seen`` of 384 games of ALFWorld (MIT licence), which are of its training rooms alone::

    python -m turngym.envs.household.houses.statistics GAMES > statistics.json
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..engine.game import Game, walk_bits
from ..original.files import read_game_files

ROOM_KINDS = {0: "kitchen", 2: "livingroom", 3: "bedroom", 4: "bathroom"}
"""Kinds of rooms, by the hundreds of the original's scene numbers."""
COUNTED = ("valid_train", "valid_seen")
PROPERTIES = ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable")
_FILE = Path(__file__).with_name("statistics.json")
Histogram = Mapping[str, int]


@dataclass(frozen=True)
class RoomKind:
    """How often what occurs in one kind of rooms.

    Attributes:
        weight: Games in such rooms.
        receptacles: Per type, in how many games there are how many of it.
        openable: Per type, the share of instances that open and close.
        objects: Per type, in how many games how many of it lie in a receptacle.
        places: Per type of objects, how many of it lie in receptacles of a type.
        goals: Per type of tasks, the games that ask for an object type and a receptacle type
            (or a lamp), as ``"mug shelf"``.
    """

    weight: int
    receptacles: Mapping[str, Histogram]
    openable: Mapping[str, float]
    objects: Mapping[str, Histogram]
    places: Mapping[str, Histogram]
    goals: Mapping[str, Histogram]


@dataclass(frozen=True)
class Statistics:
    """Statistics of all kinds of rooms, and what holds in all of them.

    Attributes:
        rooms: Per kind of rooms.
        able: Per property, the types of objects that have it.
        holders: Types of objects that hold others.
        fits: Per type of receptacles, the types of objects that it takes.
        together: Share of receptacles that stand where the one before them stands.
        noted: Share of sliceable objects that are noted where their receptacle stands, so that
            they can be sliced there.
    """

    rooms: Mapping[str, RoomKind]
    able: Mapping[str, tuple[str, ...]]
    holders: tuple[str, ...]
    fits: Mapping[str, tuple[str, ...]]
    together: float
    noted: float


@lru_cache(maxsize=1)
def load_statistics() -> Statistics:
    """Return the statistics of the original."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    return make_statistics(data)


def make_statistics(data: Mapping[str, Any]) -> Statistics:
    """Return statistics from plain data, as :func:`count_statistics` returns it."""
    return Statistics(
        rooms={kind: RoomKind(**row) for kind, row in data["rooms"].items()},
        able={name: tuple(types) for name, types in data["able"].items()},
        holders=tuple(data["holders"]),
        fits={name: tuple(types) for name, types in data["fits"].items()},
        together=data["together"],
        noted=data["noted"],
    )


def count_statistics(games: Iterable[Game]) -> dict[str, Any]:
    """Return the statistics of games as plain data.

    Args:
        games: Games of the original, whose ids say the scene.
    """
    rooms: dict[str, _Count] = defaultdict(_Count)
    able: dict[str, set[str]] = defaultdict(set)
    fits: dict[str, set[str]] = defaultdict(set)
    holders: set[str] = set()
    together: Counter[bool] = Counter()
    noted: Counter[bool] = Counter()
    for game in games:
        room, things = game.room, game.things
        scene = int(game.id.split("/")[-3].rpartition("-")[2])
        rooms[ROOM_KINDS[scene // 100]].add(game)
        for name in PROPERTIES:
            able[name] |= {things.types[o] for o in walk_bits(getattr(things, name))}
        holders |= {things.types[o] for o in walk_bits(things.holders)}
        for kind, mask in zip(room.types, game.fits, strict=True):
            fits[kind] |= {things.types[o] for o in walk_bits(mask)}
        together[True] += len(room.names) - len(set(room.location))
        together[False] += len(set(room.location))
        for number, mask in enumerate(game.contents):
            for o in walk_bits(mask & things.sliceable):
                noted[bool(game.beside[room.location[number]] >> o & 1)] += 1
    return {
        "rooms": {kind: rooms[kind].as_row() for kind in ROOM_KINDS.values() if kind in rooms},
        "able": {name: sorted(able[name]) for name in PROPERTIES},
        "holders": sorted(holders),
        "fits": {name: sorted(types) for name, types in sorted(fits.items())},
        "together": _share(together),
        "noted": _share(noted),
    }


class _Count:
    """Counts of one kind of rooms."""

    def __init__(self) -> None:
        self.weight = 0
        self.receptacles: dict[str, Counter[int]] = defaultdict(Counter)
        self.objects: dict[str, Counter[int]] = defaultdict(Counter)
        self.openable: dict[str, Counter[bool]] = defaultdict(Counter)
        self.places: dict[str, Counter[str]] = defaultdict(Counter)
        self.goals: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, game: Game) -> None:
        room, things, goal = game.room, game.things, game.goal
        self.weight += 1
        for kind, count in Counter(room.types).items():
            self.receptacles[kind][count] += 1
        for number, kind in enumerate(room.types):
            self.openable[kind][bool(room.openable >> number & 1)] += 1
            for o in walk_bits(game.contents[number]):
                self.places[things.types[o]][kind] += 1
        lying = 0
        for mask in game.contents:
            lying |= mask
        for kind, count in Counter(things.types[o] for o in walk_bits(lying)).items():
            self.objects[kind][count] += 1
        self.goals[goal.kind][f"{goal.object} {goal.place}"] += 1

    def as_row(self) -> dict[str, Any]:
        """Return plain data; games without a type count as having none of it."""
        return {
            "weight": self.weight,
            "receptacles": self._fill_up(self.receptacles),
            "openable": {kind: _share(count) for kind, count in sorted(self.openable.items())},
            "objects": self._fill_up(self.objects),
            "places": _sort(self.places),
            "goals": _sort(self.goals),
        }

    def _fill_up(self, found: Mapping[str, Counter[int]]) -> dict[str, dict[str, int]]:
        for count in found.values():
            if missing := self.weight - count.total():
                count[0] += missing
        return {
            kind: {str(number): count[number] for number in sorted(count)}
            for kind, count in sorted(found.items())
        }


def _sort(found: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {kind: dict(sorted(count.items())) for kind, count in sorted(found.items())}


def _share(count: Counter[bool]) -> float:
    return round(count[True] / max(count.total(), 1), 4)


if __name__ == "__main__":
    found = read_game_files(sys.argv[1])
    files = [file for file in found if file.split in COUNTED and not file.refused]
    print(json.dumps(count_statistics(file.compile() for file in files), indent=1))
