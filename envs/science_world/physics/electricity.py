"""Voltage: it moves one element a tick along the connections, in the order of ticks."""

from __future__ import annotations

from ..world import World, other_terminal, terminal, terminal_owner

GROUND, VOLTAGE = 0.0, 9.0
HOPS = 10
"""Connections that a walk to the ground follows at most."""


def grounded(world: World, handle: int, hops: int = HOPS) -> bool:
    """Whether a terminal leads, through parts and conductors, to a generator's ground."""
    other = world.wires.get(handle)
    if other is None:
        return False
    owner = terminal_owner(other)
    k = world.kind[owner]
    if k.role == "generator":
        return world.volts.get(other) == GROUND
    if k.role == "switch" and not world.on[owner]:
        return False
    if k.poles == "hidden":
        material = world.material[owner]
        if material is None or not material.conducts:
            return False
    return hops > 0 and grounded(world, other_terminal(other), hops - 1)


def powered(world: World, handle: int) -> bool:
    """Whether a terminal touches one that carries voltage."""
    other = world.wires.get(handle)
    return other is not None and world.volts.get(other) == VOLTAGE


def conduct(world: World, o: int) -> bool:
    """One tick of a wire or plain object; says whether current runs through it.

    Voltage of a conductor is never cleared, that of other objects always.
    """
    one, two = terminal(o, 0), terminal(o, 1)
    material = world.material[o]
    if world.kind[o].poles != "wire" and (material is None or not material.conducts):
        world.volts.pop(one, None)
        world.volts.pop(two, None)
        return False
    for ground, live in ((one, two), (two, one)):
        if grounded(world, ground) and powered(world, live):
            world.volts[ground] = VOLTAGE
            return True
    return False


def tick_wire(world: World, o: int) -> None:
    """A wire is on while current runs through it."""
    world.on[o] = bool(world.wires) and conduct(world, o)


def tick_consumer(world: World, o: int) -> None:
    """A bulb, motor or buzzer is on while its anode is grounded and its cathode powered."""
    anode, cathode = terminal(o, 0), terminal(o, 1)
    runs = bool(world.wires) and grounded(world, anode) and powered(world, cathode)
    world.on[o] = runs
    if runs:
        world.volts[anode] = VOLTAGE


def tick_generator(world: World, o: int) -> None:
    """An active generator holds its anode at 9 volts and its cathode at ground."""
    anode, cathode = terminal(o, 0), terminal(o, 1)
    if world.on[o]:
        world.volts[anode] = VOLTAGE
        world.volts[cathode] = GROUND
    else:
        world.volts.pop(anode, None)
        world.volts.pop(cathode, None)


def tick_outdoor_generator(world: World, o: int) -> None:
    """Sun and wind reach a generator that is outside, also in open containers."""
    world.on[o] = False
    for hops, holder in enumerate(world.holders(o)):
        if world.kind[holder].key == "outside":
            world.on[o] = True
        if world.on[o] or not world.open[holder] or hops + 1 >= HOPS:
            break
    tick_generator(world, o)
