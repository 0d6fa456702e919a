"""What appliances, basins, pots and instruments do every tick."""

from __future__ import annotations

import math

from ..materials import material_called
from ..records import Watch
from ..world import NONE, World

RATE = 0.1
"""Share of a difference in temperature that one tick evens out."""
FLUSHES_FOR = 5


def tick_heater(world: World, o: int) -> None:
    """An active heater warms its direct contents."""
    target = world.kind[o].heats
    if not world.on[o] or target is None:
        return
    heat, made_of = world.heat, world.material
    for kid in world.kids[o]:
        if made_of[kid] is not None and heat[kid] < target:
            heat[kid] += (target - heat[kid]) * RATE


def tick_cooler(world: World, o: int) -> None:
    """An active cooler chills its direct contents."""
    target = world.kind[o].cools
    if not world.on[o] or target is None:
        return
    heat, made_of = world.heat, world.material
    for kid in world.kids[o]:
        if made_of[kid] is not None and heat[kid] > target:
            heat[kid] += (target - heat[kid]) * RATE


def fill(world: World, container: int) -> None:
    """Put water into a container that has none."""
    if not any(world.kind[kid].key == "water" for kid in world.kids[container]):
        world.put(world.make("water"), container)


def _run_water(world: World, basin: int) -> None:
    for kid in world.kids[basin]:
        if world.open[kid] and world.kind[kid].box in ("open", "closable"):
            fill(world, kid)
    fill(world, basin)


def tick_basin(world: World, o: int) -> None:
    """A tap that is on fills the open containers in the basin, and the basin."""
    if world.on[o]:
        _run_water(world, o)


def tick_toilet(world: World, o: int) -> None:
    """A flush opens the drain for some ticks and refills the bowl."""
    stage = world.life[o]
    (drain,) = world.portals[o]
    if world.on[o] and stage == 0:
        stage = 1
        world.open[drain] = True
    if stage > 0:
        _run_water(world, o)
        stage += 1
        if stage > FLUSHES_FOR:
            world.on[o] = False
            stage = 0
    if stage == 0:
        world.open[drain] = False
    world.life[o] = stage


def tick_drain(world: World, o: int) -> None:
    """An open drain takes every liquid that lies directly in its basin."""
    if not world.open[o]:
        return
    for kid in world.kids[world.note[o].source]:
        if world.material[kid] is not None and world.state[kid] == "liquid":
            drain_away(world, kid)


def drain_away(world: World, liquid: int) -> None:
    """A liquid goes down the drain: the first stays in the sewer, for lists of actions to see.

    Later ones are nowhere, and fresh water may use their place again.
    """
    world.disconnect(liquid)
    if not world.kids[world.sewer]:
        world.put(liquid, world.sewer)
        return
    world.take_out(liquid)
    fresh = world.uid[liquid] == world.next_uid - 1 and world.kind[liquid].key == "water"
    if fresh and liquid != world.focus and liquid not in world.spare:
        world.spare = (*world.spare, liquid)


def tick_watering(world: World, o: int) -> None:
    """Fountains and self-watering pots refill themselves."""
    fill(world, o)


def tick_pot(world: World, o: int) -> None:
    """Flower pots water themselves only under that simplification."""
    if "selfWateringFlowerPots" in world.simple:
        fill(world, o)


def tick_ground(world: World, o: int) -> None:
    """What was put on the ground lies in the place."""
    if (place := world.parent[o]) != NONE:
        for kid in world.kids[o]:
            world.put(kid, place)


def tick_stopwatch(world: World, o: int) -> None:
    """A running stopwatch counts; a stopped one keeps what it shows and starts from 0 again."""
    watch: Watch = world.life[o]
    if world.on[o]:
        world.life[o] = Watch(watch.running + 1, watch.running + 1)
    elif watch.running:
        world.life[o] = Watch(0, watch.shown)


GRAVITY = 0.10000000149011612
"""0.1 as a number of 32 bits, as the original has it."""


def tick_plane(world: World, o: int) -> None:
    """Solids slide down by the plane's angle and friction; liquids run down, gases rise."""
    slope, spots = world.note[o], world.slides.get(o, {})
    angle, surface = (45.0, "plain surface") if slope is None else slope[:2]
    for kid in world.kids[o]:
        position = spots.get(kid)
        if position is None:
            continue
        if world.material[kid] is not None and world.state[kid] != "solid":
            spots[kid] = 0.0 if world.state[kid] == "liquid" else 1.0
        elif position > 0:
            push = GRAVITY * math.sin(math.radians(angle))
            spots[kid] = max(position - push * (1 - material_called(surface).friction), 0.0)
