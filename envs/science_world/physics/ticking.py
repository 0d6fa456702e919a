"""One tick of the world: a pass over all objects, in the original's order of effects.

Every object runs once: what its kind does, fire, heat exchange with and between its contents,
change of state, conduction, then its contents and drains. Rooms in which nothing but slow,
closed processes go on are *quiet*: their ticks are counted and lived through when somebody comes
or looks, with the same result (see :mod:`.quiet`).
"""

from __future__ import annotations

from collections.abc import Callable

from ..world import World, terminal
from .animals import tick_animal, tick_bee
from .devices import (
    RATE,
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
from .electricity import (
    conduct,
    tick_consumer,
    tick_generator,
    tick_outdoor_generator,
    tick_wire,
)
from .fire import burn
from .plants import tick_flower, tick_plant

TICKS: dict[str, Callable[[World, int], None]] = {
    **{"heater": tick_heater, "cooler": tick_cooler, "basin": tick_basin, "toilet": tick_toilet},
    **{"drain": tick_drain, "watering": tick_watering, "pot": tick_pot, "ground": tick_ground},
    **{"stopwatch": tick_stopwatch, "plane": tick_plane, "consumer": tick_consumer},
    **{"wire": tick_wire, "generator": tick_generator, "animal": tick_animal, "bee": tick_bee},
    **{"tree": tick_plant, "flower": tick_flower},
    "outdoor generator": tick_outdoor_generator,
}
"""What objects do of themselves every tick, by the key in their kind."""

Pairs = tuple[tuple[int, int, float], ...]


def heat_pairs(world: World, o: int) -> Pairs:
    """The pairs that exchange heat in a container, in order, with the smaller conductivity."""
    made_of = world.material
    kids = [kid for kid in world.kids[o] if made_of[kid] is not None]
    pairs: list[tuple[int, int, float]] = []
    if made_of[o] is not None:
        pairs = [(o, kid, _slower(world, o, kid)) for kid in kids]
    for at, kid in enumerate(kids):
        pairs += [(kid, other, _slower(world, kid, other)) for other in kids[:at]]
    world.pairs[o] = found = tuple(pairs)
    return found


def _slower(world: World, one: int, two: int) -> float:
    first, second = world.material[one], world.material[two]
    if first is None or second is None:
        return 0.0
    return min(first.conducts_heat, second.conducts_heat)


def exchange(heat: list[float], pairs: Pairs) -> None:
    """Even out temperatures pair by pair; both use what the first has become.

    The original clips a step to 1,000 degrees, which no two things of the world can reach.
    """
    for one, two, rate in pairs:
        first, second = heat[one], heat[two]
        if first != second:
            heat[one] = first = first + (second - first) * rate * RATE
            heat[two] = second + (first - second) * rate * RATE


def tick(world: World, o: int, stamp: int) -> None:
    """One tick of an object and what is in it; ``stamp`` marks what has been reached."""
    done = world.done
    if done[o] == stamp:
        return
    if action := world.kind[o].tick:
        TICKS[action](world, o)
    material = world.material[o]
    if material is not None and (world.burning[o] or world.heat[o] >= material.ignites):
        burn(world, o)
    kids = world.kids[o]
    if kids:
        pairs = world.pairs[o]
        exchange(world.heat, heat_pairs(world, o) if pairs is None else pairs)
    if material is not None:
        change_state(world, o)
    if world.wires:
        _conduct(world, o)
    if kids:
        _tick_contents(world, kids, stamp)
    if "basin" in world.kind[o].tags:
        for drain in world.portals[o]:
            tick_drain(world, drain)
    done[o] = stamp


def _tick_contents(world: World, kids: tuple[int, ...], stamp: int) -> None:
    """One tick of each; plain things without contents need only a look at their temperature."""
    kind, made_of, heat, inner = world.kind, world.material, world.heat, world.kids
    for kid in kids:
        if kind[kid].tick or inner[kid] or world.wires or world.burning[kid]:
            tick(world, kid, stamp)
            continue
        material = made_of[kid]
        if material is not None and world.done[kid] != stamp:
            warm = heat[kid]
            if warm >= material.ignites:
                tick(world, kid, stamp)
                continue
            state = (
                "solid" if warm < material.melts else "gas" if warm > material.boils else "liquid"
            )
            if state != world.state[kid]:
                change_state(world, kid)
        world.done[kid] = stamp


def change_state(world: World, o: int) -> None:
    """Melt, freeze, boil or condense by the present temperature; the name may change with it."""
    material, heat = world.material[o], world.heat[o]
    if material is None:
        return
    state = "solid" if heat < material.melts else "gas" if heat > material.boils else "liquid"
    if state != world.state[o]:
        world.state[o] = state
        world.name[o] = material.name_in(state) or world.name[o]


def _conduct(world: World, o: int) -> None:
    """Current passes an object that is connected at both ends."""
    connected = terminal(o, 0) in world.wires and terminal(o, 1) in world.wires
    if connected and world.kind[o].poles != "polar":
        conduct(world, o)


def tick_world(world: World) -> None:
    """One tick of everything."""
    from .quiet import pass_over  # the quiet rooms' catching up needs this module

    world.ticks += 1
    stamp = world.ticks
    here = world.here()
    for place in world.kids[world.universe]:
        if place != world.sewer and (place == here or not pass_over(world, place)):
            tick(world, place, stamp)
