"""Connecting things, and voltage that moves one element per tick."""

from __future__ import annotations

import pytest
from helpers.science_house import make_house, say, thing

from turngym.envs.science_world.house.state import HouseState

LINKS = (
    "connect battery anode to black wire terminal 1",
    "connect black wire terminal 2 to green light bulb cathode",
    "connect green light bulb anode to blue wire terminal 1",
    "connect blue wire terminal 2 to battery cathode",
)


@pytest.fixture
def workshop() -> HouseState:
    return make_house(0, at="workshop")


def test_a_bulb_lights_in_the_second_tick_after_the_last_link(workshop: HouseState) -> None:
    replies = [say(workshop, text) for text in LINKS]
    assert replies[0] == "anode on battery is now connected to terminal 1 on black wire"
    bulb = thing(workshop, "green light bulb")
    lit = []
    for _ in range(2):
        lit.append(workshop.on[bulb])
        say(workshop, "look at battery")
    assert lit == [False, True]
    assert say(workshop, "look at green light bulb").startswith("a green light bulb, which is on. ")
    assert say(workshop, "look at black wire") == (
        "a black wireits terminal 1 is connected to: a anode on battery. its terminal 2 is "
        "connected to: a cathode on green light bulb."
    )


def test_the_battery_the_other_way_round_never_lights_it(workshop: HouseState) -> None:
    say(
        workshop,
        "connect battery cathode to black wire terminal 1",
        *LINKS[1:3],
        "connect blue wire terminal 2 to battery anode",
        "wait",
    )
    assert len(workshop.wires) == 8
    assert not workshop.on[thing(workshop, "green light bulb")]


def test_old_voltage_stays_in_a_wire(workshop: HouseState) -> None:
    bulb = thing(workshop, "green light bulb")
    say(workshop, *LINKS, "wait1")
    assert workshop.on[bulb]
    assert say(workshop, "disconnect battery") == "battery has been disconnected"
    say(workshop, "wait")
    assert not workshop.on[bulb]
    say(workshop, LINKS[3], "wait1")
    assert workshop.on[bulb]


def test_a_switch_passes_current_only_when_on(workshop: HouseState) -> None:
    bulb = thing(workshop, "green light bulb")
    say(
        workshop,
        *LINKS[:3],
        "connect blue wire terminal 2 to switch anode",
        "connect switch cathode to battery cathode",
        "wait",
    )
    assert not workshop.on[bulb]
    say(workshop, "activate switch", "wait1")
    assert workshop.on[bulb]


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (
            "connect table to battery",
            "Connections must specify specific points of contact on polarized electrical "
            "components (e.g. anode, cathode)",
        ),
        (
            "connect black wire to table",
            "Connections must specify specific points of contact on unpolarized electrical "
            "components (e.g. terminal 1, terminal 2)",
        ),
        ("connect table to table", "Something can't be connected to itself."),
        ("connect air to battery anode", "terminal 1 on air is now connected to anode on battery"),
        (
            "disconnect battery anode",
            "You must disconnect entire objects (such as battery) instead of just single terminals",
        ),
        ("disconnect table", "table has been disconnected"),
        ("pick up battery anode", "The anode is not moveable."),
        ("focus on battery anode", "You focus on the anode."),
    ],
)
def test_replies(workshop: HouseState, text: str, reply: str) -> None:
    assert say(workshop, text) == reply


def test_a_taken_terminal_is_refused(workshop: HouseState) -> None:
    taken = (
        "is already connected, and must be disconnected before it can be connected to something "
        "else"
    )
    say(workshop, "connect air to battery anode", "connect air to battery cathode")
    assert say(workshop, "connect table to battery anode") == f"anode on battery {taken}"
    assert say(workshop, "connect air to table") == f"air {taken}"


def test_current_passes_conductors_and_no_others(workshop: HouseState) -> None:
    bulb, lit = thing(workshop, "green light bulb"), {}
    for key in ("metal fork", "plastic fork"):
        house = workshop.fork()
        house.put(house.make(key), house.get_agent_place())
        ends = (f"connect {key} to battery cathode", f"connect blue wire terminal 2 to {key}")
        say(house, *LINKS[:3], *ends, "wait")
        lit[key] = house.on[bulb]
    assert lit == {"metal fork": True, "plastic fork": False}


def test_sun_and_wind_work_outside_only() -> None:
    house = make_house(0, "openDoors", "teleportAction", at="outside")
    panel = house.make("solar panel")
    house.put(panel, house.inventory)
    say(house, "put down solar panel", "wait1")
    assert house.on[panel]
    say(house, "pick up solar panel", "go to kitchen", "put down solar panel", "wait1")
    assert not house.on[panel]
    assert say(house, "activate solar panel") == (
        "The solar panel is not something that can be activated."
    )


def test_circuits_span_rooms() -> None:
    house = make_house(0, "openDoors", "teleportAction", at="workshop")
    bulb = thing(house, "green light bulb")
    say(house, *LINKS, "teleport to kitchen", "wait")
    assert house.on[bulb]
