"""Animals age with time; bees fly between flowers and rooms and carry pollen."""

from __future__ import annotations

from collections.abc import Callable

from ..house.state import NONE, HouseState
from ..objects.records import CYCLES, AnimalLife

Wake = Callable[[HouseState, int], None]

MAX_POLLEN = 5
"""A bee with more pollen than this takes no more."""


def tick_animal(house: HouseState, o: int) -> None:
    """Live one tick of an animal's life."""
    life: AnimalLife = house.life[o]
    stages = CYCLES[house.kind[o].cycle]
    name, _, lasts = stages[life.stage]
    if name in ("dead", "death"):
        if not life.dead:
            house.life[o] = life._replace(dead=True)
        if (container := house.parent[o]) != NONE:
            for kid in house.kids[o]:
                house.put(kid, container)
    elif lasts:
        met = life.met + 1
        house.life[o] = AnimalLife(life.stage + 1) if met >= lasts else AnimalLife(life.stage, met)


def tick_bee(house: HouseState, o: int, wake: Wake) -> None:
    """Fly at random; in a flower the bee may take pollen first.

    Args:
        house: The house.
        o: The bee.
        wake: Brings a room that lags behind up to date before the bee arrives there.
    """
    in_flower = house.parent[o] != NONE and "flower" in house.kind[house.parent[o]].tags
    drawn = house.random.next_int(2)
    if in_flower and drawn == 0:
        _take_pollen(house, o)
    elif not in_flower and drawn == 1:
        _enter_flower(house, o)
    else:
        _fly_on(house, o, wake)
    tick_animal(house, o)


def _take_pollen(house: HouseState, bee: int) -> None:
    carried = [kid for kid in house.kids[bee] if "pollen" in house.kind[kid].tags]
    flower = house.parent[bee]
    pollen = [kid for kid in house.kids[flower] if "pollen" in house.kind[kid].tags]
    if len(carried) <= MAX_POLLEN and pollen:
        house.put(pollen[house.random.next_int(len(pollen))], bee)


def _list_open_contents(house: HouseState, container: int) -> list[int]:
    """Return the contents of a container and of the open containers in it, in creation order."""
    found: list[int] = []
    _collect_open(house, container, found)
    return sorted(found, key=house.uid.__getitem__)


def _collect_open(house: HouseState, container: int, found: list[int]) -> None:
    for kid in house.kids[container]:
        found.append(kid)
        if house.open[kid]:
            _collect_open(house, kid, found)


def _enter_flower(house: HouseState, bee: int) -> None:
    if (place := house.parent[bee]) == NONE:
        return
    flowers = [o for o in _list_open_contents(house, place) if "flower" in house.kind[o].tags]
    if flowers:
        house.put(bee, flowers[house.random.next_int(len(flowers))])


def _fly_on(house: HouseState, bee: int, wake: Wake) -> None:
    place = house.parent[bee]
    if place == NONE:
        return
    passable = [portal for portal in house.portals[place] if house.open[portal]]
    if passable:
        passable.sort(key=house.uid.__getitem__)
        source, target = house.note[passable[house.random.next_int(len(passable))]]
        beyond = target if place == source else source
        if beyond in house.behind:
            wake(house, beyond)
        house.put(bee, beyond)
        return
    outer = _out_of(house, place)
    if outer != NONE:
        house.put(bee, outer)


def _out_of(house: HouseState, container: int) -> int:
    """Return the place around a container that is open to it; NONE when there is none.

    What stands directly in the place need not be open itself: bees leave what the agent carries.
    """
    if "place" in house.kind[container].tags or not house.open[container]:
        return NONE
    outer = house.parent[container]
    while outer != NONE and "place" not in house.kind[outer].tags:
        if not house.open[container]:
            return NONE
        container, outer = outer, house.parent[outer]
    return outer
