"""What solvers are made of: steps that name the next action, or None when there is nothing to do.

Every step looks at the house as it is. So a solver is an ``or`` over steps, needs no memory, and
goes on rightly after any mistake::

    return a.hold(thermometer) or a.focus(thermometer) or a.go_to("bathroom") or ...
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...actions.table import TELEPORT
from ...house.state import NONE, HouseState
from ...objects.records import Portal
from ...text.names import write_full_name
from ..checker import TaskState


class Intent(NamedTuple):
    """An action to take: the verb of its template and the objects that fill it."""

    verb: str
    things: tuple[int, ...] = ()


Step = Intent | None


class Actor:
    """The agent of a house, for solvers.

    Args:
        house: The house as it is now.
        params: The variation's parameters.
        variation: Its number.
    """

    def __init__(self, house: HouseState, params: Any, variation: int) -> None:
        self.house = house
        self.params = params
        self.variation = variation

    @property
    def done(self) -> int:
        """How many ordered goals are done."""
        goals = self.house.goals
        return goals.progress.ordered if isinstance(goals, TaskState) else 0

    @property
    def subject(self) -> int:
        """The object that satisfied the last ordered goal; NONE when none did."""
        goals = self.house.goals
        return goals.progress.last if isinstance(goals, TaskState) else NONE

    @property
    def here(self) -> str:
        """Name of the agent's place."""
        return self.house.name[self.house.get_agent_place()]

    def walk_things(self) -> Iterator[int]:
        """Return everything in the agent's place, then in the other places, near ones first."""
        for place in self.places_by_distance():
            yield from self.house.walk_inside(place)

    def find_named(self, *names: str) -> Iterator[int]:
        """Return the things of a plain name anywhere, nearest first."""
        return (thing for thing in self.walk_things() if self.house.name[thing] in names)

    def find_first(self, *names: str) -> int:
        """Return the nearest thing of a plain name; NONE when there is none."""
        return next(self.find_named(*names), NONE)

    def find_in_place(self, place: str, *names: str) -> int:
        """Return the first thing of a name within a place; NONE when there is none."""
        house = self.house
        found = (o for o in house.walk_inside(house.places[place]) if house.name[o] in names)
        return next(found, NONE)

    def get_place_name(self, thing: int) -> str:
        """Return the name of the place that a thing is in; empty when in none."""
        place = NONE if thing == NONE else self.house.find_place(thing)
        return "" if place == NONE else self.house.name[place]

    def is_held(self, thing: int) -> bool:
        """Return whether the agent carries a thing, in its hands or in something there."""
        return self.house.inventory in self.house.walk_holders(thing)

    def count_done(self, deed: str, *names: str) -> int:
        """Return how often something with these names was done: "use", "read", "look at"."""
        goals = self.house.goals
        deeds = goals.progress.deeds if isinstance(goals, TaskState) else []
        return sum(done[0] == deed and done[-len(names) :] == names for done in deeds)

    def count_looks(self, thing: int) -> int:
        """Return how often a thing was looked at, by its shown name."""
        return self.count_done("look at", write_full_name(self.house, thing).lower())

    def places_by_distance(self) -> Iterable[int]:
        """Return the places, the agent's own first."""
        return self._tree()

    def _tree(self) -> dict[int, int]:
        """Return, per place that can be reached, the place from where it is entered."""
        house = self.house
        start = house.get_agent_place()
        came_from = {start: NONE}
        queue = deque([start])
        while queue:
            place = queue.popleft()
            for portal in house.portals[place]:
                ends = house.note[portal]
                if house.kind[portal].key != "door" or not isinstance(ends, Portal):
                    continue
                target = ends.target if ends.source == place else ends.source
                if target not in came_from:
                    came_from[target] = place
                    queue.append(target)
        return came_from

    def go_to(self, place: str) -> Step:
        """Be in a place; where there is none (a thing is gone), time passes."""
        house = self.house
        if place not in house.places:
            return Intent("wait1")
        target = house.places[place]
        if house.get_agent_place() == target:
            return None
        if TELEPORT in house.simple:
            return Intent("teleport", (target,))
        came_from = self._tree()
        while came_from[target] != house.get_agent_place():
            target = came_from[target]
        for portal in house.portals[house.get_agent_place()]:
            ends = house.note[portal]
            if isinstance(ends, Portal) and target in ends and not house.open[portal]:
                return Intent("open", (portal,))
        return Intent("go", (target,))

    def reach(self, thing: int) -> Step:
        """Be where a thing is, with everything around it open."""
        return self.go_to(self.get_place_name(thing)) or self.uncover(thing)

    def uncover(self, thing: int) -> Step:
        """Have everything around a thing open."""
        house = self.house
        for holder in reversed(list(house.walk_holders(thing))):
            if house.kind[holder].box and not house.open[holder]:
                return Intent("open", (holder,))
        return None

    def ensure_open(self, thing: int) -> Step:
        """Have a container open."""
        if self.house.open[thing]:
            return None
        return self.reach(thing) or Intent("open", (thing,))

    def hold(self, thing: int) -> Step:
        """Have a thing in the hands."""
        if self.house.parent[thing] == self.house.inventory:
            return None
        return self.reach(thing) or Intent("pick up", (thing,))

    def carry(self, thing: int, place: str) -> Step:
        """Be in a place together with a thing."""
        if self.get_place_name(thing) == place and not self.is_held(thing):
            return self.go_to(place)
        return (None if self.is_held(thing) else self.hold(thing)) or self.go_to(place)

    def put(self, thing: int, container: int) -> Step:
        """Have a solid thing directly in a container."""
        if self.house.parent[thing] == container:
            return None
        return (
            self.carry(thing, self.get_place_name(container))
            or self.uncover(thing)
            or self.uncover(container)
            or self.ensure_open(container)
            or Intent("move", (thing, container))
        )

    def pour(self, liquid: int, container: int) -> Step:
        """Have a liquid directly in a container; what holds it is carried there."""
        house = self.house
        if house.parent[liquid] == container:
            return None
        cup = house.parent[liquid]
        return (
            self.ensure_open(cup)
            or self.carry(cup, self.get_place_name(container))
            or self.uncover(container)
            or self.ensure_open(container)
            or Intent("pour", (cup, container))
        )

    def move_into(self, thing: int, container: int) -> Step:
        """Have a solid or liquid directly in a container."""
        liquid = self.house.state[thing] == "liquid"
        return self.pour(thing, container) if liquid else self.put(thing, container)

    def focus(self, thing: int) -> Step:
        """Have the focus on a thing."""
        if self.house.focus == thing:
            return None
        return self.reach(thing) or Intent("focus", (thing,))

    def switch(self, device: int, *, on: bool = True) -> Step:
        """Have a device on or off."""
        if self.house.on[device] is on:
            return None
        return self.reach(device) or Intent("activate" if on else "deactivate", (device,))

    def wait(self, *, long: bool = False) -> Step:
        """Let time pass: two ticks, or eleven."""
        return Intent("wait" if long else "wait1")

    def find_water(self) -> int:
        """Return water alone in something that can be carried; NONE when there is none."""
        house = self.house
        for water in self.find_named("water"):
            cup = house.parent[water]
            if house.kind[cup].refer == "cup" and house.kids[cup] == (water,):
                return water
        return NONE

    def fetch_water(self) -> Step:
        """Have water in a cup that can be carried: dunk one into the toilet, which is full."""
        if self.find_water() != NONE:
            return None
        house = self.house
        toilet = self.find_in_place("bathroom", "toilet")
        if self.find_in_place("bathroom", "water") != NONE:
            cup = self.find_empty_cup("bathroom")
            if cup != NONE:
                return self.hold(cup) or self.go_to("bathroom") or Intent("dunk", (cup, toilet))
        sink = self.find_in_place("bathroom", "sink")
        cup = self.find_empty_cup("bathroom")
        if house.parent[cup] == sink:
            return self.switch(sink)
        return self.put(cup, sink)

    def find_empty_cup(self, place: str = "") -> int:
        """Return the nearest empty open cup: carried, in ``place``, or any; NONE if none."""
        house = self.house
        cups = [
            thing
            for thing in self.walk_things()
            if house.kind[thing].refer == "cup"
            and house.open[thing]
            and not house.kids[thing]
            and house.kind[thing].key not in ("book shelf", "flower pot")
        ]
        for wanted in (self.is_held, lambda thing: self.get_place_name(thing) == place):
            found = next((cup for cup in cups if wanted(cup)), NONE)
            if found != NONE:
                return found
        return cups[0] if cups else NONE
