"""Voltage: it moves one element a tick along the connections, in the order of ticks."""

from __future__ import annotations

from ..house.state import HouseState, get_other_terminal, get_terminal, get_terminal_owner

GROUND, VOLTAGE = 0.0, 9.0
HOPS = 10
"""Connections that a walk to the ground follows at most."""


def is_grounded(house: HouseState, handle: int, hops: int = HOPS) -> bool:
    """Return whether a terminal leads, through parts and conductors, to a generator's ground."""
    other = house.wires.get(handle)
    if other is None:
        return False
    owner = get_terminal_owner(other)
    k = house.kind[owner]
    if k.role == "generator":
        return house.volts.get(other) == GROUND
    if k.role == "switch" and not house.on[owner]:
        return False
    if k.poles == "hidden":
        material = house.material[owner]
        if material is None or not material.conducts:
            return False
    return hops > 0 and is_grounded(house, get_other_terminal(other), hops - 1)


def is_powered(house: HouseState, handle: int) -> bool:
    """Return whether a terminal touches one that carries voltage."""
    other = house.wires.get(handle)
    return other is not None and house.volts.get(other) == VOLTAGE


def conduct(house: HouseState, o: int) -> bool:
    """Live one tick of a wire or plain object; return whether current runs through it.

    Voltage of a conductor is never cleared, that of other objects always.
    """
    one, two = get_terminal(o, 0), get_terminal(o, 1)
    material = house.material[o]
    if house.kind[o].poles != "wire" and (material is None or not material.conducts):
        house.volts.pop(one, None)
        house.volts.pop(two, None)
        return False
    for ground, live in ((one, two), (two, one)):
        if is_grounded(house, ground) and is_powered(house, live):
            house.volts[ground] = VOLTAGE
            return True
    return False


def tick_wire(house: HouseState, o: int) -> None:
    """Turn a wire on while current runs through it."""
    house.on[o] = bool(house.wires) and conduct(house, o)


def tick_consumer(house: HouseState, o: int) -> None:
    """Turn a part on while its anode is grounded and its cathode powered."""
    anode, cathode = get_terminal(o, 0), get_terminal(o, 1)
    runs = bool(house.wires) and is_grounded(house, anode) and is_powered(house, cathode)
    house.on[o] = runs
    if runs:
        house.volts[anode] = VOLTAGE


def tick_generator(house: HouseState, o: int) -> None:
    """Hold the anode of an active generator at 9 volts and its cathode at ground."""
    anode, cathode = get_terminal(o, 0), get_terminal(o, 1)
    if house.on[o]:
        house.volts[anode] = VOLTAGE
        house.volts[cathode] = GROUND
    else:
        house.volts.pop(anode, None)
        house.volts.pop(cathode, None)


def tick_outdoor_generator(house: HouseState, o: int) -> None:
    """Run a generator that sun or wind reaches: outside, also in open containers."""
    house.on[o] = False
    for hops, holder in enumerate(house.walk_holders(o)):
        if house.kind[holder].key == "outside":
            house.on[o] = True
        if house.on[o] or not house.open[holder] or hops + 1 >= HOPS:
            break
    tick_generator(house, o)
