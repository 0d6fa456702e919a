"""One tick of the house: a pass over all objects, in the original's order of effects.

Every object runs once: what its kind does, fire, heat exchange with and between its contents,
change of state, conduction, then its contents and drains.

A room is quiet when nothing in it can reach another room, draw a random number or make a new
object: things only warm up, cool down, age and slide. Its ticks are counted and lived through when
somebody comes or looks, with the same result. Bees in a closed hive draw one number each and do
nothing; their draws are taken at once, so the stream stays where the original's would be.
"""

from __future__ import annotations

from collections.abc import Callable

from ..house.state import NONE, HouseState, get_terminal
from .animals import tick_animal, tick_bee
from .devices import (
    RATE,
    SELF_WATERING,
    tick_basin,
    tick_cooler,
    tick_drain,
    tick_ground,
    tick_heater,
    tick_plane,
    tick_pot,
    tick_stopwatch,
    tick_toilet,
    tick_watering,
)
from .electricity import conduct, tick_consumer, tick_generator, tick_outdoor_generator, tick_wire
from .fire import burn
from .plants import tick_flower, tick_plant

CHECK_EVERY = 4
"""Ticks between two looks at a room that was not quiet."""
CHECK_ALL = 2
"""In the first ticks every room is looked at."""

Pairs = tuple[tuple[int, int, float], ...]


def find_heat_pairs(house: HouseState, o: int) -> Pairs:
    """Return the pairs that exchange heat in a container, with the smaller conductivity."""
    made_of = house.material
    kids = [kid for kid in house.kids[o] if made_of[kid] is not None]
    pairs: list[tuple[int, int, float]] = []
    if made_of[o] is not None:
        pairs = [(o, kid, _slower(house, o, kid)) for kid in kids]
    for at, kid in enumerate(kids):
        pairs += [(kid, other, _slower(house, kid, other)) for other in kids[:at]]
    house.pairs[o] = found = tuple(pairs)
    return found


def _slower(house: HouseState, one: int, two: int) -> float:
    first, second = house.material[one], house.material[two]
    if first is None or second is None:
        return 0.0
    return min(first.conducts_heat, second.conducts_heat)


def exchange_heat(heat: list[float], pairs: Pairs) -> None:
    """Even out temperatures pair by pair; both use what the first has become.

    The original clips a step to 1,000 degrees, which no two things of the house can reach.
    """
    for one, two, rate in pairs:
        first, second = heat[one], heat[two]
        if first != second:
            heat[one] = first = first + (second - first) * rate * RATE
            heat[two] = second + (first - second) * rate * RATE


def tick(house: HouseState, o: int, stamp: int) -> None:
    """Live one tick of an object and what is in it; ``stamp`` marks what has been reached."""
    done = house.done
    if done[o] == stamp:
        return
    if action := house.kind[o].tick:
        TICKS[action](house, o)
    material = house.material[o]
    if material is not None and (house.burning[o] or house.heat[o] >= material.ignites):
        burn(house, o)
    kids = house.kids[o]
    if kids:
        pairs = house.pairs[o]
        exchange_heat(house.heat, find_heat_pairs(house, o) if pairs is None else pairs)
    if material is not None:
        change_state(house, o)
    if house.wires:
        _conduct(house, o)
    if kids:
        _tick_contents(house, kids, stamp)
    if "basin" in house.kind[o].tags:
        for drain in house.portals[o]:
            tick_drain(house, drain)
    done[o] = stamp


def _tick_contents(house: HouseState, kids: tuple[int, ...], stamp: int) -> None:
    """Tick each; plain things without contents need only a look at their temperature."""
    kind, made_of, heat, inner = house.kind, house.material, house.heat, house.kids
    for kid in kids:
        if kind[kid].tick or inner[kid] or house.wires or house.burning[kid]:
            tick(house, kid, stamp)
            continue
        material = made_of[kid]
        if material is not None and house.done[kid] != stamp:
            warm = heat[kid]
            if warm >= material.ignites:
                tick(house, kid, stamp)
                continue
            state = (
                "solid" if warm < material.melts else "gas" if warm > material.boils else "liquid"
            )
            if state != house.state[kid]:
                change_state(house, kid)
        house.done[kid] = stamp


def change_state(house: HouseState, o: int) -> None:
    """Melt, freeze, boil or condense by the present temperature; the name may change with it."""
    material, heat = house.material[o], house.heat[o]
    if material is None:
        return
    state = "solid" if heat < material.melts else "gas" if heat > material.boils else "liquid"
    if state != house.state[o]:
        house.state[o] = state
        house.name[o] = material.name_in(state) or house.name[o]


def _conduct(house: HouseState, o: int) -> None:
    """Let current pass an object that is connected at both ends."""
    connected = get_terminal(o, 0) in house.wires and get_terminal(o, 1) in house.wires
    if connected and house.kind[o].poles != "polar":
        conduct(house, o)


def tick_house(house: HouseState) -> None:
    """Live one tick of everything."""
    house.ticks += 1
    stamp = house.ticks
    here = house.get_agent_place()
    for place in house.kids[house.universe]:
        if place != house.sewer and (place == here or not pass_over(house, place)):
            tick(house, place, stamp)


def pass_over(house: HouseState, place: int) -> bool:
    """Count a tick of a quiet room instead of running it; return False when it must run."""
    behind = house.behind
    if place in behind:
        if house.wires:
            wake(house, place)
            return False
    else:
        due = house.ticks <= CHECK_ALL or (house.ticks + place) % CHECK_EVERY == 0
        if house.wires or not due:
            return False
        bees = count_caged_bees(house, place)
        if bees == NONE:
            return False
        behind[place] = 0
        house.caged[place] = bees
    behind[place] += 1
    for _ in range(house.caged[place]):
        house.random.next_int(2)
    return True


def wake(house: HouseState, place: int) -> None:
    """Live through what a room has passed over; from then on it runs again."""
    ticks = house.behind.pop(place, 0)
    house.caged.pop(place, None)
    _catch_up(house, place, ticks)


def settle(house: HouseState) -> None:
    """Bring every room up to date; quiet ones stay quiet."""
    for place, ticks in house.behind.items():
        if ticks:
            house.behind[place] = 0
            _catch_up(house, place, ticks)


def _catch_up(house: HouseState, place: int, ticks: int) -> None:
    position = house.random.state
    for _ in range(ticks):
        house.late -= 1
        tick(house, place, house.late)
    house.random.state = position


def count_caged_bees(house: HouseState, place: int) -> int:
    """Return the number of bees in closed hives of a quiet room; NONE when it is not quiet."""
    if house.focus != NONE and house.find_place(house.focus) == place:
        return NONE
    bees = 0
    for o in house.walk_inside(place):
        material = house.material[o]
        if house.burning[o] or (material is not None and house.heat[o] >= material.ignites):
            return NONE
        if (action := house.kind[o].tick) == "bee":
            bees += 1
        if action and not _is_calm(house, o, action):
            return NONE
    return bees


def _is_calm(house: HouseState, o: int, action: str) -> bool:
    kids = house.kids[o]
    if action in ("basin", "toilet"):
        flowing = any(house.state[kid] == "liquid" for kid in kids)
        opened = any(house.open[drain] for drain in house.portals[o])
        return not (house.on[o] or house.life[o] or (opened and flowing))
    if action == "bee":
        hive = house.parent[o]
        return not house.open[hive] and not kids
    if action == "tree":
        return house.life[o].stage == 0 and not _watered(house, house.parent[o])
    if action in ("watering", "pot"):
        own = action == "watering" or SELF_WATERING in house.simple
        return not own or any(house.kind[kid].key == "water" for kid in kids)
    if action == "heater":
        return not (house.on[o] and kids)
    if action == "ground":
        return not kids
    return action != "flower"


def _watered(house: HouseState, container: int) -> bool:
    return any(house.name[kid] == "water" for kid in house.kids[container])


def _tick_bee(house: HouseState, o: int) -> None:
    tick_bee(house, o, wake)


TICKS: dict[str, Callable[[HouseState, int], None]] = {
    **{"heater": tick_heater, "cooler": tick_cooler, "basin": tick_basin, "toilet": tick_toilet},
    **{"drain": tick_drain, "watering": tick_watering, "pot": tick_pot, "ground": tick_ground},
    **{"stopwatch": tick_stopwatch, "plane": tick_plane, "consumer": tick_consumer},
    **{"wire": tick_wire, "generator": tick_generator, "animal": tick_animal},
    **{"tree": tick_plant, "flower": tick_flower},
    "bee": _tick_bee,
    "outdoor generator": tick_outdoor_generator,
}
"""What objects do of themselves every tick, by the key in their kind."""
