"""What appliances, basins, pots and instruments do every tick."""

from __future__ import annotations

import math

from ..house.state import NONE, HouseState
from ..objects.materials import find_surface_material
from ..objects.records import Watch

RATE = 0.1
"""Share of a difference in temperature that one tick evens out."""
FLUSHES_FOR = 5
SELF_WATERING = "selfWateringFlowerPots"


def tick_heater(house: HouseState, o: int) -> None:
    """Warm the direct contents of an active heater."""
    target = house.kind[o].heats
    if not house.on[o] or target is None:
        return
    heat, made_of = house.heat, house.material
    for kid in house.kids[o]:
        if made_of[kid] is not None and heat[kid] < target:
            heat[kid] += (target - heat[kid]) * RATE


def tick_cooler(house: HouseState, o: int) -> None:
    """Chill the direct contents of an active cooler."""
    target = house.kind[o].cools
    if not house.on[o] or target is None:
        return
    heat, made_of = house.heat, house.material
    for kid in house.kids[o]:
        if made_of[kid] is not None and heat[kid] > target:
            heat[kid] += (target - heat[kid]) * RATE


def fill(house: HouseState, container: int) -> None:
    """Put water into a container that has none."""
    if not any(house.kind[kid].key == "water" for kid in house.kids[container]):
        house.put(house.make("water"), container)


def _run_water(house: HouseState, basin: int) -> None:
    for kid in house.kids[basin]:
        if house.open[kid] and house.kind[kid].box in ("open", "closable"):
            fill(house, kid)
    fill(house, basin)


def tick_basin(house: HouseState, o: int) -> None:
    """Fill the basin, and the open containers in it, while the tap is on."""
    if house.on[o]:
        _run_water(house, o)


def tick_toilet(house: HouseState, o: int) -> None:
    """Flush: open the drain for some ticks and refill the bowl."""
    stage = house.life[o]
    (drain,) = house.portals[o]
    if house.on[o] and stage == 0:
        stage = 1
        house.open[drain] = True
    if stage > 0:
        _run_water(house, o)
        stage += 1
        if stage > FLUSHES_FOR:
            house.on[o] = False
            stage = 0
    if stage == 0:
        house.open[drain] = False
    house.life[o] = stage


def tick_drain(house: HouseState, o: int) -> None:
    """Take every liquid that lies directly in the basin of an open drain."""
    if not house.open[o]:
        return
    for kid in house.kids[house.note[o].source]:
        if house.material[kid] is not None and house.state[kid] == "liquid":
            drain_away(house, kid)


def drain_away(house: HouseState, liquid: int) -> None:
    """Send a liquid down the drain; the first stays in the sewer, for lists of actions to see.

    Later ones are nowhere, and fresh water may use their place again.
    """
    house.disconnect(liquid)
    if not house.kids[house.sewer]:
        house.put(liquid, house.sewer)
        return
    house.take_out(liquid)
    fresh = house.uid[liquid] == house.next_uid - 1 and house.kind[liquid].key == "water"
    if fresh and liquid != house.focus and liquid not in house.spare:
        house.spare = (*house.spare, liquid)


def tick_watering(house: HouseState, o: int) -> None:
    """Refill a fountain or a self-watering pot."""
    fill(house, o)


def tick_pot(house: HouseState, o: int) -> None:
    """Water a flower pot, only under that simplification."""
    if SELF_WATERING in house.simple:
        fill(house, o)


def tick_ground(house: HouseState, o: int) -> None:
    """Move what was put on the ground to the place."""
    if (place := house.parent[o]) != NONE:
        for kid in house.kids[o]:
            house.put(kid, place)


def tick_stopwatch(house: HouseState, o: int) -> None:
    """Count while the watch runs; a stopped one keeps what it shows and starts from 0 again."""
    watch: Watch = house.life[o]
    if house.on[o]:
        house.life[o] = Watch(watch.running + 1, watch.running + 1)
    elif watch.running:
        house.life[o] = Watch(0, watch.shown)


GRAVITY = 0.10000000149011612
"""0.1 as a number of 32 bits, as the original has it."""


def tick_plane(house: HouseState, o: int) -> None:
    """Slide solids down by the plane's angle and friction; liquids run down, gases rise."""
    slope, spots = house.note[o], house.slides.get(o, {})
    angle, surface = (45.0, "plain surface") if slope is None else slope[:2]
    for kid in house.kids[o]:
        position = spots.get(kid)
        if position is None:
            continue
        if house.material[kid] is not None and house.state[kid] != "solid":
            spots[kid] = 0.0 if house.state[kid] == "liquid" else 1.0
        elif position > 0:
            push = GRAVITY * math.sin(math.radians(angle))
            spots[kid] = max(position - push * (1 - find_surface_material(surface).friction), 0.0)
